"""The runs of a store as a list on a terminal."""

import math
from collections.abc import Sequence

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from loadstone.report import figures
from loadstone.result.listing import Entry, MeasurementSummary, Performed

# Facts of the target in a list of runs, and their labels.
CONFIGURATION = {
    "release": "{}",
    "web server": "{}",
    "nodes": "nodes {}",
    "workers": "workers {}",
    "database": "{}",
    "token": "{} tokens",
    "cache": "cache {}",
    "Rally": "Rally {}",
}

MOST_LISTED = 6  # workloads of a task with a line each
WIDE = 72  # columns in which a line fits without wrapping


def listing(entries: Sequence[Entry], to: Console) -> None:
    """Print the runs of a store, each with a line per workload or one line for many workloads."""
    for entry in entries:
        to.print(_about(entry), overflow="fold")
        if line := ": ".join(part for part in (entry.target, _configuration(entry)) if part):
            to.print(Padding(Text(line, "dim"), (0, 0, 0, 2)))
        # For a search N and its interval, for a workload of a task its median, success and SLA.
        table = Table.grid(padding=(0, 2, 0, 0))
        is_wide = to.width >= WIDE
        table.add_column(min_width=34 if is_wide else None, overflow="fold")
        table.add_column(justify="right", no_wrap=is_wide, min_width=12)
        table.add_column(no_wrap=is_wide)
        for found in (*map(_search, entry.findings), *_workloads(entry.performed)):
            table.add_row(*found)
        to.print(Padding(table, (0, 0, 1, 2)))


def _about(entry: Entry) -> Text:
    parts = [entry.status, entry.origin or entry.kind, entry.title]
    if entry.duration_s is not None:
        parts.append(figures.seconds(entry.duration_s))
    return Text.assemble((entry.run_id, "bold"), "  ", "  ".join(part for part in parts if part))


def _configuration(entry: Entry) -> str:
    facts = dict(entry.configuration)
    # Without the part in parentheses, which `results show` has.
    known = (
        CONFIGURATION[name].format(facts[name].split(" (")[0])
        for name in CONFIGURATION
        if name in facts
    )
    return ", ".join(known)


def _search(found: MeasurementSummary) -> tuple[str, str, str]:
    if found.load and found.stretch_rps is None:
        return found.title, "", f"{found.load}: nothing ended"  # it failed, or is still running
    if found.load:
        return found.title, f"{figures.rate(found.stretch_rps)} per s", found.load
    if found.is_running:
        return found.title, "N", "not known yet"
    number = figures.n(found)
    if found.is_interrupted:
        known = "N" if number == figures.NOT_FOUND else f"N {number}"
        return found.title, known, "interrupted, not confirmed"
    if number == figures.NOT_FOUND:
        return found.title, f"N {number}", ""
    interval = figures.interval(found)
    known = "known as a range only" if number == interval else f"interval {interval}"
    return found.title, f"N {number}", known


def _workloads(workloads: Sequence[Performed]) -> list[tuple[str, str, str]]:
    if len(workloads) <= MOST_LISTED:
        return [_workload(performed) for performed in workloads]
    judged = [performed.pass_sla for performed in workloads]
    counts = {"failed": judged.count(False), "not ended": judged.count(None)}
    verdict = ", ".join(f"{count} {what}" for what, count in counts.items() if count)
    names = dict.fromkeys(performed.scenario for performed in workloads)
    others = f", {figures.counted(len(names) - 1, 'other')}" if len(names) > 1 else ""
    held = "all held" if any(performed.has_sla for performed in workloads) else "no SLA"
    return [(f"{len(workloads)} workloads: {next(iter(names))}{others}", "", verdict or held)]


def _workload(performed: Performed) -> tuple[str, str, str]:
    if not performed.count and performed.pass_sla is not False:
        return performed.scenario, "", "nothing ended"  # interrupted, or still running
    success = figures.success(performed.ok, performed.count) if performed.count else "0.0 %"
    median_s = math.nan if performed.median_s is None else performed.median_s
    held = "held" if performed.has_sla else "no SLA"
    verdict = {True: held, False: "failed", None: "not ended"}[performed.pass_sla]
    median = f"{figures.plain_s(median_s)} s"
    return performed.scenario, median, f"{success}, {verdict}"
