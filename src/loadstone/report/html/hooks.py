"""What a task's hooks did, as the page shows it: each run, and the charts that it printed."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from loadstone.report.html.charts import Span
from loadstone.report.html.printed import Said, drawn, joined
from loadstone.result import Performance
from loadstone.task.hook_run import HookRun

MOST_CHARTS = 24  # of one workload's hooks


@dataclass(frozen=True, slots=True)
class Ran:
    """One time that a hook acted; seconds since the load began."""

    hook: str
    at: str
    began: str
    ended: str
    how: str


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
        drawn(f"{anchor}-hook-{number}", title, one)
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
        began_s = [round(run.started_at_s - (performance.start_s or 0.0), 3) for run in runs]
        for one in joined(list(zip(began_s, printed, strict=True)), "seconds since the load began"):
            yield f"Hook {number + 1}: {one['title']}", one
