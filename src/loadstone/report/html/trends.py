"""Trends as one page: each configuration's durations and success over its runs."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from loadstone import files
from loadstone.report.html.charts import Chart, ChartSeries, Tone, Xy
from loadstone.report.html.page import rendered
from loadstone.report.trends import HEADS, Trend, cells
from loadstone.report.workload import load_of_given
from loadstone.result import Performed


@dataclass(frozen=True, slots=True)
class TrendSection:
    """One configuration."""

    anchor: str
    trend: Trend
    charts: tuple[Chart, ...]
    rows: tuple[tuple[Performed, tuple[str, ...]], ...]
    given: str
    load: str


def write_trends(trends: Sequence[Trend], path: Path) -> None:
    """Write the page."""
    every = [_section(f"trend-{number}", trend) for number, trend in enumerate(trends, 1)]
    page = rendered(
        "trends.html.j2",
        [chart for section in every for chart in section.charts],
        sections=[section for section in every if len(section.rows) > 1],
        singles=[section for section in every if len(section.rows) == 1],
        heads=HEADS,
        title="Trends",
    )
    files.write(path, page)


def _section(anchor: str, trend: Trend) -> TrendSection:
    # One run is no trend; its figures stand in the table.
    charts = (_durations(anchor, trend), _success(anchor, trend)) if len(trend.runs) > 1 else ()
    return TrendSection(
        anchor=anchor,
        trend=trend,
        charts=tuple(chart for chart in charts if any(line.data for line in chart.series)),
        rows=tuple((run, cells(run)) for run in trend.runs),
        given=json.dumps(json.loads(trend.given), indent=2),
        load=load_of_given(trend.given),
    )


def _durations(anchor: str, trend: Trend) -> Chart:
    wanted: tuple[tuple[str, Tone, tuple[float | None, ...]], ...] = (
        ("median", "p50", tuple(run.median_s for run in trend.runs)),
        ("95 % within", "p95", tuple(run.p95_s for run in trend.runs)),
        ("max", "p99", tuple(run.max_s for run in trend.runs)),
    )
    return Chart(
        id=f"{anchor}-durations",
        title="Durations",
        summary="Of the iterations that ended well, run by run.",
        x_label="run, oldest first",
        y_label="seconds",
        series=tuple(
            ChartSeries(name, "line", tone, _data(values)) for name, tone, values in wanted
        ),
        from_zero_y=True,
        from_zero_x=True,
    )


def _success(anchor: str, trend: Trend) -> Chart:
    shares = tuple(100 * run.ok / run.count if run.count else None for run in trend.runs)
    return Chart(
        id=f"{anchor}-success",
        title="Success rate",
        summary="The share of the iterations that ended well, run by run.",
        x_label="run, oldest first",
        y_label="% of the iterations",
        series=(ChartSeries("ended well", "line", "sustained", _data(shares)),),
        from_zero_y=True,
        from_zero_x=True,
    )


def _data(values: Sequence[float | None]) -> tuple[Xy, ...]:
    return tuple(
        (float(number), round(value, 6))
        for number, value in enumerate(values, 1)
        if value is not None
    )
