"""Charts that hooks and iterations printed in Rally's format: drawn, as tables, or as text."""

import json
import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

import numpy as np

from loadstone.report import figures
from loadstone.report.chart import Chart, ChartSeries, Tone, Xy
from loadstone.report.hooks import charts
from loadstone.report.section import Row, Table, TableColumn, Transcript
from loadstone.report.sections.charts import MOST_POINTS
from loadstone.report.sections.tables import trigger
from loadstone.result.model import Measurement

# Tones of lines, in the order of use.
TONES: tuple[Tone, ...] = ("p50", "p95", "p99", "metered", "sustained", "invalid", "undecided")
LEAST_DRAWN, MOST_DRAWN = 1e-300, 1e300  # near the limits of a float, differences overflow
LINES = ("Lines", "StackedArea")
# Rally's columns for repeated figures.
COLUMNS = ["name", "min", "median", "90%ile", "95%ile", "max", "avg", "count"]


MOST_OF_ITERATIONS, MOST_OF_HOOKS = 12, 24  # charts of one workload
Printed = Chart | Table | Transcript


def of(anchor: str, measurement: Measurement) -> tuple[Printed, ...]:
    """Return what iterations and hooks printed: figures over all of them, then each one's own."""
    iterations = islice(_of_iterations(measurement), MOST_OF_ITERATIONS)
    hooks = islice(_of_hooks(measurement), MOST_OF_HOOKS)
    return (*_drawn(f"{anchor}-output", iterations), *_drawn(f"{anchor}-hook", hooks))


def omissions(measurement: Measurement) -> Iterator[str]:
    """Yield which charts of iterations and hooks are not shown."""
    own = sum(len(one.complete) for one in measurement.outputs)
    over_all = max((len(one.additive) for one in measurement.outputs), default=0)
    if over_all + own > MOST_OF_ITERATIONS:
        yield (
            f"iterations gave {own:,} charts of their own; the first are shown, all are in the "
            "result as JSON (--json, --rally-json)"
        )
    of_hooks = sum(1 for _ in _of_hooks(measurement))
    if of_hooks > MOST_OF_HOOKS:
        yield (
            f"hooks gave {of_hooks:,} charts; the first {MOST_OF_HOOKS} are shown, all are in the "
            "result as JSON (--json, --rally-json)"
        )
    if measurement.outputs_dropped:
        yield f"too much to keep: {figures.counted(measurement.outputs_dropped, 'further chart')}"


def _drawn(anchor: str, every: Iterable[tuple[str, dict[str, Any]]]) -> Iterator[Printed]:
    for number, (title, one) in enumerate(every, 1):
        yield drawn(f"{anchor}-{number}", title, one)


def _of_iterations(measurement: Measurement) -> Iterator[tuple[str, dict[str, Any]]]:
    outputs = measurement.outputs
    some = outputs[:: -(-len(outputs) // MOST_POINTS) or 1]
    additive = [(one.iteration + 1.0, charts(one)["additive"]) for one in some]
    for one in joined(additive, "iteration"):
        yield f"{one['title']}, over iterations", one
    for output in outputs:
        for one in charts(output)["complete"]:
            yield f"{one['title']}, iteration {output.iteration + 1}", one


def _of_hooks(measurement: Measurement) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the figures of all runs of a hook joined, as Rally does; then those of each run."""
    for number in sorted({run.hook for run in measurement.hook_runs}):
        runs = [run for run in measurement.hook_runs if run.hook == number]
        printed = [json.loads(run.output)["additive"] for run in runs]
        began_s = [round(run.started_at_s - (measurement.start_s or 0.0), 3) for run in runs]
        for one in joined(list(zip(began_s, printed, strict=True)), "seconds since the load began"):
            yield f"Hook {number + 1}: {one['title']}", one
    for run in measurement.hook_runs:
        for one in json.loads(run.output)["complete"]:
            yield f"Hook {run.hook + 1}, {trigger(run)}: {one['title']}", one


def joined(
    printed: Sequence[tuple[float, Sequence[dict[str, Any]]]], x_label: str
) -> Iterator[dict[str, Any]]:
    """Join charts that were printed repeatedly, as Rally does; each has its x value."""
    for place in range(max((len(every) for _, every in printed), default=0)):
        yield _joined([(x, every[place]) for x, every in printed if place < len(every)], x_label)


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


def drawn(anchor: str, title: str, one: dict[str, Any]) -> Printed:
    """Return a chart; data that does not fit the kind of chart becomes text."""
    about, data, kind = one.get("description", ""), one["data"], one["chart_plugin"]
    if kind in LINES and (lines := _lines(data)):
        return Chart(
            id=anchor,
            title=title,
            summary=about,
            x_label=one.get("axis_label", ""),
            y_label=one.get("label", ""),
            series=lines,
            from_zero_x=False,
            from_zero_y=all(y >= 0 for line in lines for _, y in line.data),
        )
    if kind == "Pie" and (pairs := _pairs(data)):
        total = sum(value for _, value in pairs) or math.nan
        shares = tuple((name, f"{v:g}", figures.percent(v / total)) for name, v in pairs)
        return _table(title, ("", one.get("label", "value"), "share"), shares, about)
    if isinstance(data, dict) and _is_table(data):
        heads = [str(head) for head in data["cols"]]
        return _table(title, heads, [[_cell(cell) for cell in row] for row in data["rows"]], about)
    if kind == "TextArea" and isinstance(data, list):
        return Transcript(title, "\n".join(str(line) for line in data), about)
    return Transcript(title, json.dumps(data, indent=1), about)


def _table(title: str, heads: Sequence[str], rows: Iterable[Sequence[str]], about: str) -> Table:
    cells = tuple(Row(tuple(row)) for row in rows)
    return Table(title, tuple(map(TableColumn, heads)), cells, about)


def _is_table(data: dict[str, Any]) -> bool:
    cols, rows = data.get("cols"), data.get("rows")
    return (
        isinstance(cols, list)
        and isinstance(rows, list)
        and all(isinstance(row, list) and len(row) <= len(cols) for row in rows)
    )


def _cell(cell: object) -> str:
    return f"{cell:.6g}" if isinstance(cell, float) else str(cell)


def _lines(data: Any) -> tuple[ChartSeries, ...]:
    """Return the lines of [[name, [[x, y], ...]], ...], or nothing for other data."""
    try:
        lines = [
            (str(name), tuple((float(x), float(y)) for x, y in points)) for name, points in data
        ]
    except (TypeError, ValueError, OverflowError):
        return ()
    if not all(_is_drawable(value) for _, points in lines for xy in points for value in xy):
        return ()
    return tuple(
        ChartSeries(name, "line", TONES[number % len(TONES)], points)
        for number, (name, points) in enumerate(lines)
        if points
    )


def _is_drawable(value: float) -> bool:
    """Return whether an axis can reach the value: the largest floats have no room above them."""
    return value == 0.0 or LEAST_DRAWN < abs(value) < MOST_DRAWN


def _pairs(data: Any) -> tuple[tuple[str, float], ...]:
    """Return [[name, number], ...], or nothing for other data."""
    try:
        pairs = tuple((str(name), float(value)) for name, value in data)
    except (TypeError, ValueError, OverflowError):
        return ()
    return pairs if all(math.isfinite(value) for _, value in pairs) else ()
