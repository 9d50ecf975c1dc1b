"""Results as tables on a terminal, readable at 80 columns; no colour where there is none."""

from collections.abc import Iterator, Sequence
from typing import IO, Any

from rich import measure
from rich.box import SIMPLE_HEAD
from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from loadstone.analysis.model import Trial, TrialState
from loadstone.monitor.prediction import Prediction
from loadstone.report import (
    faults,
    figures,
    prediction,
    resources,
    streak,
    words,
    workload,
)
from loadstone.report.steps import tables
from loadstone.result import BESIDE, Entry, Measurement, MeasurementSummary, Run
from loadstone.search.model import Capacity

STYLES = {
    TrialState.SUSTAINED: "green",
    TrialState.DEGRADED: "red",
    TrialState.INVALID: "magenta",
    TrialState.UNDECIDED: "yellow",
}

# What a list of runs says of a target, and how.
CONFIGURATION = {
    "release": "{}",
    "web server": "{}",
    "workers": "workers {}",
    "database": "{}",
    "token": "{} tokens",
    "cache": "cache {}",
    "Rally": "Rally {}",
}


MOST_RESOURCES = 6
LEAST_WIDTH = 80  # of a table, where it has so much in it
WIDE = 72  # columns in which a line of a listing fits without being folded
# Wider than any table; a width to measure in.
_UNBOUNDED = 10_000


class WholeTables(Console):
    """Cuts no figure: a table that needs more columns than there are is printed wider.

    rich would end a cell that does not fit with a dot for the digits that are lost.
    """

    def print(self, *objects: Any, **options: Any) -> None:
        """Print, in as many columns as the widest table needs."""
        needed = max((self._least_width(one) for one in objects), default=0)
        before = self._width
        try:
            self._width = max(needed, self.width)
            super().print(*objects, **options)
        finally:
            self._width = before

    def _least_width(self, part: object) -> int:
        table = part.renderable if isinstance(part, Padding) else part
        if not isinstance(table, Table) or not table.show_header:  # a grid of sentences
            return 0
        unbounded = self.options.update(width=_UNBOUNDED, max_width=_UNBOUNDED)
        needs = measure.Measurement.get(self, unbounded, part)  # type: ignore[arg-type]  # a table
        return min(needs.maximum, max(needs.minimum, LEAST_WIDTH))


def console(file: IO[str] | None = None, width: int | None = None) -> Console:
    """Return a console for results: stdout, or the given file."""
    return WholeTables(
        file=file, width=width, highlight=False, emoji=False, markup=False, soft_wrap=False
    )


def wide(to: Console | None = None) -> Console:
    """Return a console for wide tables: in a file their lines need not fold."""
    to = to or console()
    return to if to.is_terminal else console(to.file, max(to.width, workload.WIDTH))


def show(run: Run, to: Console) -> None:
    """Print a whole run."""
    for measurement in (one for whole in run.measurements for one in whole.each):
        if measurement.policy in ("search", "prediction"):
            for part in _search(measurement):
                to.print(part)
        else:
            for part in (*workload.parts(measurement), *faults.parts(measurement)):
                wide(to).print(part)
    for part in (*faults.over_workloads(run.measurements), *tables(run.measurements)):
        wide(to).print(part)
    others = dict(run.environment.target).get(BESIDE)
    if run.workloads and others is not None:  # the words of a search say it themselves
        to.print(Text(f"Measured at the same time as {others}.", "yellow"), soft_wrap=True)
    to.print(f"Run {run.run_id}, {run.status}{_fell_short(run)}.", style="dim")
    if run.failure:
        to.print(f"It ended early: {run.failure}", style="red")


def _fell_short(run: Run) -> str:
    """Describe how many workloads of a task missed their SLA."""
    count = len(run.workloads)
    failed = sum(one.failure is not None for one in run.workloads)
    broken = sum(one.failure is None and not one.checks_passed for one in run.workloads)
    said = [
        *([f"{failed} of {count} workloads could not be carried out"] if failed else []),
        *([f"{broken} of {count} workloads broke their SLA"] if broken else []),
    ]
    return f": {', '.join(said)}" if said else ""


def show_environment(run: Run, to: Console) -> None:
    """Print on what and of what the result was measured."""
    for title, pairs in (
        ("Measured", run.environment.target),
        ("on", run.environment.machine),
    ):
        line = ", ".join(f"{name} {value}" for name, value in pairs)
        if line:
            to.print(Text.assemble((f"{title}: ", "dim"), line))
    to.print(Text.assemble(("Command: ", "dim"), run.command))


def listing(entries: Sequence[Entry], to: Console) -> None:
    """Print the runs of a store: what each is, then a line per workload, or for a task of many."""
    for entry in entries:
        to.print(_about(entry), overflow="fold")
        if line := ": ".join(part for part in (entry.target, _configuration(entry)) if part):
            to.print(Padding(Text(line, "dim"), (0, 0, 0, 2)))
        # Of a capacity N and its interval, of a task's workload its median, success and SLA.
        table = Table.grid(padding=(0, 2, 0, 0))
        is_wide = to.width >= WIDE
        table.add_column(min_width=34 if is_wide else None, overflow="fold")
        table.add_column(justify="right", no_wrap=is_wide, min_width=12)
        table.add_column(no_wrap=is_wide)
        for found in (*map(_listed, entry.findings), *workload.listed(entry.performed)):
            table.add_row(*found)
        to.print(Padding(table, (0, 0, 1, 2)))


def _about(entry: Entry) -> Text:
    parts = [entry.status, entry.origin or entry.kind, entry.title]
    if entry.duration_s is not None:
        parts.append(figures.seconds(entry.duration_s))
    return Text.assemble((entry.run_id, "bold"), "  ", "  ".join(part for part in parts if part))


def _configuration(entry: Entry) -> str:
    facts = dict(entry.configuration)
    # Without what stands in parentheses: `results show` has it.
    known = (
        CONFIGURATION[name].format(facts[name].split(" (")[0])
        for name in CONFIGURATION
        if name in facts
    )
    return ", ".join(known)


def _listed(found: MeasurementSummary) -> tuple[str, str, str]:
    if found.stretch_rps is not None:
        return found.title, f"{figures.rate(found.stretch_rps)} per s", "fixed load"
    capacity = Capacity(found.rate_rps, found.low_rps, found.high_rps, 0.0)
    number = figures.n(capacity)
    if number == figures.NOT_FOUND:
        return found.title, f"N {number}", ""
    return found.title, f"N {number}", f"interval {figures.interval(capacity)}"


def _search(measurement: Measurement) -> Iterator[RenderableType]:
    yield Text.assemble((measurement.title, "bold"), "  ", (measurement.request, "dim"))
    if measurement.policy == "search":
        yield Padding(_number(measurement), (0, 0, 0, 2))
    if found := measurement.prediction:
        yield Padding(_predicted(found), (0, 0, 0, 2))
    if measurement.trials:
        yield Padding(_trials(measurement.trials), (0, 0, 0, 1))
        yield Padding(_why(measurement.trials), (0, 0, 1, 2))
    if measurement.resources:
        shown = [one for one in measurement.resources.observation.uses if one.is_time_shared]
        yield Padding(resources.table(shown[:MOST_RESOURCES]), (0, 0, 0, 1))
    yield Padding(workload.points(words.shown(measurement)), (0, 0, 1, 2))


def _number(measurement: Measurement) -> Text:
    capacity = measurement.capacity
    unit = "" if figures.n(capacity) == figures.NOT_FOUND else " per second"
    number = Text.assemble(("N: ", "bold"), (f"{figures.n(capacity)}{unit}", "bold cyan"))
    if capacity is not None and words.has_interval(capacity):
        number.append(f"   interval {figures.interval(capacity)}")
        number.append(f"\n   {words.sureness(capacity)}", "dim")
    return number


def _predicted(found: Prediction) -> Text:
    return Text.assemble(
        ("Predicted N: ", "bold"),
        (f"about {prediction.rate(found)} per second", "bold cyan"),
        f"   interval {prediction.interval(found)}",
        (f"\n   from {figures.rate(found.at_rps)} per second; {found.limit} first", "dim"),
    )


def _trials(trials: Sequence[Trial]) -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for name in ("#", "offered/s", "done/s", "p50 ms", "p95 ms", "p99 ms", "errors"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    for alike in streak.folded(trials):
        trial = alike[0]
        latency = trial.stats.total
        times = (1000 * latency.median_s, 1000 * latency.p95_s, 1000 * latency.p99_s)
        style = "dim" if figures.is_without_rate(trial) else STYLES[trial.verdict.state]
        table.add_row(
            streak.numbers(alike),
            figures.offered(trial),
            figures.rate(streak.throughput_rps(alike)),
            *(figures.plain_ms(time) if len(alike) == 1 else figures.MISSING for time in times),
            str(streak.failed(alike)),
            Text(figures.verdict(trial), style),
        )
    return table


def _why(trials: Sequence[Trial]) -> Table:
    table = Table.grid(padding=(0, 1, 0, 0))
    table.add_column(justify="right", style="dim")
    table.add_column(overflow="fold")
    for alike in streak.folded(trials):
        trial = alike[0]
        if len(alike) > 1:
            table.add_row(streak.numbers(alike), streak.sentence(alike))
        elif not figures.is_without_rate(trial):
            table.add_row(str(trial.number), f"{trial.purpose}: {'; '.join(trial.verdict.reasons)}")
    return table
