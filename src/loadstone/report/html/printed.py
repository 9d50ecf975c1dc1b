"""Charts that hooks and iterations printed in Rally's format: drawn, as tables, or as text."""

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from loadstone.report import figures
from loadstone.report.html.charts import Chart, ChartSeries, Tone, Xy

# Tones of lines, in the order of use.
TONES: tuple[Tone, ...] = ("p50", "p95", "p99", "metered", "sustained", "invalid", "undecided")
LINES = ("Lines", "StackedArea")
# Rally's columns for repeated figures.
COLUMNS = ["name", "min", "median", "90%ile", "95%ile", "max", "avg", "count"]


@dataclass(frozen=True, slots=True)
class PrintedChart:
    """A chart that was printed: drawn, as a table, or as text."""

    title: str
    about: str
    chart: Chart | None = None
    heads: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    text: str = ""


def joined(
    printed: Sequence[tuple[float, Sequence[dict[str, Any]]]], x_label: str
) -> Iterator[dict[str, Any]]:
    """Join charts that were printed repeatedly, as Rally does; each has its x value."""
    for place in range(max((len(charts) for _, charts in printed), default=0)):
        yield _joined([(x, charts[place]) for x, charts in printed if place < len(charts)], x_label)


def _joined(charts: Sequence[tuple[float, dict[str, Any]]], x_label: str) -> dict[str, Any]:
    first = charts[0][1]
    by_name: dict[str, list[Xy]] = {}
    for x, chart in charts:
        for name, value in _pairs(chart["data"]):
            by_name.setdefault(name, []).append((x, value))
    if first["chart_plugin"] in LINES:
        shown: Any = [[name, points] for name, points in by_name.items()]
        return {**first, "data": shown, "axis_label": x_label}
    values = {name: [value for _, value in points] for name, points in by_name.items()}
    if first["chart_plugin"] == "Pie":
        return {**first, "data": [[name, sum(v) / len(v)] for name, v in values.items()]}
    rows = [[name, *_statistics(v), len(v)] for name, v in values.items()]
    return {**first, "chart_plugin": "Table", "data": {"cols": COLUMNS, "rows": rows}}


def _statistics(values: Sequence[float]) -> list[float]:
    return [*np.percentile(values, [0, 50, 90, 95, 100]).tolist(), sum(values) / len(values)]


def drawn(anchor: str, title: str, one: dict[str, Any]) -> PrintedChart:
    """Return a chart; data that does not fit the kind of chart becomes text."""
    about, data, kind = one.get("description", ""), one["data"], one["chart_plugin"]
    if kind in LINES and (lines := _lines(data)):
        chart = Chart(
            id=anchor,
            title=title,
            summary=about,
            x_label=one.get("axis_label", ""),
            y_label=one.get("label", ""),
            series=lines,
            from_zero_y=True,
        )
        return PrintedChart(title, about, chart=chart)
    if kind == "Pie" and (pairs := _pairs(data)):
        total = sum(value for _, value in pairs) or math.nan
        shares = tuple((name, f"{v:g}", figures.percent(v / total)) for name, v in pairs)
        return PrintedChart(
            title, about, heads=("", one.get("label", "value"), "share"), rows=shares
        )
    if isinstance(data, dict) and _is_table(data):
        heads = tuple(str(head) for head in data["cols"])
        rows = tuple(tuple(_cell(cell) for cell in row) for row in data["rows"])
        return PrintedChart(title, about, heads=heads, rows=rows)
    if kind == "TextArea" and isinstance(data, list):
        return PrintedChart(title, about, text="\n".join(str(line) for line in data))
    return PrintedChart(title, about, text=json.dumps(data, indent=1))


def _is_table(data: dict[str, Any]) -> bool:
    cols, rows = data.get("cols"), data.get("rows")
    return isinstance(cols, list) and isinstance(rows, list) and all(map(_is_list, rows))


def _is_list(row: object) -> bool:
    return isinstance(row, list)


def _cell(cell: object) -> str:
    return f"{cell:.6g}" if isinstance(cell, float) else str(cell)


def _lines(data: Any) -> tuple[ChartSeries, ...]:
    """Return the lines of [[name, [[x, y], ...]], ...], or nothing for other data."""
    try:
        lines = [
            (str(name), tuple((float(x), float(y)) for x, y in points)) for name, points in data
        ]
    except (TypeError, ValueError):
        return ()
    if not all(math.isfinite(value) for _, points in lines for xy in points for value in xy):
        return ()
    return tuple(
        ChartSeries(name, "line", TONES[number], points)
        for number, (name, points) in enumerate(lines[: len(TONES)])
        if points
    )


def _pairs(data: Any) -> tuple[tuple[str, float], ...]:
    """Return [[name, number], ...], or nothing for other data."""
    try:
        pairs = tuple((str(name), float(value)) for name, value in data)
    except (TypeError, ValueError):
        return ()
    return pairs if all(math.isfinite(value) for _, value in pairs) else ()
