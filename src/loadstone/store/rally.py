"""Rally's results, taken into the store as task runs: its report JSON and its old results JSON."""

import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from loadstone.analysis.performance import Failure, show
from loadstone.engine.callables.causes import without
from loadstone.engine.callables.model import ITERATION
from loadstone.engine.outcome import Outcome
from loadstone.engine.samples import Samples
from loadstone.errors import EnvironmentUnusable, InvalidInput
from loadstone.result import Environment, Performance, Result
from loadstone.store import rally_hooks
from loadstone.store.rally_samples import Table
from loadstone.store.store import Store
from loadstone.task.given import config_id, masked
from loadstone.task.sla import Criterion

MOST_CAUSES = 100
OTHER_CAUSES = "other causes"


@dataclass(frozen=True, slots=True)
class _Task:
    """One task of Rally's, in the form of its report JSON."""

    name: str  # its uuid, or what stands for it
    title: str
    status: str
    env: str
    rally: str
    workloads: tuple[tuple[str, Mapping[str, Any]], ...]  # subtask's title, workload


def take_in(store: Store, path: Path) -> tuple[str, ...]:
    """Keep each task that a file of Rally's holds, and give their run ids."""
    try:
        text = path.read_bytes()
        tasks = tuple(_tasks(json.loads(text), hashlib.sha256(text).hexdigest()))
        runs = [_run(task, path) for task in tasks]
    except OSError as problem:
        raise EnvironmentUnusable(f"cannot read {path}: {problem.strerror}") from problem
    except (ValueError, KeyError, TypeError, AttributeError, StopIteration) as problem:
        raise InvalidInput(
            f"{path} is neither an exported run (loadstone results export) nor results of Rally's "
            f"(rally task report --json, rally task results): {type(problem).__name__} {problem}"
        ) from problem
    if not runs:
        raise InvalidInput(f"{path} holds no task")
    for result, _ in runs:
        if store.holds(result.run_id):
            raise InvalidInput(f"run {result.run_id} of {path} is already in this store")
    for result, tables in runs:
        store.begin(replace(result, performances=()))
        for index, (performance, samples) in enumerate(
            zip(result.performances, tables, strict=True)
        ):
            store.keep_performance(result.run_id, index, performance, samples)
    return tuple(result.run_id for result, _ in runs)


def _tasks(data: Any, digest: str) -> Iterator[_Task]:
    if isinstance(data, list):
        workloads = tuple(_of_old(one) for one in data)
        if not workloads:
            return
        yield _Task(digest, "", "finished", "", "old results", workloads)
        return
    for task in data["tasks"]:
        yield _Task(
            name=str(task.get("uuid", digest)),
            title=str(task.get("title", "")),
            status=str(task.get("status", "finished")),
            env=str(task.get("env_name", "")),
            rally=str(data.get("info", {}).get("rally_version", "?")),
            workloads=tuple(
                (str(subtask.get("title", "")), workload)
                for subtask in task["subtasks"]
                for workload in subtask["workloads"]
            ),
        )


def _of_old(one: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    """Give a workload of `rally task results` in the form of the report JSON."""
    key, kw = one["key"], one["key"]["kw"]
    runner = dict(kw.get("runner") or {"type": "serial"})
    workload = {
        "description": key.get("description", ""),
        "scenario": {key["name"]: kw.get("args") or {}},
        "runner": {runner.pop("type"): runner},
        "contexts": kw.get("context") or {},
        "sla": kw.get("sla") or {},
        "hooks": one.get("hooks") or [],
        "sla_results": {"sla": one["sla"]},
        "full_duration": one["full_duration"],
        "load_duration": one["load_duration"],
        "data": one["result"],
    }
    return key["name"], workload


def _run(task: _Task, path: Path) -> tuple[Result, tuple[Samples, ...]]:
    made = [_performance(title, workload) for title, workload in task.workloads]
    starts = [one.start_s for one, _ in made if one.start_s is not None]
    began_s = min(starts, default=0.0)
    ended_s = max((one.start_s or began_s) + one.full_s for one, _ in made) if made else began_s
    began, ended = (datetime.fromtimestamp(at_s, UTC) for at_s in (began_s, ended_s))
    mark = hashlib.sha256(task.name.encode()).hexdigest()[:6]
    result = Result(
        run_id=f"{began:%Y%m%d-%H%M}-{mark}",
        kind="task",
        status="finished" if task.status == "finished" else "interrupted",
        started_at=began.isoformat(timespec="seconds"),
        ended_at=ended.isoformat(timespec="seconds"),
        findings=(),
        environment=Environment(
            machine=(), target=(("environment of Rally", task.env), ("Rally", task.rally))
        ),
        command=f"loadstone results import {path.name}",
        performances=tuple(one for one, _ in made),
        title=task.title,
    )
    return result, tuple(samples for _, samples in made)


def _performance(subtask: str, workload: Mapping[str, Any]) -> tuple[Performance, Samples]:
    given = _given(workload)
    data = workload["data"]
    table = Table.of(data)
    samples, actions = table.samples(), table.actions()
    start_s = table.start_s if data else None
    showing = show(samples, actions) if data else None
    if showing is not None:
        load_s = float(workload["load_duration"])
        rps = showing.total.ok / load_s if load_s > 0 else 0.0
        showing = replace(showing, failures=_failures(data), load_s=load_s, throughput_rps=rps)
    rows = workload.get("sla_results", {}).get("sla", [])
    sla = tuple(
        Criterion(str(row["criterion"]), bool(row["success"]), str(row["detail"])) for row in rows
    )
    performance = Performance(
        subtask=subtask,
        scenario=next(iter(given["scenario"])),
        description=str(workload.get("description", "")),
        given=json.dumps(given),
        config_id=config_id(given),
        status="finished",
        start_s=start_s,
        full_s=float(workload["full_duration"]),
        showing=showing,
        sla=sla,
        actions=actions,
        hook_runs=tuple(rally_hooks.runs(workload)),
    )
    return performance, samples


def _given(workload: Mapping[str, Any]) -> dict[str, Any]:
    """Give the workload in the words in which our own are kept."""
    return {
        "scenario": masked(_short(workload["scenario"])),
        "runner": masked(_short(workload["runner"])),
        "contexts": masked(_short(workload.get("contexts") or {})),
        "sla": masked(_short(workload.get("sla") or {})),
        "hooks": masked(rally_hooks.configs(workload)),
    }


def _short(named: Mapping[str, Any]) -> dict[str, Any]:
    return {name.partition("@")[0]: settings for name, settings in named.items()}


def _failures(data: list[Mapping[str, Any]]) -> tuple[Failure, ...]:
    """Group failed iterations by the kind of their error and the beginning of its message."""
    counts: Counter[tuple[str, str]] = Counter()
    first: dict[tuple[str, str], tuple[int, str]] = {}
    for number, iteration in enumerate(data, 1):
        error = [str(part) for part in iteration.get("error") or []]
        if not error:
            continue
        kind, message = error[0], without((), error[1] if len(error) > 1 else error[0])
        key = (kind, " ".join(message.split())[:80])
        if key not in first and len(first) >= MOST_CAUSES:
            key = (OTHER_CAUSES, "")
        counts[key] += 1
        first.setdefault(key, (number, message))
    return tuple(
        Failure(
            cause=f"{kind}: {words}" if words else kind,
            count=count,
            message=f"{kind}: {first[kind, words][1]}",
            iteration=first[kind, words][0],
            action=ITERATION,
            outcome=Outcome.RAISED,
            status=0,
        )
        for (kind, words), count in counts.most_common()
    )
