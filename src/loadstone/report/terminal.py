"""Results as tables on a terminal, readable at 80 columns and without colour."""

from collections.abc import Iterator, Sequence

from rich.box import SIMPLE_HEAD
from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from loadstone.analysis.model import Trial, TrialState
from loadstone.diagnosis.prediction import Prediction
from loadstone.errors import MeasurementInvalid
from loadstone.report import (
    faults,
    figures,
    outcome,
    prediction,
    resources,
    streak,
    trial_figures,
    words,
    workload,
)
from loadstone.report.console import wide
from loadstone.report.steps import tables
from loadstone.result.model import BESIDE, Measurement, Run

STYLES = {
    TrialState.SUSTAINED: "green",
    TrialState.DEGRADED: "red",
    TrialState.INVALID: "magenta",
    TrialState.UNDECIDED: "yellow",
}

MOST_RESOURCES = 6
CRITICAL = "critical"  # severity of findings of the audit that are shown with the result


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
    for line in _critical(run):
        to.print(Text(line, "red"), soft_wrap=True)
    others = dict(run.environment.target).get(BESIDE)
    if run.workloads and others is not None:  # the sentences of a search mention it already
        to.print(Text(f"Measured at the same time as {others}.", "yellow"), soft_wrap=True)
    workloads = outcome.summary(run)
    to.print(f"Run {run.run_id}, {run.status}{f': {workloads}' if workloads else ''}.", style="dim")
    for line in _shortfalls(run):
        to.print(Text(line, "red"), soft_wrap=True)
    if run.failure:
        to.print(f"It ended early: {run.failure}", style="red")


def _critical(run: Run) -> Iterator[str]:
    """Yield the critical findings of the audit of what was measured."""
    for finding in run.environment.audit if run.searches else ():
        if finding.severity == CRITICAL:
            yield f"{finding.rule}, critical: {finding.sentence} Try: {finding.advice}"


OUTCOMES = {1: "fell short", 3: "could not be carried out", 4: "not decided"}


def _shortfalls(run: Run) -> Iterator[str]:
    """Yield why a run did not end with exit code 0; failures of an SLA are in its tables."""
    for measurement in () if run.status == "running" else run.measurements:
        for short in outcome.shortfalls(measurement):
            if measurement.spec and short.code != MeasurementInvalid.exit_code:
                continue
            what = f"{OUTCOMES[short.code]} (exit {short.code})"
            yield words.sentence(f"{what}: {measurement.title}: {short.reason}")


def show_environment(run: Run, to: Console) -> None:
    """Print the machine and the target of a run."""
    for title, pairs in (
        ("Measured", run.environment.target),
        ("on", run.environment.machine),
    ):
        line = ", ".join(f"{name} {value}" for name, value in pairs)
        if line:
            to.print(Text.assemble((f"{title}: ", "dim"), line))
    to.print(Text.assemble(("Command: ", "dim"), run.command))


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
        uses = [one for one in measurement.resources.observation.uses if one.is_time_shared]
        yield Padding(resources.table(uses[:MOST_RESOURCES]), (0, 0, 0, 1))
    yield Padding(workload.points(words.details(measurement)), (0, 0, 1, 2))


def _number(measurement: Measurement) -> Text:
    capacity = measurement.capacity
    unit = "" if figures.n(capacity) == figures.NOT_FOUND else " per second"
    number = Text.assemble(("N: ", "bold"), (f"{figures.n(capacity)}{unit}", "bold cyan"))
    if capacity is not None and words.has_interval(capacity):
        number.append(f"   interval {figures.interval(capacity)}")
        number.append(f"\n   {words.confidence(capacity)}", "dim")
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
        style = "dim" if trial_figures.is_without_rate(trial) else STYLES[trial.verdict.state]
        table.add_row(
            streak.numbers(alike),
            trial_figures.offered(trial),
            figures.rate(streak.throughput_rps(alike)),
            *(figures.plain_ms(time) if len(alike) == 1 else figures.MISSING for time in times),
            str(streak.failed(alike)),
            Text(trial_figures.verdict(trial), style),
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
        elif not trial_figures.is_without_rate(trial):
            table.add_row(str(trial.number), f"{trial.purpose}: {'; '.join(trial.verdict.reasons)}")
    return table
