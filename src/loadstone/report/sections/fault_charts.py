"""Charts of faults: each repeat over time, with the fault's span."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from loadstone.analysis import series
from loadstone.analysis.fault import FaultEffect
from loadstone.analysis.fault_effect import kinds
from loadstone.analysis.iterations import Iterations, iterations
from loadstone.analysis.model import Trial
from loadstone.analysis.stats import pauses_s
from loadstone.diagnosis.resources import Resources
from loadstone.errors import EnvironmentUnusable
from loadstone.report.chart import Chart, ChartSeries, MarkedSpan, Tone
from loadstone.report.sections.charts import SamplesOf, pairs, utilisations
from loadstone.result.model import Measurement

Column = NDArray[Any]
MOST_POINTS = 2000
MOST_REPEATS = 5  # to draw
SHORTEST_S = 0.05  # of a span, so that an instant (a restart of memcached) is visible
MOST_BINS, LEAST_BIN_S = 120, 0.5
X_LABEL = "seconds since the load began"
FLOW = (
    "What succeeded and what failed, per second, and how many requests wait for their answer: the "
    "backlog that a fault leaves, and how long it takes to drain."
)
SUMMARY = (
    "Each dot is one request, at the moment at which it was due: how long it took, or how long it "
    "took to be told that it failed. Marked are the fault, until it was undone, and stretches in "
    "which requests were slower than before."
)


def charts(measurement: Measurement, prefix: str, samples_of: SamplesOf) -> tuple[Chart, ...]:
    """Return the charts of the first repeats that still have samples."""
    drawn: list[Chart] = []
    for trial in [one for one in measurement.trials if one.faults][:MOST_REPEATS]:
        try:
            samples = samples_of(trial)
        except EnvironmentUnusable:
            continue
        rows = iterations(samples)
        latency_s = (rows.done_ns - rows.due_ns) / 1e9
        latency_s -= pauses_s(samples, trial.actions, rows.number)
        marked = tuple(span for one in trial.faults for span in spans(one))
        name = f"{prefix}-fault-{trial.number}"
        drawn += [_latency(trial, rows, latency_s, name, marked), _flow(trial, rows, name, marked)]
        if trial.resources is not None and trial.resources.timelines:
            drawn.append(_resources(trial, trial.resources, name, marked))
    return tuple(drawn)


def _latency(
    trial: Trial, rows: Iterations, latency_s: Column, name: str, marked: tuple[MarkedSpan, ...]
) -> Chart:
    """Draw each request; failed ones by kind of failure."""
    ended = np.flatnonzero(rows.has_ended)
    due_s, latency_ms = rows.due_ns / 1e9, latency_s * 1e3
    kind = kinds(rows.outcome, rows.status)
    found = []
    for one in np.unique(kind[ended]).tolist():
        own = ended[kind[ended] == one]
        points = series.Points(due_s[own], latency_ms[own], rows.is_ok[own])
        few = series.thinned(points, MOST_POINTS if not one else MOST_POINTS // 4)
        tone: Tone = "degraded" if one else "sustained"
        found.append(
            ChartSeries(one or "succeeded", "cloud", tone, pairs(few.due_s, few.latency_ms))
        )
    return Chart(
        id=name,
        title=f"Repeat {trial.number}: {trial.faults[0].action}",
        summary=SUMMARY,
        x_label=X_LABEL,
        y_label="latency, ms",
        series=tuple(found),
        spans=marked,
    )


def _flow(trial: Trial, rows: Iterations, name: str, marked: tuple[MarkedSpan, ...]) -> Chart:
    """Draw throughput, failures and waiting requests over time."""
    ended = rows.has_ended
    due_s, done_s = rows.due_ns[ended] / 1e9, rows.done_ns[ended] / 1e9
    is_ok = rows.is_ok[ended]
    width_s = max(LEAST_BIN_S, float(done_s.max(initial=1.0)) / MOST_BINS)
    edges_s = np.arange(0.0, float(done_s.max(initial=1.0)) + width_s, width_s)
    middles = edges_s[:-1] + width_s / 2
    good = np.histogram(done_s[is_ok], edges_s)[0] / width_s
    bad = np.histogram(done_s[~is_ok], edges_s)[0] / width_s
    # Requests due but not ended, at the end of each bin.
    waiting = np.searchsorted(np.sort(due_s), edges_s[1:]) - np.searchsorted(
        np.sort(done_s), edges_s[1:]
    )
    lines: tuple[tuple[str, Tone, Column], ...] = (
        ("succeeded, per second", "sustained", good),
        ("failed, per second", "degraded", bad),
        ("waiting", "p95", waiting),
    )
    return Chart(
        id=f"{name}-flow",
        title=f"Repeat {trial.number}: throughput and backlog",
        summary=FLOW,
        x_label=X_LABEL,
        y_label="per second; requests",
        series=tuple(
            ChartSeries(label, "line", tone, pairs(middles, values))
            for label, tone, values in lines
        ),
        spans=marked,
    )


def _resources(
    trial: Trial, resources: Resources, name: str, marked: tuple[MarkedSpan, ...]
) -> Chart:
    return Chart(
        id=f"{name}-resources",
        title=f"Repeat {trial.number}: resources",
        summary="How busy the busiest resources were while the service was broken and came back.",
        x_label=X_LABEL,
        y_label="busy, %",
        series=utilisations(resources.timelines),
        spans=marked,
    )


def spans(effect: FaultEffect) -> tuple[MarkedSpan, ...]:
    """Return the time of the fault, and the periods that were slower than before."""
    end_s = max(effect.undone_s or effect.at_s, effect.at_s + SHORTEST_S)
    marked = [(effect.at_s, end_s, effect.action)]
    if effect.phases:
        marked = [(one.begin_s, one.end_s, one.words) for one in effect.phases]
    fault = (MarkedSpan(round(a, 3), round(b, 3), label, "degraded") for a, b, label in marked)
    slower = (
        MarkedSpan(round(begin, 3), round(end, 3), "slower than before", "undecided")
        for begin, end in effect.degraded
    )
    return (*fault, *slower)
