"""The page: what the template shows, and where it is written."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from importlib import resources
from importlib.metadata import version
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from loadstone import files
from loadstone.analysis.model import Trial
from loadstone.report import figures, words
from loadstone.report.generator import Generator, generator_of
from loadstone.report.html import charts, steps, svg, workload
from loadstone.report.html.charts import Chart, SamplesOf, Tone
from loadstone.report.html.steps import CurveSection
from loadstone.report.html.workload import TaskSection
from loadstone.report.workload import HEADS
from loadstone.result import Finding, Result
from loadstone.search.model import Capacity

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
    """One finding as the page shows it."""

    anchor: str
    finding: Finding
    tiles: tuple[Tile, ...]
    charts: tuple[Chart, ...]
    generator: Generator | None


@dataclass(frozen=True, slots=True)
class Part:
    """One run as the page shows it; `prefix` begins its anchors."""

    result: Result
    title: str
    prefix: str
    measured_by: str
    sections: tuple[Section, ...]
    curves: tuple[CurveSection, ...]
    tasks: tuple[TaskSection, ...]


def write(result: Result, samples_of: SamplesOf, path: Path) -> None:
    """Write the report of one run."""
    write_runs(((result, samples_of),), path)


def write_runs(runs: Sequence[tuple[Result, SamplesOf]], path: Path) -> None:
    """Write the report."""
    files.write(path, render_runs(runs))


def render(result: Result, samples_of: SamplesOf) -> str:
    """Give the page of one run as text; `samples_of` reads the samples of one of its trials."""
    return render_runs(((result, samples_of),))


def render_runs(runs: Sequence[tuple[Result, SamplesOf]]) -> str:
    """Give the page as text, each run with what reads its samples."""
    parts = [
        _part(f"run-{number}-" if number > 1 else "", result, samples_of)
        for number, (result, samples_of) in enumerate(runs, 1)
    ]
    only = parts[0].result
    kind = "Task report" if parts[0].tasks else "Capacity report"
    return rendered(
        "page.html.j2",
        [chart for part in parts for chart in _charts(part)],
        parts=parts,
        heads=HEADS,
        title=f"{kind} {only.run_id}" if len(parts) == 1 else f"Report of {len(parts)} runs",
    )


def rendered(template: str, every: Sequence[Chart], **values: object) -> str:
    """Give a page that draws these charts."""
    page: str = (
        _environment()
        .get_template(template)
        .render(
            charts=[_for_script(chart) for chart in every], version=version("loadstone"), **values
        )
    )
    return page


def _part(prefix: str, result: Result, samples_of: SamplesOf) -> Part:
    target = dict(result.environment.target)
    service, rally = target.get("release", "the identity service"), target.get("Rally")
    tasks = workload.sections(result, samples_of, prefix)
    bears = f"How much load {_named(service)} bears"
    return Part(
        result=result,
        title=(result.title or "A task") if tasks else bears,
        prefix=prefix,
        measured_by=f"Rally {rally}" if rally else f"Loadstone {version('loadstone')}",
        sections=tuple(
            _section(f"{prefix}finding-{number}", finding, samples_of)
            for number, finding in enumerate(result.findings, 1)
        ),
        curves=steps.sections(result.performances, prefix),
        tasks=tasks,
    )


def _charts(part: Part) -> Iterator[Chart]:
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
        figures=figures, words=words, drawing=_drawing, badge=_badge, mark=_mark, inlined=_inlined
    )
    return environment


def _section(anchor: str, finding: Finding, samples_of: SamplesOf) -> Section:
    return Section(
        anchor=anchor,
        finding=finding,
        tiles=tuple(_tiles(finding)),
        charts=charts.of(finding, anchor, samples_of),
        generator=generator_of(finding),
    )


def _tiles(finding: Finding) -> list[Tile]:
    tiles = _capacity_tiles(finding.capacity) if finding.is_search else _stretch_tiles(finding)
    tiles += _latency_tiles(words.last_sustained(finding))
    cost_s = finding.cpu_per_request_s
    if cost_s is not None:
        tiles.append(Tile("CPU per request", *_split(cost_s * 1000), "in the service's processes"))
    near = words.at_n(finding)
    if near is not None and near.usage is not None and near.usage.service_cpu_s is not None:
        busy = figures.percent(near.usage.machine_busy)
        cores = "of 1 core" if near.usage.cores == 1 else f"of {near.usage.cores} cores"
        tiles.append(Tile("Busy at N", busy, "", cores))
    return tiles


def _capacity_tiles(capacity: Capacity | None) -> list[Tile]:
    number = figures.n(capacity)
    unit = "" if number == figures.NOT_FOUND else "per second"
    if capacity is None or not words.has_interval(capacity):
        return [Tile("N, the capacity", number, unit, "no interval")]
    tile = Tile("N, the capacity", number, unit, f"interval {figures.interval(capacity)}")
    if capacity.confidence <= 0:
        return [tile]
    sure = figures.percent(capacity.confidence)
    return [tile, Tile("How sure", sure, "", "of such searches hold the truth in their interval")]


def _stretch_tiles(finding: Finding) -> list[Tile]:
    if not finding.trials:
        return []
    summary = finding.trials[0].summary
    completed = Tile("Completed", figures.rate(summary.completed_rps), "per second", "")
    mean = Tile("Mean time", *_split(summary.service_time.mean_ms), "of those that ended well")
    return [completed, mean]


def _latency_tiles(trial: Trial | None) -> list[Tile]:
    if trial is None:
        return []
    latency = trial.summary.latency
    values = (latency.p50_ms, latency.p95_ms, latency.p99_ms)
    value = " / ".join(figures.plain_ms(value_ms) for value_ms in values)
    note = f"at {figures.rate(trial.rate_rps)} per second, the highest sustained trial"
    return [Tile("Latency p50 / p95 / p99", value, "ms", note)]


def _split(value_ms: float) -> tuple[str, str]:
    value, _, unit = figures.milliseconds(value_ms).partition(" ")
    return value, unit


def _for_script(chart: Chart) -> dict[str, Any]:
    x, y = svg.scales(chart)
    return {**asdict(chart), "x_range": (x.low, x.high), "y_range": (y.low, y.high)}


def _drawing(chart: Chart) -> Markup:
    return Markup(svg.draw(chart))  # noqa: S704 (drawn here, its words escaped)


def _badge(trial: Trial) -> Markup:
    tone = charts.tone_of(trial)
    return Markup('<span class="badge {}">{} {}</span>').format(
        tone, _mark(tone), figures.verdict(trial)
    )


def _mark(tone: Tone) -> Markup:
    size = 2 * BADGE + 2
    drawn = svg.mark(tone, BADGE + 1, BADGE + 1, BADGE - 1)
    svg_ = f'<svg width="{size}" height="{size}" aria-hidden="true">{drawn}</svg>'
    return Markup(svg_)  # noqa: S704 (numbers and a tone only)


def _inlined(name: str) -> Markup:
    text = resources.files("loadstone.report.html").joinpath(name).read_text("utf-8")
    return Markup(text)  # noqa: S704 (a file of this package)
