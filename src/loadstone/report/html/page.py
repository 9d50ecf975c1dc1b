"""The report of runs as one HTML page."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from importlib import resources
from importlib.metadata import version
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from loadstone.analysis.model import Trial
from loadstone.diagnosis.finding import AuditFinding
from loadstone.report import faults as fault_words
from loadstone.report import (
    figures,
    names,
    outcome,
    prediction,
    profile,
    streak,
    trial_figures,
    words,
)
from loadstone.report.comparison import ComparisonSection
from loadstone.report.generator import Generator, generator_of
from loadstone.report.html import charts, faults, overview, steps, svg, workload
from loadstone.report.html.charts import Chart, SamplesOf, Tone
from loadstone.report.html.faults import FaultTable
from loadstone.report.html.overview import MeasurementRow, RowVerdict
from loadstone.report.html.steps import CurveSection
from loadstone.report.html.workload import TaskSection
from loadstone.report.workload import HEADS
from loadstone.result.model import Measurement, Run
from loadstone.search.model import Capacity
from loadstone.system import files

CRITICAL = "critical"  # severity of findings of the audit that the page begins with
BADGE = 6.0  # half the size of a verdict's mark in its table


@dataclass(frozen=True, slots=True)
class Tile:
    """One figure that matters."""

    name: str
    value: str
    unit: str
    note: str


@dataclass(frozen=True, slots=True)
class Section:
    """One measurement as the page shows it."""

    anchor: str
    title: str
    measurement: Measurement
    tiles: tuple[Tile, ...]
    charts: tuple[Chart, ...]
    generator: Generator | None
    faults: tuple[FaultTable, ...] = ()
    headlines: tuple[str, ...] = ()  # what each fault did to clients


@dataclass(frozen=True, slots=True)
class RunSection:
    """One run as the page shows it; `prefix` begins its anchors."""

    run: Run
    title: str
    prefix: str
    measured_by: str
    sections: tuple[Section, ...]
    curves: tuple[CurveSection, ...]
    tasks: tuple[TaskSection, ...]
    overview: tuple[MeasurementRow, ...]
    summary: RowVerdict | None  # of a task's SLA
    critical: tuple[AuditFinding, ...]  # of the audit


def write(run: Run, samples_of: SamplesOf, path: Path) -> None:
    """Write the report of one run."""
    write_runs(((run, samples_of),), path)


def write_runs(
    runs: Sequence[tuple[Run, SamplesOf]], path: Path, comparison: ComparisonSection | None = None
) -> None:
    """Write the report."""
    files.write(path, render_runs(runs, comparison))


def render(run: Run, samples_of: SamplesOf) -> str:
    """Return the page of one run as text; `samples_of` reads the samples of one of its trials."""
    return render_runs(((run, samples_of),))


def render_runs(
    runs: Sequence[tuple[Run, SamplesOf]], comparison: ComparisonSection | None = None
) -> str:
    """Return the page as text; each run comes with the function that reads its samples.

    With `comparison` of two runs, the page begins with it.
    """
    parts = [
        _part(f"run-{number}-" if number > 1 else "", run, samples_of)
        for number, (run, samples_of) in enumerate(runs, 1)
    ]
    only = parts[0].run
    kind = "Task report" if parts[0].tasks else "Capacity report"
    several = comparison.title if comparison else f"Report of {len(parts)} runs"
    return rendered(
        "page.html.j2",
        [chart for part in parts for chart in _charts(part)],
        parts=parts,
        heads=HEADS,
        comparison=comparison,
        title=f"{kind} {only.run_id}" if len(parts) == 1 else several,
    )


def rendered(template: str, drawn: Sequence[Chart], **values: object) -> str:
    """Render a template of a page with these charts."""
    page: str = (
        _environment()
        .get_template(template)
        .render(
            charts=[_for_script(chart) for chart in drawn], version=version("loadstone"), **values
        )
    )
    return page


def _part(prefix: str, run: Run, samples_of: SamplesOf) -> RunSection:
    target = dict(run.environment.target)
    service, rally = target.get("release", "the identity service"), target.get("Rally")
    tasks = workload.sections(run, samples_of, prefix)
    title = f"How much load {_named(service)} sustains"
    if run.kind == "fault":
        title = f"What faults do to {_named(service)}"
    sections = tuple(
        _section(f"{prefix}finding-{number}", measurement, samples_of)
        for number, measurement in enumerate(run.searches, 1)
    )
    curves = steps.sections(run.measurements, prefix)
    return RunSection(
        run=run,
        title=(run.title or "A task") if tasks else title,
        prefix=prefix,
        measured_by=f"Rally {rally}" if rally else f"Loadstone {version('loadstone')}",
        sections=sections,
        curves=curves,
        tasks=tasks,
        overview=(
            *(overview.of_finding(one.anchor, one.measurement) for one in sections),
            *(overview.of_curve(one.anchor, one.curve) for one in curves),
            *(
                overview.of_workload(one.anchor, one.measurement)
                for one in tasks
                if one.measurement.policy != "steps" or not one.measurement.trials
            ),
        ),
        summary=_of_slas(run),
        critical=tuple(one for one in run.environment.audit if one.severity == CRITICAL),
    )


def _of_slas(run: Run) -> RowVerdict | None:
    """Return how many workloads met their SLA."""
    count = len(run.workloads)
    if not count:
        return None
    if fell_short := outcome.summary(run):
        return RowVerdict("degraded", fell_short)
    workloads, each = ("workload", "its") if count == 1 else ("workloads", "their")
    return RowVerdict("sustained", f"{count} {workloads} held {each} SLA")


def _charts(part: RunSection) -> Iterator[Chart]:
    for section in part.sections:
        yield from section.charts
    for curve in part.curves:
        yield from curve.charts
    for task in part.tasks:
        yield from (*task.charts, *task.output_charts, *task.hook_charts)


def _named(service: str) -> str:
    return service.replace("keystone", "Keystone", 1) if service[:8] == "keystone" else service


def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("loadstone.report.html", "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.policies["json.dumps_kwargs"] = {"allow_nan": False, "separators": (",", ":")}
    environment.globals.update(
        figures=figures,
        trial_figures=trial_figures,
        words=words,
        flame_tree=profile.tree,
        streak=streak,
        drawing=_drawing,
        badge=_badge,
        verdict=_verdict,
        sla=_sla,
        inlined=_inlined,
        mark=_mark,
    )
    return environment


def _section(anchor: str, measurement: Measurement, samples_of: SamplesOf) -> Section:
    return Section(
        anchor=anchor,
        title=names.of_measurement(measurement),
        measurement=measurement,
        tiles=tuple(_tiles(measurement)),
        charts=(
            *faults.charts(measurement, anchor, samples_of),
            *charts.of(measurement, anchor, samples_of),
        ),
        generator=generator_of(measurement),
        faults=faults.tables(measurement),
        headlines=tuple(fault_words.headlines(measurement)),
    )


def _tiles(measurement: Measurement) -> list[Tile]:
    tiles: list[Tile] = []
    if measurement.policy == "search":
        tiles += _capacity_tiles(measurement.capacity)
    if found := measurement.prediction:
        note = f"{prediction.interval(found)}, from {figures.rate(found.at_rps)} per second"
        tiles.append(Tile("Predicted N", prediction.rate(found), "per second", note))
    if measurement.policy == "fixed":
        tiles += _stretch_tiles(measurement)
    tiles += _latency_tiles(words.last_sustained(measurement))
    cost_s = measurement.cpu_per_request_s
    if cost_s is not None:
        tiles.append(
            Tile("CPU per request", *_split(cost_s * 1000), "of the service, over all trials")
        )
    near = words.at_n(measurement)
    if near is not None and near.usage is not None and near.usage.service_cpu_s is not None:
        busy = figures.percent(near.usage.machine_busy)
        cores = "of 1 core" if near.usage.cores == 1 else f"of {near.usage.cores} cores"
        tiles.append(Tile("Busy at N", busy, "", cores))
    return tiles


def _capacity_tiles(capacity: Capacity | None) -> list[Tile]:
    number = figures.n(capacity)
    unit = "" if number == figures.NOT_FOUND else "per second"
    if capacity is None or not words.has_interval(capacity):
        return [Tile("N, the capacity", number, unit, "no interval"), *_limit_tiles(capacity)]
    level = f"{figures.percent(capacity.confidence)} " if capacity.confidence > 0 else ""
    note = f"{figures.margin(capacity)} ({level}interval {figures.interval(capacity)})"
    return [Tile("N, the capacity", number, unit, note), *_limit_tiles(capacity)]


def _limit_tiles(capacity: Capacity | None) -> list[Tile]:
    if capacity is None or capacity.kind is None:
        return []
    limited = f"limited by {words.LIMITS[capacity.kind]}"
    return [Tile("What limits N", capacity.kind.value, "", limited)]


def _stretch_tiles(measurement: Measurement) -> list[Tile]:
    if not measurement.trials:
        return []
    stats = measurement.trials[0].stats
    completed = Tile("Completed", figures.rate(stats.throughput_rps), "per second", "")
    mean = Tile("Mean time", *_split(1000 * stats.service.mean_s), "of the successful ones")
    return [completed, mean]


def _latency_tiles(trial: Trial | None) -> list[Tile]:
    if trial is None:
        return []
    latency = trial.stats.total
    values = (1000 * latency.median_s, 1000 * latency.p95_s, 1000 * latency.p99_s)
    value = " / ".join(figures.plain_ms(value_ms) for value_ms in values)
    note = f"at {figures.rate(trial.rate_rps)} per second, which it sustained"
    return [Tile("Latency p50 / p95 / p99", value, "ms", note)]


def _split(value_ms: float) -> tuple[str, str]:
    value, _, unit = figures.milliseconds(value_ms).partition(" ")
    return value, unit


def _for_script(chart: Chart) -> dict[str, Any]:
    x, y = svg.scales(chart)
    size = {"left": x.start, "height": y.start + svg.BOTTOM} if chart.rows else {}
    axes = {"x_range": (x.low, x.high), "y_range": (y.low, y.high), "y_step": y.step}
    return {**asdict(chart), **axes, **size}


def _drawing(chart: Chart) -> Markup:
    return Markup(svg.draw(chart))  # noqa: S704 (drawn here, its texts escaped)


def _badge(trial: Trial) -> Markup:
    return _marked(charts.tone_of(trial), trial_figures.verdict(trial))


def _verdict(verdict: RowVerdict) -> Markup:
    return _marked(verdict.tone, verdict.text)


def _sla(*, held: bool) -> Markup:
    return _marked("sustained", "held") if held else _marked("degraded", "broken")


def _marked(tone: Tone, text: str) -> Markup:
    return Markup('<span class="badge {}">{} {}</span>').format(tone, _mark(tone), text)


def _mark(tone: Tone) -> Markup:
    size = 2 * BADGE + 2
    drawn = svg.mark(tone, BADGE + 1, BADGE + 1, BADGE - 1)
    svg_ = f'<svg width="{size}" height="{size}" aria-hidden="true">{drawn}</svg>'
    return Markup(svg_)  # noqa: S704 (numbers and a tone only)


def _inlined(name: str) -> Markup:
    text = resources.files("loadstone.report.html").joinpath(name).read_text("utf-8")
    return Markup(text)  # noqa: S704 (a file of this package)
