"""The curve of a task's steps on the page, over the stepped load."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from loadstone.analysis.model import Stats
from loadstone.report.html.charts import Chart, ChartSeries, Tone, Xy
from loadstone.report.steps import Curve, WorkloadStep, curves, row
from loadstone.result.model import Measurement

LABELS = {
    "concurrency": "iterations at a time (concurrency)",
    "rps": "iterations offered per second (rps)",
}


@dataclass(frozen=True, slots=True)
class StepRow:
    """One step in the table; `anchor` is that of its workload."""

    anchor: str
    value: str
    cells: tuple[str, ...]
    held: str


@dataclass(frozen=True, slots=True)
class CurveSection:
    """One workload's curve."""

    anchor: str
    curve: Curve
    headline: str
    rows: tuple[StepRow, ...]
    charts: tuple[Chart, ...]


def sections(measurements: Sequence[Measurement], prefix: str = "") -> tuple[CurveSection, ...]:
    """Return the curves of a task's result."""
    return tuple(
        _section(f"{prefix}steps-{number}", curve, prefix)
        for number, curve in enumerate(curves(measurements), 1)
    )


def anchor_of(position: int, prefix: str = "") -> str:
    """Return the anchor of a task's workload in the page."""
    return f"{prefix}workload-{position + 1}"


def _section(anchor: str, curve: Curve, prefix: str) -> CurveSection:
    charts = (_throughput(anchor, curve), _latency(anchor, curve), _success(anchor, curve))
    return CurveSection(
        anchor=anchor,
        curve=curve,
        headline=_headline(curve),
        rows=tuple(_row(step, anchor_of(step.position, prefix)) for step in curve.steps),
        charts=tuple(chart for chart in charts if any(line.data for line in chart.series)),
    )


def _row(step: WorkloadStep, anchor: str) -> StepRow:
    return StepRow(anchor, f"{step.value:g}", row(step), _held(step.measurement))


def _headline(curve: Curve) -> str:
    first, last = curve.steps[0], curve.steps[-1]
    span = f"{curve.setting} {first.value:g}"
    if last is not first:
        span += f" to {last.value:g} in {len(curve.steps)} steps"
    broken = [f"{step.value:g}" for step in curve.steps if not step.measurement.checks_passed]
    verdict = f"its SLA was broken at {', '.join(broken)}" if broken else "its SLA held"
    return f"{curve.scenario}, {span}: {verdict}"


def _held(measurement: Measurement) -> str:
    if measurement.failure is not None:
        return measurement.failure
    return "held" if measurement.checks_passed else "broken"


def _data(curve: Curve, figure: Callable[[Stats], float]) -> tuple[Xy, ...]:
    return tuple(
        (step.value, round(figure(step.measurement.stats), 6))
        for step in curve.steps
        if step.measurement.stats is not None
    )


def _throughput(anchor: str, curve: Curve) -> Chart:
    data = _data(curve, lambda stats: stats.throughput_rps)
    held = {step.value for step in curve.steps if step.measurement.checks_passed}
    lines: list[ChartSeries] = []
    if curve.setting == "rps":
        ends = (curve.steps[0].value, curve.steps[-1].value)
        lines.append(ChartSeries("all completed", "dashed", "even", tuple((r, r) for r in ends)))
    lines.append(ChartSeries("throughput", "line", "metered", data))
    kinds: tuple[tuple[str, Tone, bool], ...] = (
        ("SLA held", "sustained", True),
        ("SLA broken", "degraded", False),
    )
    for name, tone, good in kinds:
        points = tuple(point for point in data if (point[0] in held) is good)
        if points:
            lines.append(ChartSeries(name, "points", tone, points))
    return Chart(
        id=f"{anchor}-throughput",
        title="Throughput",
        summary="Successful iterations per second, at each step. Where it no longer rises, "
        "more load brings only more waiting.",
        x_label=LABELS[curve.setting],
        y_label="iterations per second",
        series=tuple(lines),
        from_zero_y=True,
    )


def _latency(anchor: str, curve: Curve) -> Chart:
    lines: tuple[tuple[str, Tone, Callable[[Stats], float]], ...] = (
        ("half within", "p50", lambda stats: stats.total.median_s),
        ("95 % within", "p95", lambda stats: stats.total.p95_s),
        ("99 % within", "p99", lambda stats: stats.total.p99_s),
    )
    ended_well = [step for step in curve.steps if _has_times(step.measurement.stats)]
    good = Curve(curve.setting, tuple(ended_well))
    return Chart(
        id=f"{anchor}-latency",
        title="Response times",
        summary="Of the successful iterations at each step, from the moment at which each was due.",
        x_label=LABELS[curve.setting],
        y_label="seconds",
        series=tuple(ChartSeries(name, "line", tone, _data(good, f)) for name, tone, f in lines),
        from_zero_y=True,
    )


def _has_times(stats: Stats | None) -> bool:
    return stats is not None and stats.total.ok > 0


def _success(anchor: str, curve: Curve) -> Chart:
    data = _data(curve, lambda stats: stats.total.success * 100)
    return Chart(
        id=f"{anchor}-success",
        title="Success rate",
        summary="Share of successful iterations at each step.",
        x_label=LABELS[curve.setting],
        y_label="% of the iterations",
        series=(ChartSeries("succeeded", "line", "sustained", data),),
        from_zero_y=True,
    )
