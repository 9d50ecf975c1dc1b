"""Tables of a measurement."""

from collections.abc import Iterator, Sequence
from heapq import nlargest

from loadstone.analysis.model import Durations, Stats, Trial, TrialState
from loadstone.analysis.traces import MOST as MOST_TRACES
from loadstone.diagnosis.bottleneck import FULL
from loadstone.diagnosis.demand import ResourceUse
from loadstone.diagnosis.limit import NEAR_FULL
from loadstone.plan.hooks import HookRun
from loadstone.report import figures, streak, trial_figures
from loadstone.report.chart import Tone
from loadstone.report.generator import cores_of
from loadstone.report.section import Row, Table, TableColumn, ToneCell
from loadstone.result.model import Measurement
from loadstone.result.task_workload import Settings

TONES: dict[TrialState, Tone] = {
    TrialState.SUSTAINED: "sustained",
    TrialState.DEGRADED: "degraded",
    TrialState.INVALID: "invalid",
    TrialState.UNDECIDED: "undecided",
}
HEADS = ("min", "median", "90%ile", "95%ile", "99%ile", "max", "avg", "success", "count")


def columns(*heads: str, numbers: Sequence[str] = ()) -> tuple[TableColumn, ...]:
    """Return columns of texts, then of numbers."""
    return (*map(TableColumn, heads), *(TableColumn(head, is_number=True) for head in numbers))


def tone_of(trial: Trial) -> Tone:
    """Return the tone (colour and shape) of a trial."""
    return "metered" if trial_figures.is_without_rate(trial) else TONES[trial.verdict.state]


def held(*, is_held: bool, words: tuple[str, str] = ("held", "broken")) -> ToneCell:
    """Return whether something held, as a cell."""
    return ToneCell(words[0], "sustained") if is_held else ToneCell(words[1], "degraded")


def trials(measurement: Measurement) -> Table:
    """Return a row for each trial, or streak of trials, with why it was judged so."""
    rows = []
    for alike in streak.folded(measurement.trials):
        trial, is_one = alike[0], len(alike) == 1
        latency = trial.stats.total
        times = (1000 * latency.median_s, 1000 * latency.p95_s, 1000 * latency.p99_s)
        reasons = "; ".join(trial.verdict.reasons)
        why = f"{trial.purpose}: {reasons}" if reasons else trial.purpose
        rows.append(
            Row(
                (
                    streak.numbers(alike),
                    ToneCell(trial_figures.verdict(trial), tone_of(trial)),
                    trial_figures.offered(trial),
                    figures.rate(streak.throughput_rps(alike)),
                    *(figures.plain_ms(one) if is_one else figures.MISSING for one in times),
                    f"{sum(one.stats.load_s for one in alike):.0f}",
                    f"{sum(one.stats.due for one in alike):,}",
                    trial_figures.errors(trial) if is_one else str(streak.failed(alike)),
                ),
                note=why if is_one else streak.sentence(alike),
            )
        )
    times_ms = ("p50 ms", "p95 ms", "p99 ms")
    numbers = ("offered /s", "completed /s", *times_ms, "load s", "requests", "errors")
    return Table(
        "Trials",
        (
            *columns(numbers=("#",)),
            *columns("verdict", numbers=numbers),
        ),
        tuple(rows),
    )


def generator(measurement: Measurement) -> Table | None:
    """Return the load generator's health in each trial; None if it is not known."""
    known = [(trial, trial.health) for trial in measurement.trials if trial.health is not None]
    rows = tuple(
        Row(
            (
                str(trial.number),
                *(
                    figures.plain_ms(lag_ms) if lag_ms >= 10 else f"{lag_ms:.2f}"
                    for lag_ms in (health.lag_p50_ms, health.lag_p99_ms, health.lag_max_ms)
                ),
                figures.percent(health.cpu_share),
                ToneCell("; ".join(health.limits), "invalid") if health.limits else "no",
            )
        )
        for trial, health in known
    )
    if not rows:
        return None
    threads = max(health.threads for _, health in known)
    numbers = ("#", "lag p50 ms", "lag p99 ms", "lag max ms", f"CPU of {cores_of(threads)}")
    return Table(
        "Load generator",
        (*columns(numbers=numbers), *columns("was it the limit?")),
        rows,
        "The lag is how long after its due time a request was sent.",
    )


def resources(uses: Sequence[ResourceUse]) -> Table:
    """Return the use of each resource; demands and bounds only if requests were counted."""
    has_demand = any(one.demand_s is not None for one in uses)
    names = ("used", "of", "utilised", *(("per request", "bound") if has_demand else ()))
    return Table(
        "Resources",
        columns("resource", numbers=names),
        tuple(Row((one.name, *_use(one, has_demand=has_demand))) for one in uses),
        "In the trial with the highest rate. The bound is the rate at which this resource alone "
        "would be busy all the time; requests also wait, so the service sustains less."
        if has_demand
        else "",
    )


def _use(one: ResourceUse, *, has_demand: bool) -> Iterator[str | ToneCell]:
    yield f"{one.busy:.2f}"
    yield figures.capacity(one)
    tone: Tone = "sustained"
    if one.utilisation >= NEAR_FULL:
        tone = "degraded" if one.utilisation >= FULL else "undecided"
    yield ToneCell(figures.percent(one.utilisation), tone)
    if has_demand:
        cost_s, bound_rps = one.demand_s, one.bound_rps
        yield figures.MISSING if cost_s is None else figures.milliseconds(1000 * cost_s)
        yield figures.MISSING if bound_rps is None else f"{figures.rate(bound_rps)}/s"


def response_times(stats: Stats, *, is_primary: bool) -> Table:
    """Return a row for each action and for the whole iteration, in Rally's columns."""
    rows = [Row((named(row), *cells(row))) for row in stats.actions if row.name]
    rows.append(Row(("total", *cells(stats.total))))
    rows.append(Row(("-> service time", *cells(stats.service))))
    if stats.idle is not None:
        rows.append(Row(("-> idle", *cells(stats.idle))))
    title = "Response times, seconds"
    return Table(title, columns("action", numbers=HEADS), tuple(rows), is_primary=is_primary)


def named(row: Durations) -> str:
    """Return an action's name as Rally shows it: indented inside another, with its repeats."""
    *outer, name = row.name.split("/")
    times = f" (x{row.repeats})" if row.repeats > 1 else ""
    return f"{' ' * len(outer)}{'-> ' if outer else ''}{name}{times}"


def cells(row: Durations) -> tuple[str, ...]:
    """Return a row's figures as they are shown, in the order of HEADS."""
    times = (row.min_s, row.median_s, row.p90_s, row.p95_s, row.p99_s, row.max_s, row.mean_s)
    shown = (figures.plain_s(time_s) for time_s in times)
    return (*shown, figures.success(row.ok, row.count), str(row.count))


def failures(stats: Stats | None) -> Table | None:
    """Return a row for each cause of failures; None without any."""
    if stats is None or not stats.failures:
        return None
    rows = tuple(Row((f"{one.count:,}", one.message)) for one in stats.failures)
    heads = (TableColumn("count", is_number=True), TableColumn("cause, with one full message"))
    return Table(f"Failures: {stats.failed:,} of {stats.total.count:,}", heads, rows)


def checks(measurement: Measurement) -> Table | None:
    """Return a row for each criterion; None without any."""
    rows = tuple(
        Row((one.criterion, held(is_held=one.success, words=("PASS", "FAIL")), one.detail))
        for one in measurement.checks
    )
    return Table("SLA", columns("criterion", "result", "detail"), rows) if rows else None


def traces(measurement: Measurement) -> Table | None:
    """Return the slowest requests that carried a `traceparent`, with their trace ids."""
    found = [(trial, one) for trial in measurement.trials for one in trial.traces]
    rows = tuple(
        Row(
            (
                one.trace_id,
                one.action,
                one.outcome,
                figures.plain_ms(1000 * one.latency_s),
                f"{one.due_s:.2f}",
                f"{trial.number}",
            )
        )
        for trial, one in nlargest(MOST_TRACES, found, key=lambda both: both[1].latency_s)
    )
    heads = columns("trace id", "request", "result", numbers=("latency ms", "due s", "trial"))
    return Table("Slowest traced requests", heads, rows) if rows else None


def hooks(measurement: Measurement) -> Table | None:
    """Return a row for each run of a hook, and for each hook that did not act."""
    specs = measurement.workload.hooks if measurement.workload else ()
    if not specs or measurement.stats is None:
        return None
    start_s = measurement.start_s or 0.0
    runs = sorted(measurement.hook_runs, key=lambda one: one.started_at_s)
    rows = [
        Row(
            (
                hook_name(specs[run.hook], run.hook),
                trigger(run),
                ToneCell(f"failed: {run.error[0]}", "degraded") if run.error else "success",
                f"{run.started_at_s - start_s:.2f}",
                f"{run.finished_at_s - start_s:.2f}",
            )
        )
        for run in runs
    ]
    acted = {run.hook for run in runs}
    absent = ("its moment did not come", "", "")
    rows += [
        Row((hook_name(spec, number), figures.MISSING, *absent))
        for number, spec in enumerate(specs)
        if number not in acted
    ]
    return Table(
        "Hooks", columns("hook", "at", "status", numbers=("began s", "ended s")), tuple(rows)
    )


def hook_name(spec: Settings, number: int) -> str:
    """Return a hook's number with its description, or else its command or fault."""
    action = next(iter(spec["action"].values())) if "action" in spec else ""
    action = action["action"] if isinstance(action, dict) else action
    return f"{number + 1}: {spec.get('description') or action}"


def trigger(run: HookRun) -> str:
    """Return what triggered a hook."""
    return f"{run.value} s" if run.unit == "time" else f"iteration {run.value}"


def profile(measurement: Measurement) -> Table | None:
    """Return where the workers' time goes; None without a profile."""
    trial = measurement.profiled
    if trial is None or trial.profile is None:
        return None
    found = trial.profile
    rows = tuple(
        Row((part.name, figures.percent(found.share(part)), f"{part.samples:,}"))
        for part in found.parts
    )
    heads = columns("work", numbers=("share", "samples"))
    return Table("Where the workers' time goes", heads, rows)


def pairs(title: str, rows: Sequence[tuple[str, str]]) -> Table:
    """Return settings with their values."""
    return Table(title, columns("setting", "value"), tuple(map(Row, rows)))
