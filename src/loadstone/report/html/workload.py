"""A task's workloads as the page shows them."""

import json
from dataclasses import dataclass, replace

import numpy as np

from loadstone.analysis.model import Stats
from loadstone.analysis.stats import EndedIterations, ended
from loadstone.errors import EnvironmentUnusable
from loadstone.monitor.usage import deaths
from loadstone.report import figures, identity, profile, usage
from loadstone.report.html import hooks, outputs
from loadstone.report.html.charts import (
    MOST_POINTS,
    Chart,
    ChartSeries,
    SamplesOf,
    Xy,
    resources_over_time,
)
from loadstone.report.html.hooks import HookRow
from loadstone.report.html.overview import RowVerdict, of_sla
from loadstone.report.html.printed import PrintedChart
from loadstone.report.html.steps import anchor_of
from loadstone.report.steps import load_of
from loadstone.report.words import sentence
from loadstone.report.workload import cells, load_in_words, named, reduction
from loadstone.result.model import Measurement, Run

PROFILE_POINTS = 120
MARKED = "Marked: hooks, from their beginning to their end; those that failed in another colour."
MOST_BARS = 60


@dataclass(frozen=True, slots=True)
class TaskSection:
    """One workload."""

    anchor: str
    measurement: Measurement
    step: str  # the load, if it is a step
    load: str
    verdict: RowVerdict
    notes: tuple[str, ...]
    rows: tuple[tuple[str, tuple[str, ...]], ...]
    charts: tuple[Chart, ...]
    hooks: tuple[HookRow, ...]
    printed_by_hooks: tuple[PrintedChart, ...]
    outputs: tuple[PrintedChart, ...]
    spec: str

    @property
    def hook_charts(self) -> tuple[Chart, ...]:
        """Charts that hooks printed and that can be drawn."""
        return tuple(one.chart for one in self.printed_by_hooks if one.chart)

    @property
    def output_charts(self) -> tuple[Chart, ...]:
        """Charts that iterations produced and that can be drawn."""
        return tuple(one.chart for one in self.outputs if one.chart)


def sections(run: Run, samples_of: SamplesOf, prefix: str = "") -> tuple[TaskSection, ...]:
    """Return the workloads of a task's result."""
    return tuple(
        _section(anchor_of(index, prefix), measurement, samples_of)
        for index, measurement in enumerate(run.workloads)
    )


def _section(anchor: str, measurement: Measurement, samples_of: SamplesOf) -> TaskSection:
    stats = measurement.stats
    return TaskSection(
        anchor=anchor,
        measurement=measurement,
        step=f" at {load_of(measurement)}" if measurement.policy == "steps" else "",
        load=load_in_words(measurement),
        verdict=of_sla(measurement),
        notes=_notes(measurement, stats),
        rows=_rows(stats) if stats else (),
        charts=_charts(anchor, measurement, samples_of) if stats else (),
        hooks=hooks.rows(measurement),
        printed_by_hooks=hooks.printed_charts(anchor, measurement),
        outputs=outputs.printed_charts(anchor, measurement),
        spec=json.dumps(json.loads(measurement.spec), indent=2),
    )


def _notes(measurement: Measurement, stats: Stats | None) -> tuple[str, ...]:
    notes = [measurement.failure] if measurement.failure else []
    if measurement.resources is not None:
        notes.append(measurement.resources.bottleneck.sentence)
    notes += identity.lines(measurement.trial)
    notes += map(sentence, profile.sentences(measurement))
    if stats is not None:
        total = stats.total
        notes.append(
            f"{total.ok:,} of {total.count:,} iterations succeeded, "
            f"{figures.rate(stats.throughput_rps)} a second. The load lasted "
            f"{stats.load_s:.2f} s, with set-up and clean-up {measurement.wall_s:.1f} s."
        )
    if measurement.usage is not None and stats is not None:
        notes.append(f"{usage.line(measurement.usage, stats.total.ok)}.")
        notes += [f"Under load {line}." for line in deaths(measurement.usage)]
    if measurement.reduced:
        notes.append(f"Not the load that the file asks for: {reduction(measurement)}.")
    if measurement.requests_as_rally:
        notes.append("Iterations sent Rally's own sequence of requests, for comparison with it.")
    if measurement.health is not None and measurement.health.http == "2":
        notes.append("Requests went over HTTP/2, one connection a thread of the load generator.")
    if measurement.hook_runs:
        failed = sum(run.status == "failed" for run in measurement.hook_runs)
        notes.append(f"Hooks acted {len(measurement.hook_runs)} times, {failed} of them failed.")
    notes += outputs.omissions(measurement)
    if measurement.health is not None and not measurement.health.is_valid:
        notes.append(f"The load generator was the limit: {'; '.join(measurement.health.limits)}.")
    if measurement.health is not None and measurement.health.ceiling:
        notes.append(f"The rate is not the service's: {measurement.health.ceiling}.")
    return tuple(notes)


def _rows(stats: Stats) -> tuple[tuple[str, tuple[str, ...]], ...]:
    rows = [(named(row), cells(row)) for row in stats.actions]
    rows += [("total", cells(stats.total)), ("service time", cells(stats.service))]
    if stats.idle is not None:
        rows.append(("idle", cells(stats.idle)))
    return tuple(rows)


def _charts(anchor: str, measurement: Measurement, samples_of: SamplesOf) -> tuple[Chart, ...]:
    if measurement.trial is None:
        return ()
    try:
        rows = ended(samples_of(measurement.trial), measurement.trial.actions)
    except EnvironmentUnusable:
        return ()
    profile = replace(_profile(anchor, rows), spans=hooks.spans(measurement))
    if profile.spans:
        profile = replace(profile, summary=f"{profile.summary} {MARKED}")
    watched = resources_over_time((measurement.trial,), anchor)
    charts = (_durations(anchor, rows), watched, profile, _histogram(anchor, rows))
    return tuple(chart for chart in charts if any(series.data for series in chart.series))


def _durations(anchor: str, rows: EndedIterations) -> Chart:
    # Of many iterations, show the slowest and a selection of the others.
    order = np.argsort(rows.duration_s)[::-1]
    few = np.concatenate([order[: MOST_POINTS // 4], order[:: -(-len(order) // MOST_POINTS) or 1]])
    few = np.unique(few)
    good = few[~rows.failed[few]]
    bad = few[rows.failed[few]]
    return Chart(
        id=f"{anchor}-durations",
        title="Duration of each iteration",
        summary="Each dot is an iteration, at the moment at which it was due.",
        x_label="seconds since the load began",
        y_label="seconds",
        series=(
            ChartSeries(
                "succeeded", "cloud", "p50", _pairs(rows.start_s[good], rows.duration_s[good])
            ),
            ChartSeries(
                "failed", "cloud", "degraded", _pairs(rows.start_s[bad], rows.duration_s[bad])
            ),
        ),
        from_zero_y=True,
        from_zero_x=True,
    )


def _profile(anchor: str, rows: EndedIterations) -> Chart:
    starts = np.sort(rows.start_s)
    ends = np.sort(rows.start_s + rows.duration_s + rows.idle_s)
    at = np.linspace(0.0, float(ends.max(initial=0.0)), PROFILE_POINTS)
    begun = np.searchsorted(starts, at, side="right")
    at_once = begun - np.searchsorted(ends, at, side="right")
    return Chart(
        id=f"{anchor}-profile",
        title="Load profile",
        summary="Iterations that were due and had not ended.",
        x_label="seconds since the load began",
        y_label="iterations",
        series=(
            ChartSeries("iterations", "area", "metered", _pairs(at, at_once.astype(np.float64))),
        ),
        from_zero_y=True,
        from_zero_x=True,
    )


def _histogram(anchor: str, rows: EndedIterations) -> Chart:
    good = rows.duration_s[~rows.failed]
    data: tuple[Xy, ...] = ()
    if len(good) > 1:
        counts, edges = np.histogram(good, bins=bars(good))
        data = _pairs(edges, np.append(counts, 0).astype(np.float64))
    return Chart(
        id=f"{anchor}-histogram",
        title="Histogram of durations",
        summary="Number of successful iterations by duration.",
        x_label="seconds",
        y_label="iterations",
        series=(ChartSeries("iterations", "bars", "p50", data),),
        from_zero_y=True,
    )


def bars(values: np.typing.NDArray[np.float64]) -> int:
    """Return the number of bars: Freedman and Diaconis, but at least Sturges' number.

    numpy's "auto" is the same without a maximum: one late value among many equal ones makes
    millions of bins.
    """
    sturges = np.log2(len(values)) + 1
    low, q1, q3, high = np.percentile(values, [0, 25, 75, 100])
    width = 2 * (q3 - q1) / len(values) ** (1 / 3)
    freedman_diaconis = (high - low) / width if width > 0 else 0.0
    return int(np.ceil(min(MOST_BARS, max(sturges, freedman_diaconis))))


def _pairs(x: np.typing.NDArray[np.float64], y: np.typing.NDArray[np.float64]) -> tuple[Xy, ...]:
    return tuple(zip(x.round(6).tolist(), y.round(6).tolist(), strict=True))
