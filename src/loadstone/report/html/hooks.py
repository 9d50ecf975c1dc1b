"""A task's hooks on the page: each run, and the charts that it printed."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from loadstone.plan.hooks import HookRun
from loadstone.report.html.charts import MarkedSpan
from loadstone.report.html.printed import PrintedChart, drawn, joined
from loadstone.result.model import Measurement

MOST_CHARTS = 24  # of one workload's hooks


@dataclass(frozen=True, slots=True)
class HookRow:
    """One run of a hook; times are in seconds since the load began."""

    hook: str
    at: str
    began: str
    ended: str
    how: str


def rows(measurement: Measurement) -> tuple[HookRow, ...]:
    """Return the runs of all hooks, by start time."""
    runs = sorted(measurement.hook_runs, key=lambda run: run.started_at_s)
    return tuple(_row(measurement, run) for run in runs)


def _row(measurement: Measurement, run: HookRun) -> HookRow:
    start_s = measurement.start_s or 0.0
    return HookRow(
        name_of(measurement, run.hook),
        _at(run),
        f"{run.started_at_s - start_s:.2f}",
        f"{run.finished_at_s - start_s:.2f}",
        f"failed: {run.error[0]}" if run.error else "success",
    )


def name_of(measurement: Measurement, number: int) -> str:
    """Return a hook's number with its description, or else its command."""
    spec = json.loads(measurement.spec)["hooks"][number]
    label = spec.get("description") or next(iter(spec["action"].values()))
    return f"{number + 1}: {label}"


def _at(run: HookRun) -> str:
    return f"{run.value} s" if run.unit == "time" else f"iteration {run.value}"


def spans(measurement: Measurement) -> tuple[MarkedSpan, ...]:
    """Return when each run began and ended, in seconds since the load began."""
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


def printed_charts(anchor: str, measurement: Measurement) -> tuple[PrintedChart, ...]:
    """Return the charts that hooks printed: each hook's over its runs, then each run's."""
    printed = list(_additive(measurement)) + list(_complete(measurement))
    return tuple(
        drawn(f"{anchor}-hook-{number}", title, one)
        for number, (title, one) in enumerate(printed[:MOST_CHARTS], 1)
    )


def _complete(measurement: Measurement) -> Iterator[tuple[str, dict[str, Any]]]:
    for run in measurement.hook_runs:
        for one in json.loads(run.output)["complete"]:
            yield f"Hook {run.hook + 1}, {_at(run)}: {one['title']}", one


def _additive(measurement: Measurement) -> Iterator[tuple[str, dict[str, Any]]]:
    """Join the figures of all runs of a hook, as Rally does."""
    for number in sorted({run.hook for run in measurement.hook_runs}):
        runs = [run for run in measurement.hook_runs if run.hook == number]
        printed = [json.loads(run.output)["additive"] for run in runs]
        began_s = [round(run.started_at_s - (measurement.start_s or 0.0), 3) for run in runs]
        for one in joined(list(zip(began_s, printed, strict=True)), "seconds since the load began"):
            yield f"Hook {number + 1}: {one['title']}", one
