"""What a task's hooks did, as the page shows it: each run, and the charts that it printed."""

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from loadstone.report import figures
from loadstone.report.html.charts import Chart, Series, Span, Tone, Xy
from loadstone.result import Performance
from loadstone.task.hook_run import HookRun

# The ways to draw a line, in the order in which they are taken.
TONES: tuple[Tone, ...] = ("p50", "p95", "p99", "metered", "sustained", "invalid", "undecided")
MOST_CHARTS = 24  # of one workload's hooks
LINES = ("Lines", "StackedArea")


@dataclass(frozen=True, slots=True)
class Ran:
    """One time that a hook acted; seconds since the load began."""

    hook: str
    at: str
    began: str
    ended: str
    how: str


@dataclass(frozen=True, slots=True)
class Said:
    """One of the charts that a hook printed: drawn, as a table, or as text."""

    title: str
    about: str
    chart: Chart | None = None
    heads: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    text: str = ""


def ran(performance: Performance) -> tuple[Ran, ...]:
    """Give what hooks did, in the order of time."""
    runs = sorted(performance.hook_runs, key=lambda run: run.started_at_s)
    return tuple(_ran(performance, run) for run in runs)


def _ran(performance: Performance, run: HookRun) -> Ran:
    start_s = performance.start_s or 0.0
    return Ran(
        name_of(performance, run.hook),
        _at(run),
        f"{run.started_at_s - start_s:.2f}",
        f"{run.finished_at_s - start_s:.2f}",
        f"failed: {run.error[0]}" if run.error else "success",
    )


def name_of(performance: Performance, number: int) -> str:
    """Give a hook's number and what its file says of it, else its command."""
    given = json.loads(performance.given)["hooks"][number]
    said = given.get("description") or next(iter(given["action"].values()))
    return f"{number + 1}: {said}"


def _at(run: HookRun) -> str:
    return f"{run.value} s" if run.unit == "time" else f"iteration {run.value}"


def spans(performance: Performance) -> tuple[Span, ...]:
    """Give when each run began and ended, in seconds since the load began."""
    start_s = performance.start_s or 0.0
    return tuple(
        Span(
            low=round(run.started_at_s - start_s, 3),
            high=round(run.finished_at_s - start_s, 3),
            label=f"hook {run.hook + 1}",
            tone="degraded" if run.error else "sustained",
        )
        for run in performance.hook_runs
    )


def said(anchor: str, performance: Performance) -> tuple[Said, ...]:
    """Give the charts that hooks printed: first each hook's own over its runs, then each run's."""
    every = list(_additive(performance)) + list(_complete(performance))
    return tuple(
        _drawn(f"{anchor}-hook-{number}", title, one)
        for number, (title, one) in enumerate(every[:MOST_CHARTS], 1)
    )


def _complete(performance: Performance) -> Iterator[tuple[str, dict[str, Any]]]:
    for run in performance.hook_runs:
        for one in json.loads(run.output)["complete"]:
            yield f"Hook {run.hook + 1}, {_at(run)}: {one['title']}", one


def _additive(performance: Performance) -> Iterator[tuple[str, dict[str, Any]]]:
    """Put the figures that a hook printed each time together, as Rally does."""
    for number in sorted({run.hook for run in performance.hook_runs}):
        runs = [run for run in performance.hook_runs if run.hook == number]
        printed = [json.loads(run.output)["additive"] for run in runs]
        for place in range(max(map(len, printed), default=0)):
            charts = [(run, some[place]) for run, some in zip(runs, printed, strict=True)
                      if place < len(some)]  # fmt: skip
            title = f"Hook {number + 1}: {charts[0][1]['title']}"
            yield title, _joined(charts, performance.start_s or 0.0)


def _joined(charts: Sequence[tuple[HookRun, dict[str, Any]]], start_s: float) -> dict[str, Any]:
    first = charts[0][1]
    by_name: dict[str, list[Xy]] = {}
    for run, chart in charts:
        for name, value in _pairs(chart["data"]):
            by_name.setdefault(name, []).append((round(run.started_at_s - start_s, 3), value))
    if first["chart_plugin"] in LINES:
        shown: Any = [[name, points] for name, points in by_name.items()]
        return {**first, "data": shown, "axis_label": "seconds since the load began"}
    values = {name: [value for _, value in points] for name, points in by_name.items()}
    if first["chart_plugin"] == "Pie":
        return {**first, "data": [[name, sum(v) / len(v)] for name, v in values.items()]}
    rows = [[name, min(v), sum(v) / len(v), max(v), len(v)] for name, v in values.items()]
    cols = ["name", "min", "avg", "max", "count"]
    return {**first, "chart_plugin": "Table", "data": {"cols": cols, "rows": rows}}


def _drawn(anchor: str, title: str, one: dict[str, Any]) -> Said:
    """Show a chart; what is not in the form of its kind is shown as it was printed."""
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
        return Said(title, about, chart=chart)
    if kind == "Pie" and (pairs := _pairs(data)):
        whole = sum(value for _, value in pairs) or math.nan
        shares = tuple((name, f"{v:g}", figures.percent(v / whole)) for name, v in pairs)
        return Said(title, about, heads=("", one.get("label", "value"), "share"), rows=shares)
    if isinstance(data, dict) and _is_table(data):
        heads = tuple(str(head) for head in data["cols"])
        rows = tuple(tuple(_cell(cell) for cell in row) for row in data["rows"])
        return Said(title, about, heads=heads, rows=rows)
    if kind == "TextArea" and isinstance(data, list):
        return Said(title, about, text="\n".join(str(line) for line in data))
    return Said(title, about, text=json.dumps(data, indent=1))


def _is_table(data: dict[str, Any]) -> bool:
    cols, rows = data.get("cols"), data.get("rows")
    return isinstance(cols, list) and isinstance(rows, list) and all(map(_is_list, rows))


def _is_list(row: object) -> bool:
    return isinstance(row, list)


def _cell(cell: object) -> str:
    return f"{cell:.6g}" if isinstance(cell, float) else str(cell)


def _lines(data: Any) -> tuple[Series, ...]:
    """Give the lines of [[name, [[x, y], ...]], ...]; none where it is something else."""
    try:
        lines = [
            (str(name), tuple((float(x), float(y)) for x, y in points)) for name, points in data
        ]
    except (TypeError, ValueError):
        return ()
    if not all(math.isfinite(value) for _, points in lines for xy in points for value in xy):
        return ()
    return tuple(
        Series(name, "line", TONES[number], points)
        for number, (name, points) in enumerate(lines[: len(TONES)])
        if points
    )


def _pairs(data: Any) -> tuple[tuple[str, float], ...]:
    """Give [[name, number], ...]; none where it is something else."""
    try:
        pairs = tuple((str(name), float(value)) for name, value in data)
    except (TypeError, ValueError):
        return ()
    return pairs if all(math.isfinite(value) for _, value in pairs) else ()
