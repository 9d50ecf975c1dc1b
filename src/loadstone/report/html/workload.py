"""A task's workloads as the page shows them."""

import json
from dataclasses import dataclass, replace

import numpy as np

from loadstone.analysis.performance import Ended, Showing, ended
from loadstone.errors import EnvironmentUnusable
from loadstone.report import figures
from loadstone.report.html import hooks, outputs
from loadstone.report.html.charts import MOST_POINTS, Chart, SamplesOf, Series, Xy
from loadstone.report.html.hooks import Ran
from loadstone.report.html.printed import Said
from loadstone.report.html.steps import anchor_of
from loadstone.report.steps import load_of
from loadstone.report.workload import cells, named, reduction
from loadstone.result import Performance, Result

PROFILE_POINTS = 120
MARKED = "Marked: hooks, from their beginning to their end; those that failed in another colour."
MOST_BARS = 60


@dataclass(frozen=True, slots=True)
class TaskSection:
    """One workload."""

    anchor: str
    performance: Performance
    headline: str
    step: str  # at which load, of a step
    said: tuple[str, ...]
    rows: tuple[tuple[str, tuple[str, ...]], ...]
    charts: tuple[Chart, ...]
    hooks: tuple[Ran, ...]
    said_by_hooks: tuple[Said, ...]
    outputs: tuple[Said, ...]
    given: str

    @property
    def hook_charts(self) -> tuple[Chart, ...]:
        """What hooks printed and can be drawn."""
        return tuple(one.chart for one in self.said_by_hooks if one.chart)

    @property
    def output_charts(self) -> tuple[Chart, ...]:
        """What iterations gave and can be drawn."""
        return tuple(one.chart for one in self.outputs if one.chart)


def sections(result: Result, samples_of: SamplesOf, prefix: str = "") -> tuple[TaskSection, ...]:
    """Give the workloads of a task's result."""
    return tuple(
        _section(anchor_of(index, prefix), performance, samples_of)
        for index, performance in enumerate(result.performances)
    )


def _section(anchor: str, performance: Performance, samples_of: SamplesOf) -> TaskSection:
    showing = performance.showing
    held = "its SLA held" if performance.pass_sla else "its SLA failed"
    return TaskSection(
        anchor=anchor,
        performance=performance,
        step=f" at {load_of(performance)}" if performance.is_step else "",
        headline=f"{performance.scenario}: {held}",
        said=_said(performance, showing),
        rows=_rows(showing) if showing else (),
        charts=_charts(anchor, performance, samples_of) if showing else (),
        hooks=hooks.ran(performance),
        said_by_hooks=hooks.said(anchor, performance),
        outputs=outputs.said(anchor, performance),
        given=json.dumps(json.loads(performance.given), indent=2),
    )


def _said(performance: Performance, showing: Showing | None) -> tuple[str, ...]:
    said = [performance.failure] if performance.failure else []
    if showing is not None:
        total = showing.total
        said.append(
            f"{total.ok:,} of {total.count:,} iterations ended well, "
            f"{figures.rate(showing.throughput_rps)} a second. The load lasted "
            f"{showing.load_s:.1f} s, with set-up and clean-up {performance.full_s:.1f} s."
        )
    if performance.reduced:
        said.append(f"Not the load that the file asks for: {reduction(performance)}.")
    if performance.requests_as_rally:
        said.append("Iterations sent Rally's own sequence of requests, for comparison with it.")
    if performance.health is not None and performance.health.http == "2":
        said.append("Requests went over HTTP/2, one connection a thread of the load generator.")
    if performance.hook_runs:
        failed = sum(run.status == "failed" for run in performance.hook_runs)
        said.append(f"Hooks acted {len(performance.hook_runs)} times, {failed} of them failed.")
    said += outputs.words(performance)
    if performance.health is not None and not performance.health.is_valid:
        said.append(f"The load generator was the limit: {'; '.join(performance.health.limits)}.")
    return tuple(said)


def _rows(showing: Showing) -> tuple[tuple[str, tuple[str, ...]], ...]:
    rows = [(named(row), cells(row)) for row in showing.actions]
    rows += [("total", cells(showing.total)), ("service time", cells(showing.service))]
    if showing.idle is not None:
        rows.append(("idle", cells(showing.idle)))
    return tuple(rows)


def _charts(anchor: str, performance: Performance, samples_of: SamplesOf) -> tuple[Chart, ...]:
    try:
        rows = ended(samples_of(performance), performance.actions)
    except EnvironmentUnusable:
        return ()
    profile = replace(_profile(anchor, rows), spans=hooks.spans(performance))
    if profile.spans:
        profile = replace(profile, summary=f"{profile.summary} {MARKED}")
    charts = (_durations(anchor, rows), profile, _histogram(anchor, rows))
    return tuple(chart for chart in charts if any(series.data for series in chart.series))


def _durations(anchor: str, rows: Ended) -> Chart:
    # Of long loads the slowest are shown, and as many others as fit.
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
            Series("ended well", "cloud", "p50", _pairs(rows.start_s[good], rows.duration_s[good])),
            Series("failed", "cloud", "degraded", _pairs(rows.start_s[bad], rows.duration_s[bad])),
        ),
        from_zero_y=True,
        from_zero_x=True,
    )


def _profile(anchor: str, rows: Ended) -> Chart:
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
        series=(Series("iterations", "area", "metered", _pairs(at, at_once.astype(np.float64))),),
        from_zero_y=True,
        from_zero_x=True,
    )


def _histogram(anchor: str, rows: Ended) -> Chart:
    good = rows.duration_s[~rows.failed]
    data: tuple[Xy, ...] = ()
    if len(good) > 1:
        counts, edges = np.histogram(good, bins=min(MOST_BARS, max(4, int(len(good) ** 0.5))))
        data = _pairs((edges[:-1] + edges[1:]) / 2, counts.astype(np.float64))
    return Chart(
        id=f"{anchor}-histogram",
        title="Histogram of durations",
        summary="How many iterations that ended well took how long.",
        x_label="seconds",
        y_label="iterations",
        series=(Series("iterations", "area", "p95", data),),
        from_zero_y=True,
    )


def _pairs(x: np.typing.NDArray[np.float64], y: np.typing.NDArray[np.float64]) -> tuple[Xy, ...]:
    return tuple(zip(x.round(6).tolist(), y.round(6).tolist(), strict=True))
