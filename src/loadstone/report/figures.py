"""Numbers as people read them."""

import math

from loadstone.analysis.model import State, Trial
from loadstone.search.model import Capacity

MISSING = "–"  # noqa: RUF001 (a dash, where a figure is not known)
NOT_FOUND = "not found"


def rate(value_rps: float | None) -> str:
    """Give a rate with three figures, whole from 1000 on."""
    if value_rps is None or not math.isfinite(value_rps):
        return MISSING
    if value_rps >= 1000:
        return f"{value_rps:,.0f}"
    return f"{value_rps:.{0 if value_rps >= 100 else 1 if value_rps >= 10 else 2}f}"


def precise(value_rps: float | None, width_rps: float) -> str:
    """Give a rate to the digit in which half an interval of this width has 2 to 19 steps."""
    if value_rps is None or not math.isfinite(value_rps):
        return MISSING
    if width_rps <= 0 or not math.isfinite(width_rps):
        return rate(value_rps)
    digits = max(0, min(3, -math.floor(math.log10(width_rps / 4))))
    return f"{value_rps:,.{digits}f}"


def milliseconds(value_ms: float) -> str:
    """Give a time, in seconds from ten seconds on."""
    if not math.isfinite(value_ms):
        return MISSING
    if value_ms >= 10_000:
        return f"{value_ms / 1000:,.1f} s"
    return f"{value_ms:.{0 if value_ms >= 100 else 1 if value_ms >= 10 else 2}f} ms"


def plain_ms(value_ms: float) -> str:
    """Give a time in milliseconds for a column whose head names the unit."""
    if not math.isfinite(value_ms):
        return MISSING
    return f"{value_ms:,.{0 if value_ms >= 100 else 1}f}"


def percent(share: float) -> str:
    """Give a share of 1, whole from 10 % on."""
    if not math.isfinite(share):
        return MISSING
    return f"{share * 100:.{0 if share >= 0.0995 else 1}f} %"


def seconds(value_s: float) -> str:
    """Give a duration."""
    if value_s < 90:
        return f"{value_s:.0f} s"
    minutes, rest = divmod(round(value_s), 60)
    return f"{minutes} min {rest} s" if rest else f"{minutes} min"


def n(capacity: Capacity | None) -> str:
    """Give N alone, with "at least" or "below" where only one side is known."""
    if capacity is None:
        return NOT_FOUND
    rate_rps, low, high = capacity.rate_rps, capacity.low_rps, capacity.high_rps
    if low is not None and high is not None:
        alone = f"{precise(low, high - low)} to {precise(high, high - low)}"
        return alone if rate_rps is None else precise(rate_rps, high - low)
    if low is not None:
        return f"at least {rate(low)}"
    if high is not None:
        return f"below {rate(high)}"
    return NOT_FOUND if rate_rps is None else rate(rate_rps)


def interval(capacity: Capacity | None) -> str:
    """Give the interval of N; a dash where a side is not known."""
    if capacity is None or capacity.low_rps is None or capacity.high_rps is None:
        return MISSING
    low, high = capacity.low_rps, capacity.high_rps
    return f"{precise(low, high - low)} to {precise(high, high - low)}"


def offered(trial: Trial) -> str:
    """Give a trial's offered rate; a dash where none was, and the service set the pace."""
    return MISSING if trial.rate_rps is None else rate(trial.rate_rps)


def verdict(trial: Trial) -> str:
    """Give a trial's verdict; one without a constant rate meters, and is not judged."""
    return "metered" if is_metered(trial) else trial.verdict.state.value


def is_metered(trial: Trial) -> bool:
    """Say whether the trial counted what a saturated service completes."""
    return trial.rate_rps is None and trial.verdict.state is State.UNDECIDED


def errors(trial: Trial) -> str:
    """Give the number of failures and the most frequent kind."""
    if not trial.summary.errors:
        return "0"
    kind, count = trial.summary.errors[0]
    total = trial.summary.failed
    return f"{total} ({kind})" if total == count else f"{total} ({kind} {count}, ...)"
