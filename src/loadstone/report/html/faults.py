"""Faults on the page: each repeat over time with the fault's span, and a table over repeats."""

from collections.abc import Callable
from dataclasses import dataclass

from loadstone.analysis import series
from loadstone.analysis.fault import FaultEffect
from loadstone.analysis.fault_effect import summarize
from loadstone.analysis.model import Trial
from loadstone.engine.samples import Samples
from loadstone.errors import EnvironmentUnusable
from loadstone.report import faults
from loadstone.report.html.charts import Chart, ChartSeries, MarkedSpan, Xy
from loadstone.result import Measurement

SamplesOf = Callable[[Trial], Samples]
MOST_POINTS = 2000
MOST_REPEATS = 5  # that are drawn
SHORTEST_S = 0.05  # of a span: a restart of memcached is an instant, and must be seen
SUMMARY = (
    "Each dot is one request, at the moment at which it was due: how long it took, or how long it "
    "took to be told that it failed. Marked are the fault, until it was undone, and stretches in "
    "which requests were slower than before."
)


@dataclass(frozen=True, slots=True)
class FaultTable:
    """One action over its repeats: rows of name, mean, interval and what was published."""

    title: str
    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    sentences: tuple[str, ...]


def tables(measurement: Measurement) -> tuple[FaultTable, ...]:
    """Return a table for each action."""
    found = faults.effects(measurement)
    made = []
    for summary in summarize(found):
        own = [one for one in found if one.action == summary.action]
        heads, rows = faults.rows(summary)
        title = f"{summary.action}, {summary.repeats} times"
        made.append(FaultTable(title, heads, rows, tuple(faults.sentences(summary, own))))
    return tuple(made)


def charts(measurement: Measurement, prefix: str, samples_of: SamplesOf) -> tuple[Chart, ...]:
    """Return a chart for each of the first repeats whose samples are still there."""
    drawn = []
    for trial in [one for one in measurement.trials if one.faults][:MOST_REPEATS]:
        try:
            every = series.points(samples_of(trial))
        except EnvironmentUnusable:
            continue
        drawn.append(_chart(trial, series.thinned(every, MOST_POINTS), prefix))
    return tuple(drawn)


def _chart(trial: Trial, points: series.Points, prefix: str) -> Chart:
    rows = list(
        zip(points.due_s.tolist(), points.latency_ms.tolist(), points.is_ok.tolist(), strict=True)
    )
    good: tuple[Xy, ...] = tuple((at, ms) for at, ms, is_ok in rows if is_ok)
    bad: tuple[Xy, ...] = tuple((at, ms) for at, ms, is_ok in rows if not is_ok)
    return Chart(
        id=f"{prefix}-fault-{trial.number}",
        title=f"Repeat {trial.number}: {trial.faults[0].action}",
        summary=SUMMARY,
        x_label="seconds since the load began",
        y_label="latency, ms",
        series=(
            ChartSeries("ended well", "cloud", "sustained", good),
            ChartSeries("failed", "cloud", "degraded", bad),
        ),
        from_zero_y=True,
        from_zero_x=True,
        spans=tuple(span for one in trial.faults for span in spans(one)),
    )


def spans(effect: FaultEffect) -> tuple[MarkedSpan, ...]:
    """Return when the fault was, and the stretches that were slower than before."""
    end_s = max(effect.undone_s or effect.at_s, effect.at_s + SHORTEST_S)
    marked = [(effect.at_s, end_s, effect.action)]
    if effect.phases:
        marked = [(one.begin_s, one.end_s, one.words) for one in effect.phases]
    fault = (MarkedSpan(round(a, 3), round(b, 3), words, "degraded") for a, b, words in marked)
    slower = (
        MarkedSpan(round(begin, 3), round(end, 3), "slower than before", "undecided")
        for begin, end in effect.degraded
    )
    return (*fault, *slower)
