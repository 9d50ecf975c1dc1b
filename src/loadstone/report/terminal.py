"""Results as tables on a terminal, readable at 80 columns; no colour where there is none."""

from collections.abc import Iterator, Sequence
from typing import IO

from rich.box import SIMPLE_HEAD
from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from loadstone.analysis.model import State, Trial
from loadstone.report import figures, words, workload
from loadstone.report.steps import tables
from loadstone.result import Entry, Finding, Found, Result
from loadstone.search.model import Capacity

STYLES = {
    State.SUSTAINED: "green",
    State.DEGRADED: "red",
    State.INVALID: "magenta",
    State.UNDECIDED: "yellow",
}


def console(file: IO[str] | None = None, width: int | None = None) -> Console:
    """Give a console for results: stdout, or the given file."""
    return Console(
        file=file, width=width, highlight=False, emoji=False, markup=False, soft_wrap=False
    )


def wide(to: Console | None = None) -> Console:
    """Give a console for wide tables: in a file their lines need not fold."""
    to = to or console()
    return to if to.is_terminal else console(to.file, max(to.width, workload.WIDTH))


def show(result: Result, to: Console) -> None:
    """Print a whole result."""
    for finding in result.findings:
        for part in _finding(finding):
            to.print(part)
    for performance in result.performances:
        for part in workload.parts(performance):
            wide(to).print(part)
    for part in tables(result.performances):
        wide(to).print(part)
    to.print(f"Run {result.run_id}, {result.status}.", style="dim")
    if result.failure:
        to.print(f"It ended early: {result.failure}", style="red")


def show_environment(result: Result, to: Console) -> None:
    """Print on what and of what the result was measured."""
    for title, pairs in (
        ("Measured", result.environment.target),
        ("on", result.environment.machine),
    ):
        line = ", ".join(f"{name} {value}" for name, value in pairs)
        if line:
            to.print(Text.assemble((f"{title}: ", "dim"), line))
    to.print(Text.assemble(("Command: ", "dim"), result.command))


def listing(entries: Sequence[Entry], to: Console) -> None:
    """Print the runs of a store, one line per workload, or for a task of many."""
    if any(entry.performed for entry in entries):
        to = wide(to)
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column(
        "run", no_wrap=True, min_width=max((len(e.run_id) for e in entries), default=0)
    )
    table.add_column("status", no_wrap=True, min_width=8)
    table.add_column("workload", overflow="fold")
    # Of a capacity N and its interval, of a task's workload its median, success and SLA.
    table.add_column("N, median", justify="right", no_wrap=True, min_width=7)
    table.add_column("interval, SLA", justify="right", no_wrap=True, min_width=12)
    for entry in entries:
        first = [entry.run_id, entry.status]
        cells = [_listed(found) for found in entry.findings]
        cells += workload.listed(entry.performed)
        for found in cells or [("", "", "")]:
            table.add_row(*first, *found)
            first = ["", ""]
    to.print(table)


def _listed(found: Found) -> tuple[str, str, str]:
    if found.stretch_rps is not None:
        return found.title, figures.rate(found.stretch_rps), "a stretch"
    capacity = Capacity(found.rate_rps, found.low_rps, found.high_rps, 0.0)
    return found.title, figures.n(capacity), figures.interval(capacity)


def _finding(finding: Finding) -> Iterator[RenderableType]:
    yield Text.assemble((finding.title, "bold"), "  ", (finding.request, "dim"))
    yield Padding(_number(finding), (0, 0, 0, 2))
    if finding.trials:
        yield Padding(_trials(finding.trials), (0, 0, 0, 1))
        yield Padding(_why(finding.trials), (0, 0, 1, 2))
    yield Padding(_points(words.shown(finding)), (0, 0, 1, 2))


def _number(finding: Finding) -> Text:
    if not finding.is_search:
        return Text(words.stretch(finding), "bold cyan")
    capacity = finding.capacity
    unit = "" if figures.n(capacity) == figures.NOT_FOUND else " per second"
    number = Text.assemble(("N: ", "bold"), (f"{figures.n(capacity)}{unit}", "bold cyan"))
    if capacity is not None and words.has_interval(capacity):
        number.append(f"   interval {figures.interval(capacity)}")
        number.append(f"\n   {words.sureness(capacity)}", "dim")
    return number


def _points(sentences: Sequence[str]) -> Table:
    table = Table.grid(padding=(0, 1, 0, 0))
    for sentence in sentences:
        table.add_row("-", sentence)
    return table


def _trials(trials: Sequence[Trial]) -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for name in ("#", "offered/s", "done/s", "p50 ms", "p95 ms", "p99 ms", "errors"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    for trial in trials:
        latency = trial.summary.latency
        times = (latency.p50_ms, latency.p95_ms, latency.p99_ms)
        style = "dim" if figures.is_metered(trial) else STYLES[trial.verdict.state]
        table.add_row(
            str(trial.number),
            figures.offered(trial),
            figures.rate(trial.summary.throughput_rps),
            *(figures.plain_ms(time) for time in times),
            str(trial.summary.failed),
            Text(figures.verdict(trial), style),
        )
    return table


def _why(trials: Sequence[Trial]) -> Table:
    table = Table.grid(padding=(0, 1, 0, 0))
    table.add_column(justify="right", style="dim")
    table.add_column(overflow="fold")
    for trial in trials:
        if not figures.is_metered(trial):
            table.add_row(str(trial.number), f"{trial.purpose}: {'; '.join(trial.verdict.reasons)}")
    return table
