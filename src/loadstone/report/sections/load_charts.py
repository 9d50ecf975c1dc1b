"""Charts of a fixed load: each iteration, how many at once, a histogram."""

from dataclasses import replace

import numpy as np

from loadstone.analysis.stats import EndedIterations, ended
from loadstone.errors import EnvironmentUnusable
from loadstone.report.chart import Chart, ChartSeries, MarkedSpan, Xy, with_data
from loadstone.report.sections.charts import MOST_POINTS, SamplesOf, pairs, resources_over_time
from loadstone.result.model import Measurement

PROFILE_POINTS = 120
MARKED = "Marked: hooks, from their beginning to their end; those that failed in another colour."
MOST_BARS = 60


def charts(anchor: str, measurement: Measurement, samples_of: SamplesOf) -> tuple[Chart, ...]:
    """Return the charts of a workload whose samples are still there."""
    if measurement.trial is None:
        return ()
    try:
        rows = ended(samples_of(measurement.trial), measurement.trial.actions)
    except EnvironmentUnusable:
        return ()
    profile = replace(_profile(anchor, rows), spans=_spans(measurement))
    if profile.spans:
        profile = replace(profile, summary=f"{profile.summary} {MARKED}")
    watched = resources_over_time((measurement.trial,), anchor)
    found = (_durations(anchor, rows), watched, profile, _histogram(anchor, rows))
    return with_data(found)


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
                "succeeded", "cloud", "p50", pairs(rows.start_s[good], rows.duration_s[good])
            ),
            ChartSeries(
                "failed", "cloud", "degraded", pairs(rows.start_s[bad], rows.duration_s[bad])
            ),
        ),
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
            ChartSeries("iterations", "area", "metered", pairs(at, at_once.astype(np.float64))),
        ),
    )


def _histogram(anchor: str, rows: EndedIterations) -> Chart:
    good = rows.duration_s[~rows.failed]
    data: tuple[Xy, ...] = ()
    if len(good) > 1:
        counts, edges = np.histogram(good, bins=bars(good))
        data = pairs(edges, np.append(counts, 0).astype(np.float64))
    return Chart(
        id=f"{anchor}-histogram",
        title="Histogram of durations",
        summary="Number of successful iterations by duration.",
        x_label="seconds",
        y_label="iterations",
        series=(ChartSeries("iterations", "bars", "p50", data),),
        from_zero_x=False,
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


def _spans(measurement: Measurement) -> tuple[MarkedSpan, ...]:
    """Return when each run of a hook began and ended, in seconds since the load began."""
    start_s = measurement.start_s or 0.0
    return tuple(
        MarkedSpan(
            low=round(run.started_at_s - start_s, 3),
            high=round(run.finished_at_s - start_s, 3),
            label=f"hook {run.hook + 1}",
            tone="degraded" if run.error else "sustained",
        )
        for run in measurement.hook_runs
    )
