"""Trends as one page: each configuration's durations and success over its runs."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from loadstone.report import history
from loadstone.report.history import CapacityTrend, Change
from loadstone.report.html.charts import Chart, ChartSeries, MarkedSpan, Tone, Xy
from loadstone.report.html.page import rendered
from loadstone.report.trends import HEADS, MEDIAN, Trend, cells
from loadstone.report.workload import load_of_spec
from loadstone.result.listing import Performed
from loadstone.result.model import PastSearch
from loadstone.system import files

MOST_LISTED = 6  # targets and scenarios with a line each at the top of the page


@dataclass(frozen=True, slots=True)
class TrendSection:
    """One configuration."""

    anchor: str
    trend: Trend
    charts: tuple[Chart, ...]
    rows: tuple[tuple[Performed, tuple[str, ...]], ...]
    spec: str
    load: str
    sentences: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CapacitySection:
    """N of one scenario on one target."""

    anchor: str
    trend: CapacityTrend
    charts: tuple[Chart, ...]
    rows: tuple[tuple[PastSearch, tuple[str, ...]], ...]
    sentences: tuple[str, ...]


def write_trends(searched: Sequence[CapacityTrend], trends: Sequence[Trend], path: Path) -> None:
    """Write the page."""
    capacities = [_capacity(f"n-{number}", trend) for number, trend in enumerate(searched, 1)]
    sections = [_section(f"trend-{number}", trend) for number, trend in enumerate(trends, 1)]
    page = rendered(
        "trends.html.j2",
        [
            *(chart for section in capacities for chart in section.charts),
            *(chart for section in sections for chart in section.charts),
        ],
        capacities=capacities,
        sections=[section for section in sections if len(section.rows) > 1],
        singles=[section for section in sections if len(section.rows) == 1],
        heads=HEADS,
        most_listed=MOST_LISTED,
        title="Trends",
    )
    files.write(path, page)


def _section(anchor: str, trend: Trend) -> TrendSection:
    # One run is no trend; the table has its figures.
    charts = (_durations(anchor, trend), _success(anchor, trend)) if len(trend.runs) > 1 else ()
    return TrendSection(
        anchor=anchor,
        trend=trend,
        charts=tuple(chart for chart in charts if any(line.data for line in chart.series)),
        rows=tuple((run, cells(run)) for run in trend.runs),
        spec=json.dumps(json.loads(trend.spec), indent=2),
        load=load_of_spec(trend.spec),
        sentences=tuple(history.sentences(trend.changes, trend.known, MEDIAN)),
    )


def _capacity(anchor: str, trend: CapacityTrend) -> CapacitySection:
    return CapacitySection(
        anchor=anchor,
        trend=trend,
        charts=(_n(anchor, trend),) if len(trend.runs) > 1 else (),
        rows=tuple((run, history.cells(run)) for run in trend.runs),
        sentences=tuple(history.sentences(trend.changes, trend.known, "N")),
    )


def _n(anchor: str, trend: CapacityTrend) -> Chart:
    found = [run.capacity for run in trend.runs]
    lines: tuple[tuple[str, Literal["line", "dashed"], Tone, tuple[float | None, ...]], ...] = (
        ("N", "line", "metered", tuple(one.rate_rps if one else None for one in found)),
        (
            "lower bound",
            "dashed",
            "sustained",
            tuple(one.low_rps if one else None for one in found),
        ),
        (
            "upper bound",
            "dashed",
            "degraded",
            tuple(one.high_rps if one else None for one in found),
        ),
    )
    return Chart(
        id=f"{anchor}-capacity",
        title="N over the runs",
        summary="N of each run with its interval. Marked: where its level changed.",
        x_label="run, oldest first",
        y_label="iterations per second",
        series=tuple(
            ChartSeries(name, kind, tone, _data(values)) for name, kind, tone, values in lines
        ),
        from_zero_y=True,
        from_zero_x=True,
        spans=_marks(trend.changes, [run.run_id for run in trend.runs]),
    )


def _marks(changes: Sequence[Change], run_ids: Sequence[str]) -> tuple[MarkedSpan, ...]:
    """Mark the span between the last run of a level and the first run of the next."""
    return tuple(
        MarkedSpan(
            1.0 + run_ids.index(change.before),
            1.0 + run_ids.index(change.after),
            f"{change.ratio - 1:+.1%}",
            "undecided",
        )
        for change in changes
    )


def _durations(anchor: str, trend: Trend) -> Chart:
    lines: tuple[tuple[str, Tone, tuple[float | None, ...]], ...] = (
        ("median", "p50", tuple(run.median_s for run in trend.runs)),
        ("95 % within", "p95", tuple(run.p95_s for run in trend.runs)),
        ("max", "p99", tuple(run.max_s for run in trend.runs)),
    )
    return Chart(
        id=f"{anchor}-durations",
        title="Durations",
        summary="Of the successful iterations, run by run.",
        x_label="run, oldest first",
        y_label="seconds",
        series=tuple(
            ChartSeries(name, "line", tone, _data(values)) for name, tone, values in lines
        ),
        from_zero_y=True,
        from_zero_x=True,
        spans=_marks(trend.changes, [run.run_id for run in trend.runs]),
    )


def _success(anchor: str, trend: Trend) -> Chart:
    shares = tuple(100 * run.ok / run.count if run.count else None for run in trend.runs)
    return Chart(
        id=f"{anchor}-success",
        title="Success rate",
        summary="Share of successful iterations, run by run.",
        x_label="run, oldest first",
        y_label="% of the iterations",
        series=(ChartSeries("succeeded", "line", "sustained", _data(shares)),),
        from_zero_y=True,
        from_zero_x=True,
    )


def _data(values: Sequence[float | None]) -> tuple[Xy, ...]:
    return tuple(
        (float(number), round(value, 6))
        for number, value in enumerate(values, 1)
        if value is not None
    )
