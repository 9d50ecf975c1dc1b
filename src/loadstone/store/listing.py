"""Lists of runs from rows, without the bodies of trials."""

import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from statistics import fmean
from typing import Any

from sqlalchemy import Connection, RowMapping, Table, select

from loadstone.result.listing import Entry, MeasurementSummary, Performed
from loadstone.result.model import TAG, WARM_UP, tags_of
from loadstone.search.low_load import ALONE
from loadstone.store import codec, owner
from loadstone.store.schema import measurements, require_values, runs, trials

# Columns of a trial: the durations of its successful iterations.
DURATIONS = ("min_s", "median_s", "p90_s", "p95_s", "p99_s", "max_s", "mean_s")
URLS = ("url", "environment of Rally")  # facts that name a target
KILLED = "the process that measured was killed; what it had measured until then is kept"


def every(connection: Connection, limit: int | None, store: str) -> tuple[list[Entry], list[str]]:
    """List the runs, newest first, at most `limit`; damaged ones are named in a line each.

    `store` is the option that chooses the store in the commands that the lines name.
    """
    newest = select(runs).order_by(runs.c.started_at.desc(), runs.c.run_id.desc()).limit(limit)
    entries, damaged = [], []
    for run in connection.execute(newest).mappings():
        try:
            entries.append(_entry(connection, run))
        except codec.BAD_DATA as problem:
            damaged.append(damage(run["run_id"], problem, store))
    return entries, damaged


def damage(run_id: str, problem: Exception, store: str, what: str = "is left out") -> str:
    """Return a line about a run whose rows cannot be read; `store` is the option of its store."""
    why = " ".join(f"{problem}".split())[:120] or type(problem).__name__
    return (
        f"run {run_id!r:.120} {what}: its rows in the store are damaged ({why}); to restore them "
        f"from its files: loadstone results recover{store}; to remove it: loadstone results delete "
        f"{shlex.quote(run_id[:120])}{store}"
    )


def history(connection: Connection, store: str) -> tuple[list[Performed], list[str]]:
    """List the workloads of all runs, oldest first; each step is an entry of its own.

    Damaged runs are named in a line each, as by `every`.
    """
    workloads = select(measurements).where(measurements.c.config_id != "")
    by_run: dict[str, list[RowMapping]] = {}
    for row in connection.execute(workloads.order_by(measurements.c.position)).mappings():
        by_run.setdefault(row["run_id"], []).append(row)
    found: list[Performed] = []
    damaged = []
    every_run = select(*_without(runs, "environment")).order_by(runs.c.run_id)
    for run in connection.execute(every_run).mappings():
        run_id = run["run_id"]
        try:
            rows = by_run.get(run_id, [])
            if rows and not _study(rows):  # whose cells differ on purpose
                found += _workloads(rows, _trials(connection, run_id), run)
        except codec.BAD_DATA as problem:
            damaged.append(damage(run_id, problem, store))
    return sorted(found, key=lambda one: (one.started_at, one.run_id)), damaged


def status_of(run: Mapping[Any, Any] | RowMapping) -> tuple[str, str | None]:
    """Return a run's status and failure. A killed run is still "running" in the database."""
    if run["status"] == "running" and not owner.is_alive(run["owner"]):
        return "interrupted", KILLED
    return run["status"], run["failure"]


def status_of_measurement(status: str, status_of_run: str) -> str:
    """Return a measurement's status: a run that was killed has one that is still "running"."""
    is_killed = status == "running" and status_of_run != "running"
    return "interrupted" if is_killed else status


def _entry(connection: Connection, run: RowMapping) -> Entry:
    query = select(measurements).where(measurements.c.run_id == run["run_id"])
    measurement_rows = connection.execute(query.order_by(measurements.c.position)).mappings().all()
    trial_rows = _trials(connection, run["run_id"])
    require_values(runs, run)
    facts = dict(json.loads(run["environment"])["target"])
    if not all(isinstance(text, str) for pair in facts.items() for text in pair):
        raise ValueError("a fact of its target is not a text")
    datetime.fromisoformat(run["started_at"])
    for row in measurement_rows:
        require_values(measurements, row)
    status, _ = status_of(run)
    return Entry(
        run_id=run["run_id"],
        kind=run["kind"],
        status=status,
        started_at=run["started_at"],
        ended_at=run["ended_at"],
        findings=tuple(
            _summary(connection, row, _of(row, trial_rows), status)
            for row in measurement_rows
            if not row["config_id"]
        ),
        trials=len(trial_rows),
        performed=tuple(
            _workloads(
                [row for row in measurement_rows if row["config_id"]],
                trial_rows,
                run,
            )
        ),
        title=run["title"],
        origin=_origin(run, facts, measurement_rows),
        target=facts.get("url") or facts.get("environment of Rally"),
        configuration=tuple(
            (name, value)
            for name, value in facts.items()
            if name not in URLS and not name.startswith(TAG)
        ),
        tags=tuple(tags_of(facts.items()).items()),
        duration_s=_duration_s(run),
    )


def _trials(connection: Connection, run_id: str) -> Sequence[RowMapping]:
    """Return the rows of a run's trials without their bodies."""
    query = select(*_without(trials, "body")).where(trials.c.run_id == run_id)
    found = connection.execute(query.order_by(*trials.primary_key.columns)).mappings().all()
    for row in found:
        require_values(trials, row)
    return found


def _without(table: Table, name: str) -> list[Any]:
    return [column for column in table.columns if column.name != name]


def _of(row: RowMapping, trial_rows: Sequence[RowMapping]) -> list[RowMapping]:
    return [trial for trial in trial_rows if trial["position"] == row["position"]]


# What a throughput without N is of, by policy.
LOADS = {
    "search": "",
    "prediction": "low load, to predict N",
    "turns": "in turns with another target",
}


def _summary(
    connection: Connection, row: RowMapping, trial_rows: Sequence[RowMapping], status_of_run: str
) -> MeasurementSummary:
    """Return the list entry of a search or a fixed load."""
    load = LOADS.get(row["policy"], "fixed load")
    stretch_rps = _mean_rps(connection, row, trial_rows) if load else None
    n = (row["rate_rps"], row["low_rps"], row["high_rps"])
    status = status_of_measurement(row["status"], status_of_run)
    return MeasurementSummary(
        row["scenario"],
        row["title"],
        *n,
        stretch_rps,
        load,
        is_running=status == "running",
        is_interrupted=status == "interrupted",
    )


def _mean_rps(
    connection: Connection, row: RowMapping, trial_rows: Sequence[RowMapping]
) -> float | None:
    """Return the mean throughput of a measurement's loads, without those that prepare another."""
    rates_rps = {trial["number"]: trial["throughput_rps"] for trial in trial_rows}
    if len(rates_rps) > 1:
        query = select(trials.c.number, trials.c.body).where(
            trials.c.run_id == row["run_id"], trials.c.position == row["position"]
        )
        for number, body in connection.execute(query):
            if json.loads(body).get("purpose") in (WARM_UP, ALONE):
                rates_rps.pop(number, None)
    return fmean(rates_rps.values()) if rates_rps else None


def _workloads(
    measurement_rows: Sequence[RowMapping], trial_rows: Sequence[RowMapping], run: RowMapping
) -> list[Performed]:
    status_of_run, _ = status_of(run)
    found: list[Performed] = []
    for row in measurement_rows:
        status = status_of_measurement(row["status"], status_of_run)
        own = {**row, "status": status, "started_at": run["started_at"]}
        found += _steps(own, _of(row, trial_rows), len(found))
    return found


def _steps(
    row: Mapping[Any, Any], trials: Sequence[RowMapping], position: int
) -> tuple[Performed, ...]:
    """Return the list entries of a workload, one for each step.

    A workload or step that ended before its load has no trial, but an entry, which began with its
    run.
    """
    ended = [_performed(row, trial, at) for at, trial in enumerate(trials, position)]
    has_all = row["status"] in ("finished", "aborted") or row["policy"] == "fixed"
    if ended and (has_all or ended[-1].status == row["status"]):
        last = ended.pop()
    else:
        nothing = {"count": 0, "ok": 0, "checks_passed": True}
        last = _performed(row, {**row, **nothing}, position + len(ended))
    return (*ended, replace(last, pass_sla=_pass_sla(row, last)))


def _pass_sla(row: Mapping[Any, Any], last: Performed) -> bool | None:
    """Return whether the last step of a workload held its SLA; None if it did not end."""
    if row["failure"] is not None:
        return False
    return None if row["status"] in ("running", "interrupted") else last.pass_sla


def _performed(
    row: Mapping[Any, Any], trial: Mapping[Any, Any] | RowMapping, position: int
) -> Performed:
    names = ("config_id", "started_at", "status", "count", "ok")
    common: dict[str, Any] = {name: trial[name] for name in names}
    # A workload without an iteration has no time of its own.
    common["started_at"] = common["started_at"] or row["started_at"]
    times: dict[str, Any] = {name: trial.get(name) for name in DURATIONS if name != "p99_s"}
    return Performed(
        run_id=row["run_id"],
        position=position,
        scenario=row["scenario"],
        **common,
        **times,
        pass_sla=trial["checks_passed"],
        has_sla=bool(json.loads(row["body"])["workload"]["sla"]),
    )


def _origin(run: RowMapping, facts: Mapping[str, str], measured: Sequence[RowMapping]) -> str:
    """Return the origin of a run: a command, a study, or Rally."""
    if "Rally" in facts:
        return f"imported from Rally {facts['Rally']}"
    if study := _study(measured):
        return f"study {study}"
    # A run that ended before its first measurement does not say which study.
    return "study" if run["command"].startswith("loadstone study") else run["kind"]


def _study(measured: Sequence[RowMapping]) -> str:
    """Return the study that a run is of; empty if it is of none."""
    found = (dict(json.loads(row["body"]).get("parameters", ())) for row in measured[:1])
    return next((str(one.get("study") or "") for one in found), "")


def _duration_s(run: RowMapping) -> float | None:
    """Return how long a run took; None if it has not ended, or the clock was set back meanwhile."""
    if run["ended_at"] is None:
        return None
    began, ended = (datetime.fromisoformat(run[name]) for name in ("started_at", "ended_at"))
    return (ended - began).total_seconds() if ended >= began else None
