"""A task's result as Rally's report JSON, format 1.2 (rally's exporter "json").

Rally can import it (`rally task import`) and report on it (`rally task report`). Statistics are
computed as Rally does: with failed iterations, and times rounded to milliseconds. Without samples
they are those of the stored statistics, which are of successful iterations.
"""

import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from loadstone.analysis.model import Durations, Failure, Stats
from loadstone.analysis.stats import ActionTimes, EndedIterations, action_times, ended
from loadstone.engine.callables.model import ITERATION, IterationOutput
from loadstone.engine.samples import Outcome, Samples
from loadstone.errors import EnvironmentUnusable
from loadstone.keystone.scenarios.atomics import OUTSIDE
from loadstone.report.hooks import charts, hooks
from loadstone.report.sections.charts import SamplesOf
from loadstone.result.model import Measurement, Run
from loadstone.result.task_workload import TaskWorkload
from loadstone.system.say import Say

FORMAT, RALLY = "1.2", "5.1.1"  # the version whose format this is
FIGURES = ("min", "median", "90%ile", "95%ile", "max", "avg")
MOST_CAUSES = 3  # of an iteration whose cause is not known
OWN = "loadstone"  # tag of every exported task
AS_RALLY, PACED = "rally-requests", "rally-pacing"  # tags of runs with these options
STATUS = {"finished": "finished", "running": "running", "interrupted": "aborted"}
# A fixed namespace, so that every export of a run has the same task id.
NAMESPACE = uuid.uuid5(uuid.NAMESPACE_URL, "loadstone:run")


def as_rally(run: Run, samples_of: SamplesOf, say: Say = lambda _line: None) -> dict[str, Any]:
    """Return the document.

    A workload whose samples are missing has no iterations, and statistics of the successful ones;
    `say` gets a line for each.
    """
    stamp = run.started_at[:19]
    workloads = [
        _workload(run, index, measurement, _table(measurement, samples_of, say))
        for index, measurement in enumerate(run.workloads)
    ]
    task = {
        "uuid": _id(run.run_id),
        "title": run.title,
        "description": "",
        "status": STATUS.get(run.status, "crashed"),
        "tags": _tags(run),
        "env_uuid": _id(dict(run.environment.target).get("url", "")),
        "env_name": dict(run.environment.target).get("url", "n/a"),
        "created_at": stamp,
        "updated_at": (run.ended_at or run.started_at)[:19],
        "pass_sla": run.status == "finished" and all(map(_has_passed, run.workloads)),
        "subtasks": list(_subtasks(run, workloads)),
    }
    info = {"rally_version": RALLY, "generated_at": stamp, "format_version": FORMAT}
    return {"info": info, "tasks": [task]}


def _tags(run: Run) -> list[str]:
    options = {
        AS_RALLY: any(measurement.requests_as_rally for measurement in run.workloads),
        PACED: any(measurement.paced_as_rally for measurement in run.workloads),
    }
    return [OWN, run.run_id, *(tag for tag, is_set in options.items() if is_set)]


def _id(name: str) -> str:
    return str(uuid.uuid5(NAMESPACE, name))


def _subtasks(run: Run, workloads: Sequence[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    found = run.workloads
    begun = (i for i in range(1, len(found)) if _begins_subtask(found[i - 1], found[i]))
    edges = [0, *begun, len(found)]
    for number, (first, last) in enumerate(pairwise(edges)):
        yield {
            "uuid": _id(f"{run.run_id}/{number}"),
            "title": found[first].subtask if found else "",
            "description": found[first].subtask_description if found else "",
            "status": STATUS.get(run.status, "crashed"),
            "created_at": run.started_at[:19],
            "updated_at": (run.ended_at or run.started_at)[:19],
            "sla": {},
            "workloads": [
                {**workload, "position": position}
                for position, workload in enumerate(workloads[first:last])
            ],
        }


def _begins_subtask(before: Measurement, measurement: Measurement) -> bool:
    return measurement.begins_subtask or measurement.subtask != before.subtask


def _workload(
    run: Run, index: int, measurement: Measurement, table: "_Table | None"
) -> dict[str, Any]:
    workload = measurement.workload or TaskWorkload()
    began_s = measurement.start_s
    outputs = {one.iteration: one for one in measurement.outputs}
    began = datetime.fromtimestamp(began_s, UTC).isoformat()[:19] if began_s else ""
    stats = measurement.stats
    shortest_s, longest_s = _extremes_s(table, stats)
    failed = int(table.rows.failed.sum()) if table else stats.failed if stats else 0
    ended_ = len(table.rows.failed) if table else stats.ok + stats.failed if stats else 0
    return {
        "uuid": _id(f"{run.run_id}/workload/{index}"),
        "description": measurement.description,
        "runner": {name: settings or {} for name, settings in workload.runner.items()},
        "hooks": list(hooks(measurement)),
        "scenario": {name: arguments or {} for name, arguments in workload.scenario.items()},
        "min_duration": shortest_s,
        "max_duration": longest_s,
        "start_time": began_s,
        "load_duration": measurement.stats.load_s if measurement.stats else 0.0,
        "full_duration": measurement.wall_s,
        "statistics": {"durations": _statistics(table) if table else _stored_statistics(stats)},
        "data": list(_data(table, began_s or 0.0, outputs)) if table else [],
        "failed_iteration_count": failed,
        "total_iteration_count": ended_,
        "created_at": began or run.started_at[:19],
        "updated_at": (run.ended_at or run.started_at)[:19],
        "contexts": workload.contexts,
        "contexts_results": [],
        "position": 0,  # in its subtask
        "pass_sla": _has_passed(measurement),
        "sla_results": {"sla": list(_sla_rows(measurement))},
        "sla": workload.sla,
    }


def _has_passed(measurement: Measurement) -> bool:
    return all(row["success"] for row in _sla_rows(measurement))


def _sla_rows(measurement: Measurement) -> Iterator[dict[str, Any]]:
    for row in measurement.checks:
        yield {"criterion": row.criterion, "success": row.success, "detail": row.detail}
    if not measurement.has_ended:
        detail = "The load did not run to its end."
        yield {"criterion": "aborted_manually", "success": False, "detail": detail}


@dataclass(frozen=True, slots=True)
class _Table:
    """Iterations of a workload."""

    samples: Samples
    actions: tuple[str, ...]
    rows: EndedIterations
    action_times: tuple[ActionTimes, ...]
    failures: tuple[Failure, ...]


def _table(measurement: Measurement, samples_of: SamplesOf, say: Say) -> _Table | None:
    trial = measurement.trial
    if trial is None or not trial.stats.due:
        return None
    try:
        samples = samples_of(trial)
    except EnvironmentUnusable as missing:
        say(
            f"Rally's JSON has no iterations of {measurement.title}, and statistics of the "
            f"successful ones only: {missing}"
        )
        return None
    rows = ended(samples, trial.actions)
    if ITERATION in trial.actions:
        # Rally marks actions whose exception the scenario caught; the iteration succeeded.
        outcome = np.where(samples.retried > 0, Outcome.RAISED, samples.outcome)
        samples = replace(samples, outcome=outcome)
    own = action_times(samples, trial.actions, rows)
    return _Table(samples, trial.actions, rows, own, trial.stats.failures)


def _extremes_s(table: _Table | None, stats: Stats | None) -> tuple[float | None, float | None]:
    if table is not None and len(table.rows.duration_s):
        return float(table.rows.duration_s.min()), float(table.rows.duration_s.max())
    if table is None and stats is not None and stats.ok:
        return stats.total.min_s, stats.total.max_s
    return None, None


def _statistics(table: _Table) -> dict[str, Any]:
    rows = table.rows
    total = _measured("total", rows.duration_s + rows.idle_s, rows.failed)
    total["children"] = [
        _measured("duration", rows.duration_s, rows.failed),
        _measured("idle_duration", rows.idle_s, rows.failed),
    ]
    atomics = {}
    for action in table.action_times:
        there = action.count > 0
        if there.any():
            name = action.name.rpartition("/")[2]
            times = (action.seconds[there], action.failed[there], int(action.count.max()))
            atomics[action.name] = _measured(name, *times)
    return {"total": total, "atomics": _nested_rows(atomics)}


def _stored_statistics(stats: Stats | None) -> dict[str, Any]:
    if stats is None:
        return {"total": _row("total", (), 0, 0), "atomics": []}
    duration, idle = stats.total, stats.idle
    counts = (duration.count, duration.ok)
    if idle is None:
        total = _stored("total", duration)
        pauses = _row("idle_duration", (0.0,) * len(FIGURES) if duration.ok else (), *counts)
    else:
        # Rally's total includes the pauses; of such sums only the mean is known.
        total = _row("total", (*(None,) * 5, duration.mean_s + idle.mean_s), *counts)
        pauses = _stored("idle_duration", idle)
    total["children"] = [_stored("duration", duration), pauses]
    atomics = {one.name: _stored(one.name.rpartition("/")[2], one) for one in stats.actions}
    return {"total": total, "atomics": _nested_rows(atomics)}


def _nested_rows(rows: Mapping[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """Nest the rows of actions, which are named by their path."""
    kept = {path: row for path, row in rows.items() if not path.startswith(OUTSIDE)}
    for path, row in kept.items():
        outer = path.rpartition("/")[0]
        if outer in kept:
            kept[outer]["children"].append(row)
    return [row for path, row in kept.items() if "/" not in path]


def _measured(
    name: str, seconds: NDArray[np.float64], failed: NDArray[np.bool_], repeats: int = 1
) -> dict[str, Any]:
    """Return a row of all iterations, the failed ones included."""
    times_s: tuple[float, ...] = ()
    if len(seconds):
        at_s = np.percentile(seconds, [0, 50, 90, 95, 100]).tolist()
        times_s = (*at_s, float(seconds.mean()))
    return _row(name, times_s, len(seconds), int((~failed).sum()), repeats)


def _stored(name: str, row: Durations) -> dict[str, Any]:
    """Return a row of the successful iterations."""
    times_s = (row.min_s, row.median_s, row.p90_s, row.p95_s, row.max_s, row.mean_s)
    return _row(name, times_s if row.ok else (), row.count, row.ok, row.repeats)


def _row(
    name: str, times_s: Sequence[float | None], count: int, ok: int, repeats: int = 1
) -> dict[str, Any]:
    rounded = (None if time_s is None else round(time_s, 3) for time_s in times_s)
    data: dict[str, Any] = dict.fromkeys(FIGURES) | dict(zip(FIGURES, rounded, strict=False))
    success = f"{100.0 * (ok / count):.1f}%" if count else "n/a"
    return {
        "data": {"iteration_count": count, **data, "success": success},
        "count_per_iteration": repeats,
        "name": name,
        "display_name": name if repeats == 1 else f"{name} (x{repeats})",
        "children": [],
    }


def _data(
    table: _Table, began_s: float, outputs: Mapping[int, IterationOutput]
) -> Iterator[dict[str, Any]]:
    """Return the iterations in the order of their starts."""
    samples, rows = table.samples, table.rows
    order = np.lexsort((samples.due_ns, samples.iteration))
    edges = np.searchsorted(samples.iteration[order], rows.number, side="left")
    ends = np.searchsorted(samples.iteration[order], rows.number, side="right")
    for row in np.argsort(rows.start_s, kind="stable").tolist():
        own = order[edges[row] : ends[row]].tolist()
        yield {
            "duration": float(rows.duration_s[row]),
            "timestamp": began_s + float(rows.start_s[row]),
            "idle_duration": float(rows.idle_s[row]),
            "error": _error(table, int(rows.number[row]), own) if rows.failed[row] else [],
            "output": charts(outputs.get(int(rows.number[row]), IterationOutput(0))),
            "atomic_actions": _atomics(table, own, began_s),
        }


def _error(table: _Table, number: int, own: Sequence[int]) -> list[str]:
    """Return type, message and trace of a failed iteration.

    Failures are kept by cause, with the first iteration of each: of others, more than one cause
    may be possible.
    """
    firsts = [one for one in table.failures if one.iteration == number + 1]
    causes = firsts or _possible_causes(table, own) or table.failures
    if not causes:
        return ["failed"] * 3
    if len(causes) == 1:
        return [causes[0].cause, causes[0].message, causes[0].message]
    shown = [f"{one.cause} ({one.count}x)" for one in causes[:MOST_CAUSES]]
    if len(causes) > MOST_CAUSES:
        shown.append(f"{len(causes) - MOST_CAUSES} others")
    message = "; ".join(shown)
    return [f"one of {len(causes)} causes", message, message]


def _possible_causes(table: _Table, own: Sequence[int]) -> list[Failure]:
    samples = table.samples
    failed = [at for at in own if samples.outcome[at] not in (Outcome.OK, Outcome.NOT_SENT)]
    # A function's rows begin with the whole iteration, which fails by the action that failed last.
    for at in reversed(failed) if ITERATION in table.actions else failed:
        kind = (table.actions[samples.action[at]], samples.outcome[at], samples.status[at])
        found = [one for one in table.failures if (one.action, one.outcome, one.status) == kind]
        if found:
            return found
    return []


@dataclass(frozen=True, slots=True)
class _Step:
    path: tuple[str, ...]
    start_s: float
    end_s: float
    failed: bool


def _atomics(table: _Table, own: Sequence[int], began_s: float) -> list[dict[str, Any]]:
    samples = table.samples
    steps = [
        _Step(
            tuple(name.split("/")),
            began_s + samples.due_ns[at] / 1e9,
            began_s + samples.done_ns[at] / 1e9,
            bool(samples.outcome[at] != Outcome.OK),
        )
        for at in own
        if not (name := table.actions[samples.action[at]]).startswith(("(", OUTSIDE))
    ]
    return _nested(steps, 0, ITERATION in table.actions)


def _nested(steps: Sequence[_Step], depth: int, covering: bool) -> list[dict[str, Any]]:
    """Nest steps, ordered by start, into the actions that contain them."""
    groups: list[list[_Step]] = []
    for step in steps:
        is_next = groups and groups[-1][0].path[depth] == step.path[depth]
        # A row that covers its inside begins an action of its own, under whatever name.
        if not is_next or (covering and len(step.path) == depth + 1):
            groups.append([])
        groups[-1].append(step)
    return [_atomic(group, depth, covering) for group in groups]


def _atomic(group: Sequence[_Step], depth: int, covering: bool) -> dict[str, Any]:
    name, inner = group[0].path[depth], [step for step in group if len(step.path) > depth + 1]
    # A row that covers its inside may have caught what an inner action raised.
    own = [step for step in group if len(step.path) == depth + 1] if covering else []
    action: dict[str, Any] = {
        "name": name if covering else name.partition("#")[0],  # the mark of a repeat
        "children": _nested(inner, depth + 1, covering),
        "started_at": float(min(step.start_s for step in group)),
        "finished_at": float(max(step.end_s for step in group)),
    }
    return action | ({"failed": True} if any(step.failed for step in own or group) else {})
