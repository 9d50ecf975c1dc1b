"""A workload that was repeated at rising load: its curve over the steps."""

import math
from collections.abc import Callable
from dataclasses import dataclass

from loadstone.analysis.model import Stats
from loadstone.report import figures
from loadstone.report.chart import Chart, ChartSeries, Tone, Xy, with_data
from loadstone.report.section import Answer, Cell, Certainty, Fact, Row, Table
from loadstone.report.sections.tables import cells, columns, held
from loadstone.result.model import Measurement
from loadstone.result.task_workload import TaskWorkload

LABELS = {
    "concurrency": "iterations at a time (concurrency)",
    "rps": "iterations offered per second (rps)",
}


@dataclass(frozen=True, slots=True)
class WorkloadStep:
    """A workload at one load."""

    value: float
    measurement: Measurement


@dataclass(frozen=True, slots=True)
class Curve:
    """Steps of one workload that had a load; `setting` is the runner's setting that rises."""

    setting: str
    steps: tuple[WorkloadStep, ...]

    @property
    def has_sla(self) -> bool:
        """Whether there are criteria that can hold or be broken."""
        return any(step.measurement.checks for step in self.steps)

    @property
    def scenario(self) -> str:
        """Rally's short name."""
        return self.steps[0].measurement.scenario


def curve_of(measurement: Measurement) -> Curve | None:
    """Return the curve of a workload that was repeated; None without one."""
    if measurement.policy != "steps" or not measurement.trials:
        return None
    loaded = (one for one in measurement.each if one.trials)
    setting, _ = setting_and_value(measurement)
    return Curve(setting, tuple(WorkloadStep(setting_and_value(one)[1], one) for one in loaded))


def load_of(measurement: Measurement) -> str:
    """Return the load of a step, as "concurrency 20"."""
    setting, value = setting_and_value(measurement)
    return f"{setting} {value:g}"


def setting_and_value(measurement: Measurement) -> tuple[str, float]:
    """Return the setting that rises, and its value in this step: ("concurrency", 20.0)."""
    workload = measurement.workload or TaskWorkload()
    setting = "rps" if workload.runner_name == "rps" else "concurrency"
    return setting, float(workload.runner_settings.get(setting, 1))


def answer(curve: Curve) -> Answer:
    """Return the highest throughput over the steps whose SLA held, and where it was broken.

    Over all steps if it held at none.
    """
    shown = [step.measurement for step in curve.steps if step.measurement.stats]
    held = [one for one in shown if one.checks_passed] or shown
    rates = [one.stats.throughput_rps for one in held if one.stats]
    peak = max(rates, default=math.nan)
    value = peak if math.isfinite(peak) else None
    said = f"{_said(curve)}."
    is_part = curve.has_sla and any(one.checks_passed for one in shown)
    label = "highest throughput with its SLA held" if is_part else "highest throughput"
    return Answer(label, figures.rate(peak), "per second", said, value)


def _said(curve: Curve) -> str:
    """Say over which loads it was made, and where the SLA was broken."""
    broken = [f"{step.value:g}" for step in curve.steps if not step.measurement.checks_passed]
    unbroken = "its SLA held" if curve.has_sla else "it has no SLA"
    verdict = f"its SLA was broken at {', '.join(broken)}" if broken else unbroken
    return f"{curve.scenario}, {_span(curve)}: {verdict}"


def _span(curve: Curve) -> str:
    first, last = curve.steps[0].value, curve.steps[-1].value
    count = len(curve.steps)
    over = f" to {last:g} in {count} steps" if count > 1 else ""
    return f"{curve.setting} {first:g}{over}"


def sla(curve: Curve) -> Certainty | None:
    """Return whether the SLA held at every step; None without criteria."""
    if not curve.has_sla:
        return None
    broken = tuple(step for step in curve.steps if not step.measurement.checks_passed)
    if broken and curve.steps[-len(broken) :] == broken:
        return Certainty("degraded", f"SLA broken from {curve.setting} {broken[0].value:g} on")
    if broken:
        listed = ", ".join(f"{step.value:g}" for step in broken)
        return Certainty("degraded", f"SLA broken at {curve.setting} {listed}")
    return Certainty("sustained", "SLA held")


def facts(curve: Curve) -> tuple[Fact, ...]:
    """Return the loads and the range of the 95th percentile."""
    totals = [step.measurement.stats.total for step in curve.steps if step.measurement.stats]
    p95s = [total.p95_s for total in totals if math.isfinite(total.p95_s)]
    found = [Fact("load", _span(curve), rank=2, is_column=True)]
    if p95s:
        ends = dict.fromkeys((figures.plain_s(min(p95s)), figures.plain_s(max(p95s))))
        text = f"{' to '.join(ends)} s"
        found.append(Fact("p95", text, rank=3, is_column=True))
    return tuple(found)


def table(curve: Curve, anchors: tuple[str, ...]) -> Table:
    """Return a row for each step; `anchors` are the ids of the steps' sections."""
    numbers = (curve.setting, "per second", "median s", "95%ile s", "99%ile s", "success")
    heads = columns(numbers=numbers)
    rows = tuple(
        Row((f"{step.value:g}", *_row(step.measurement)), target=anchor)
        for step, anchor in zip(curve.steps, anchors, strict=True)
    )
    title = f"Steps of {curve.scenario}"
    return Table(title, (*heads, *columns("SLA")), rows, is_primary=True)


def _row(measurement: Measurement) -> tuple[Cell, ...]:
    judged = held(is_held=measurement.checks_passed) if measurement.checks else figures.MISSING
    sla = measurement.failure or judged
    stats = measurement.stats
    if stats is None:
        return (*(figures.MISSING,) * 5, sla)
    _, median, _, p95, p99, _, _, success, _ = cells(stats.total)
    return figures.rate(stats.throughput_rps), median, p95, p99, success, sla


def charts(anchor: str, curve: Curve) -> tuple[Chart, ...]:
    """Return throughput, response times and success over the load."""
    found = (_throughput(anchor, curve), _latency(anchor, curve), _success(anchor, curve))
    return with_data(found)


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
    for name, tone, good in kinds if curve.has_sla else ():
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
        from_zero_x=False,
    )


def _latency(anchor: str, curve: Curve) -> Chart:
    lines: tuple[tuple[str, Tone, Callable[[Stats], float]], ...] = (
        ("half within", "p50", lambda stats: stats.total.median_s),
        ("95 % within", "p95", lambda stats: stats.total.p95_s),
        ("99 % within", "p99", lambda stats: stats.total.p99_s),
    )
    measured = ((step, step.measurement.stats) for step in curve.steps)
    good = Curve(curve.setting, tuple(step for step, stats in measured if stats and stats.ok))
    return Chart(
        id=f"{anchor}-latency",
        title="Response times",
        summary="Of the successful iterations at each step, from the moment at which each was due.",
        x_label=LABELS[curve.setting],
        y_label="seconds",
        series=tuple(ChartSeries(name, "line", tone, _data(good, f)) for name, tone, f in lines),
        from_zero_x=False,
    )


def _success(anchor: str, curve: Curve) -> Chart:
    data = _data(curve, lambda stats: stats.total.success * 100)
    return Chart(
        id=f"{anchor}-success",
        title="Success rate",
        summary="Share of successful iterations at each step.",
        x_label=LABELS[curve.setting],
        y_label="% of the iterations",
        series=(ChartSeries("succeeded", "line", "sustained", data),),
        from_zero_x=False,
    )
