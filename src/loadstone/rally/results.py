"""Imports Rally's results as task runs: its report JSON and its old results JSON."""

import hashlib
import json
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from loadstone.analysis.model import NOT_JUDGED, Failure, Trial
from loadstone.analysis.sla import Check
from loadstone.analysis.stats import compute_stats
from loadstone.engine import parquet
from loadstone.engine.callables.causes import without
from loadstone.engine.callables.model import ITERATION
from loadstone.engine.outcome import Outcome
from loadstone.engine.samples import Samples
from loadstone.errors import EnvironmentUnusable, InvalidInput
from loadstone.rally import result_hooks
from loadstone.rally.export import AS_RALLY, OWN, PACED
from loadstone.rally.result_samples import SampleTable
from loadstone.rally.scenarios import has_requests_of_rally, is_data
from loadstone.rally.task.spec import masked_settings
from loadstone.result.model import Environment, Measurement, Run
from loadstone.result.task_workload import TaskWorkload
from loadstone.store.codec import BAD_DATA
from loadstone.store.import_limits import MOST_JSON_BYTES, duration_s, moment_s, read_json
from loadstone.store.store import Store
from loadstone.system.redaction import masked, secrets_in
from loadstone.system.say import Say

MOST_CAUSES = 100
OTHER_CAUSES = "other causes"
AS_RALLY_SENDS = frozenset({AS_RALLY, PACED})  # what holds of every task that Rally carried out
OLD_DATE = "%Y-%d-%mT%H:%M:%S"  # of `rally task results`


@dataclass(frozen=True, slots=True)
class _Task:
    """One task of Rally's, in the form of its report JSON."""

    name: str  # its uuid; old results: the digest of the file
    title: str
    status: str
    env: str
    rally: str
    # Title and description of the subtask, whether the workload is its first one, workload.
    workloads: tuple[tuple[tuple[str, str], bool, Mapping[str, Any]], ...]
    created_at: str = ""  # UTC without saying so
    tags: frozenset[str] = AS_RALLY_SENDS  # those of options here that do as Rally


def import_file(
    store: Store,
    path: Path,
    say: Say,
    require: Callable[[Run], None],
) -> tuple[str, ...]:
    """Import every task of a file of Rally's results; return the run ids.

    Tasks that are damaged or in the store already are left out, and those whose folder a killed
    import has left behind; `say` gets a line for each. `require` raises ValueError for a run that
    cannot be shown. Raises InvalidInput if no task can be imported.
    """
    tasks, skipped = _read(path)
    found = _runs(tasks, path, skipped, require)
    if not found:
        raise InvalidInput(_no_results(path, skipped[0]) if skipped else f"{path} holds no task")
    hiding = store.hiding(_secrets(task for task, _, _ in found.values()))
    stored = {run_id for run_id in found if store.holds(run_id)}
    if len(stored) == len(found):
        raise InvalidInput(f"run {min(stored)} of {path} is already in this store")
    imported = []
    for run_id, (_, run, tables) in found.items():
        if run_id in stored:
            skipped.append(f"run {run_id} is already in this store")
            continue
        try:
            _store(hiding, run, tables)
        except InvalidInput as left_behind:  # by an import that was killed
            skipped.append(str(left_behind))
        else:
            imported.append(run_id)
    if not imported:
        raise InvalidInput(skipped[-1])
    for line in skipped:
        say(line)
    return tuple(imported)


def _store(store: Store, run: Run, tables: Sequence[Samples]) -> None:
    """Store a run with its samples; nothing of it remains if that fails."""
    folder = store.make_folder(run.run_id)
    try:
        measurements = []
        for index, (measurement, samples) in enumerate(zip(run.measurements, tables, strict=True)):
            [trial] = measurement.trials
            samples_file = store.samples_path(run.run_id, index, trial.number)
            parquet.write(samples_file, samples)
            trial = replace(trial, samples_file=str(samples_file.relative_to(folder)))
            measurements.append(replace(measurement, trials=(trial,)))
        store.begin(replace(run, measurements=tuple(measurements)))
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def _runs(
    tasks: Sequence[_Task], path: Path, skipped: list[str], require: Callable[[Run], None]
) -> dict[str, tuple[_Task, Run, tuple[Samples, ...]]]:
    """Return the runs of tasks by their ids; add what is wrong with the others to `skipped`."""
    found: dict[str, tuple[_Task, Run, tuple[Samples, ...]]] = {}
    for number, task in enumerate(tasks, 1):
        try:
            run, tables = _run(task, path)
            require(run)
            if run.run_id in found:
                raise ValueError("the file has it twice")
            found[run.run_id] = task, run, tables
        except BAD_DATA as problem:
            skipped.append(f"task {number} ({task.name:.40}): {_why(problem)}")
    return found


def _read(path: Path) -> tuple[list[_Task], list[str]]:
    """Return the tasks of a file, and what is wrong with others."""
    try:
        if path.stat().st_size > MOST_JSON_BYTES:
            raise InvalidInput(f"{path} has more than {MOST_JSON_BYTES:,} bytes")
        text = path.read_bytes()
        data = read_json(text, str(path))
        return _tasks(data, hashlib.sha256(text).hexdigest())
    except OSError as problem:
        raise EnvironmentUnusable(f"cannot read {path}: {problem.strerror}") from problem
    except BAD_DATA as problem:
        raise InvalidInput(_no_results(path, _why(problem))) from problem


def _no_results(path: Path, why: str) -> str:
    return (
        f"{path} is neither an exported run (loadstone results export) nor results of Rally's "
        f"(rally task report --json, rally task results): {why}"
    )


def _why(problem: Exception) -> str:
    """Explain why the file is not valid."""
    match problem:
        case UnicodeDecodeError():
            return "it is not text"
        case json.JSONDecodeError():
            return f"it is not JSON (line {problem.lineno}: {problem.msg})"
        case KeyError():
            return f'"{problem.args[0]}" is missing in it'
        case ValueError() if "which is not a " in str(problem):
            return str(problem)
        case _:
            return "its values are not in the form that Rally writes"


def _tasks(data: Any, digest: str) -> tuple[list[_Task], list[str]]:
    if isinstance(data, list):
        workloads = tuple(_of_old(one) for one in data)
        if not workloads:
            return [], []
        dates = [str(date) for one in data if (date := one.get("created_at"))]
        created_at = min(_old_dates(dates), default="")
        return [_Task(digest, "", "finished", "", "old results", workloads, created_at)], []
    rally = str(data.get("info", {}).get("rally_version", "?"))
    tasks, skipped = [], []
    for number, task in enumerate(data["tasks"], 1):
        try:
            tasks.append(_task(task, digest, rally))
        except BAD_DATA as problem:
            skipped.append(f"task {number}: {_why(problem)}")
    return tasks, skipped


def _task(task: Mapping[str, Any], digest: str, rally: str) -> _Task:
    tags = task.get("tags") or ()
    return _Task(
        name=str(task.get("uuid", digest)),
        title=str(task.get("title") or ""),
        status=str(task.get("status", "finished")),
        env=str(task.get("env_name") or ""),
        rally=rally,
        workloads=tuple(
            (_titles(subtask), place == 0, workload)
            for subtask in task["subtasks"]
            for place, workload in enumerate(subtask["workloads"])
        ),
        created_at=str(task.get("created_at") or ""),
        tags=AS_RALLY_SENDS.intersection(tags) if OWN in tags else AS_RALLY_SENDS,
    )


def _old_dates(texts: Sequence[str]) -> Sequence[str]:
    """Return the dates of old results in ISO 8601; Rally writes the day before the month.

    If one of a file's dates cannot be read so, all are taken for ISO 8601.
    """
    try:
        return [datetime.strptime(one, OLD_DATE).isoformat() for one in texts]
    except ValueError:
        return texts


def _titles(subtask: Mapping[str, Any]) -> tuple[str, str]:
    return str(subtask.get("title") or ""), str(subtask.get("description") or "")


def _of_old(entry: Mapping[str, Any]) -> tuple[tuple[str, str], bool, Mapping[str, Any]]:
    """Return a workload of `rally task results` in the form of the report JSON."""
    key, kw = entry["key"], entry["key"]["kw"]
    runner = dict(kw.get("runner") or {"type": "serial"})
    workload = {
        "description": key.get("description", ""),
        "scenario": {key["name"]: kw.get("args") or {}},
        "runner": {runner.pop("type"): runner},
        "contexts": kw.get("context") or {},
        "sla": kw.get("sla") or {},
        "hooks": entry.get("hooks") or [],
        "sla_results": {"sla": entry["sla"]},
        "full_duration": entry["full_duration"],
        "load_duration": entry["load_duration"],
        "data": entry["result"],
    }
    return (key["name"], ""), False, workload


def _run(task: _Task, path: Path) -> tuple[Run, tuple[Samples, ...]]:
    results = [_measurement(*workload, task.tags) for workload in task.workloads]
    ends = [(one.trials[0].start_s, one.wall_s) for one, _ in results]
    began_s = min((start_s for start_s, _ in ends if start_s is not None), default=None)
    if began_s is None:  # no workload had an iteration
        began_s = _created_s(task)
    ended_s = max(((start_s or began_s) + wall_s for start_s, wall_s in ends), default=began_s)
    begin, end = (datetime.fromtimestamp(at_s, UTC) for at_s in (began_s, ended_s))
    # Rally calls such a task "aborted", as one that its user aborted.
    is_ended_by_sla = task.status == "aborted" and any(
        measurement.status == "aborted" for measurement, _ in results
    )
    mark = hashlib.sha256(task.name.encode()).hexdigest()[:6]
    run = Run(
        run_id=f"{begin:%Y%m%d-%H%M}-{mark}",
        kind="task",
        status="finished" if task.status == "finished" or is_ended_by_sla else "interrupted",
        started_at=begin.isoformat(timespec="seconds"),
        ended_at=end.isoformat(timespec="seconds"),
        measurements=tuple(one for one, _ in results),
        environment=Environment(
            machine=(), target=(("environment of Rally", task.env), ("Rally", task.rally))
        ),
        command=f"loadstone results import {path.name}",
        title=task.title,
    )
    return run, tuple(samples for _, samples in results)


def _created_s(task: _Task) -> float:
    if not task.created_at:
        return 0.0
    created_at = datetime.fromisoformat(task.created_at).replace(tzinfo=UTC)
    return moment_s(created_at.timestamp(), "created_at")


def _measurement(
    titles: tuple[str, str],
    begins_subtask: bool,
    workload: Mapping[str, Any],
    tags: frozenset[str],
) -> tuple[Measurement, Samples]:
    subtask, subtask_description = titles
    given = _given(workload)
    (scenario,) = given.scenario
    data = workload["data"]
    table = SampleTable.of(data)
    samples, actions = table.samples(), table.actions()
    computed = compute_stats(samples, actions)
    load_s = duration_s(workload["load_duration"], "load_duration")
    stats = replace(computed.stats, failures=_failures(data), load_s=load_s)
    rows = workload.get("sla_results", {}).get("sla", [])
    criteria = {str(row["criterion"]) for row in rows}
    is_ended_by_sla = "aborted_on_sla" in criteria and "aborted_manually" not in criteria
    status = "aborted" if is_ended_by_sla else "finished"
    trial = Trial(
        number=1,
        rate_rps=None,
        purpose="",
        planned_s=load_s,
        stats=replace(stats, throughput_rps=stats.completed_rps),
        timeline=computed.timeline,
        verdict=NOT_JUDGED,
        checks=tuple(
            Check(str(row["criterion"]), bool(row["success"]), str(row["detail"])) for row in rows
        ),
        start_s=table.start_s if data else None,
        actions=actions,
        status=status,
        hook_runs=tuple(result_hooks.runs(workload)),
    )
    measurement = Measurement(
        scenario=scenario,
        title=subtask,
        policy="fixed",
        status=status,
        trials=(trial,),
        wall_s=duration_s(workload["full_duration"], "full_duration"),
        subtask=subtask,
        begins_subtask=begins_subtask,
        subtask_description=subtask_description,
        description=str(workload.get("description") or ""),
        workload=given,
        requests_as_rally=AS_RALLY in tags
        and is_data(scenario)
        and has_requests_of_rally(scenario),
        paced_as_rally=PACED in tags and given.runner_name == "rps",
    )
    return measurement, samples


def _given(workload: Mapping[str, Any]) -> TaskWorkload:
    """Return the workload in the form of our own runs, secrets masked."""
    return TaskWorkload(
        scenario=masked_settings(_short(workload["scenario"])),
        runner=_short(workload["runner"]),
        contexts=masked_settings(_short(workload.get("contexts") or {})),
        sla=_short(workload.get("sla") or {}),
        hooks=tuple(masked(result_hooks.configs(workload))),
    )


def _secrets(tasks: Iterable[_Task]) -> frozenset[str]:
    parts = [
        [list(_named(workload, key).values()) for key in ("scenario", "contexts")]
        + [result_hooks.configs(workload)]
        for task in tasks
        for *_, workload in task.workloads
    ]
    return secrets_in(parts)


def _named(workload: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    return workload.get(key) or {}


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
