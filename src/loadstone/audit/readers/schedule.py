"""Schedules of cron jobs and systemd timers."""

import re

DAY_S = 86400
MONTHLY_S = 62 * DAY_S  # not every month has a 31st day
NAMED = {
    "hourly": 3600,
    "daily": DAY_S,
    "midnight": DAY_S,
    "weekly": 7 * DAY_S,
    "monthly": MONTHLY_S,
}
CRON_FIELD = re.compile(r"[\w*/,-]+")
# "Mon *-*-* 00:00:00" of systemd.time(7); other forms are not read.
CALENDAR = re.compile(r"(?P<weekday>[A-Za-z][\w.,-]* )?\*-\*-(?P<day>\S+) \S+")


def longest_gap_s(text: str) -> int | None:
    """Return the longest time between two runs, rounded up to an hour, a day, a week or 62 days.

    `text` is "@daily" or the five fields of cron, or OnCalendar of systemd; None where it is
    neither, or names months.
    """
    fields = text.split()
    if len(fields) == 1:
        return NAMED.get(fields[0].removeprefix("@"))
    if len(fields) == 5 and all(CRON_FIELD.fullmatch(field) for field in fields):
        _, hour, day, month, weekday = fields
        return _gap_s(hour, day, weekday) if month == "*" else None
    calendar = CALENDAR.fullmatch(text.strip())
    return _gap_s("0", calendar["day"], calendar["weekday"] or "*") if calendar else None


def _gap_s(hour: str, day: str, weekday: str) -> int | None:
    if day != "*":
        return MONTHLY_S if weekday == "*" else None
    if weekday != "*":
        return 7 * DAY_S
    return 3600 if hour == "*" else DAY_S
