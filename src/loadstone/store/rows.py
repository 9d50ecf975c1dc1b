"""Results to rows and back."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from datetime import UTC, datetime
from typing import Any

import numpy as np
from sqlalchemy import RowMapping

from loadstone.analysis.model import Trial
from loadstone.analysis.performance import figures
from loadstone.result import Environment, Finding, Performance, Performed, Result
from loadstone.store import codec, owner

NOTHING = figures("total", np.empty(0), 0)
KILLED = "the process that measured was killed; what it had measured until then is kept"


def run_row(result: Result) -> dict[str, Any]:
    """Give the row of a run, but for who measures it."""
    return {
        "run_id": result.run_id,
        "kind": result.kind,
        "status": result.status,
        "started_at": result.started_at,
        "ended_at": result.ended_at,
        "command": result.command,
        "failure": result.failure,
        "title": result.title,
        "environment": codec.dumps(result.environment),
    }


def finding_row(run_id: str, position: int, finding: Finding) -> dict[str, Any]:
    """Give the row of a finding; its trials have rows of their own."""
    capacity = finding.capacity
    return {
        "run_id": run_id,
        "position": position,
        "scenario": finding.scenario,
        "title": finding.title,
        "rate_rps": capacity.rate_rps if capacity else None,
        "low_rps": capacity.low_rps if capacity else None,
        "high_rps": capacity.high_rps if capacity else None,
        "body": codec.dumps(replace(finding, trials=())),
    }


def is_search(row: RowMapping) -> bool:
    """Say whether N was sought, or this is one stretch of load."""
    return codec.loads(Finding, row["body"]).is_search


def trial_row(run_id: str, position: int, trial: Trial) -> dict[str, Any]:
    """Give the row of a trial."""
    latency = trial.summary.latency
    return {
        "run_id": run_id,
        "position": position,
        "number": trial.number,
        "rate_rps": trial.rate_rps,
        "throughput_rps": trial.summary.throughput_rps,
        "p50_ms": _number(latency.p50_ms),
        "p99_ms": _number(latency.p99_ms),
        "state": trial.verdict.state.value,
        "samples_file": trial.samples_file,
        "body": codec.dumps(trial),
    }


def performance_row(run_id: str, position: int, performance: Performance) -> dict[str, Any]:
    """Give the row of a performed workload."""
    total = performance.showing.total if performance.showing else NOTHING
    began_s = performance.start_s
    began = datetime.fromtimestamp(began_s, UTC).isoformat("T", "seconds") if began_s else ""
    return {
        "run_id": run_id,
        "position": position,
        "scenario": performance.scenario,
        "config_id": performance.config_id,
        "started_at": began,
        "status": performance.status,
        "count": total.count,
        "ok": total.ok,
        "min_s": _number(total.min_s),
        "median_s": _number(total.median_s),
        "p90_s": _number(total.p90_s),
        "p95_s": _number(total.p95_s),
        "max_s": _number(total.max_s),
        "mean_s": _number(total.mean_s),
        "pass_sla": performance.pass_sla,
        "body": codec.dumps(performance),
    }


def performed(row: RowMapping) -> Performed:
    """Give a performed workload as lists show it."""
    return Performed(**{field.name: row[field.name] for field in fields(Performed)})


def result_of(
    run: RowMapping,
    findings: Sequence[RowMapping],
    trials: Sequence[RowMapping],
    performances: Sequence[RowMapping],
) -> Result:
    """Put a result together from its rows, each list in order."""
    status, failure = status_of(run)
    return Result(
        run_id=run["run_id"],
        kind=run["kind"],
        status=status,
        started_at=run["started_at"],
        ended_at=run["ended_at"],
        findings=tuple(_finding(row, trials) for row in findings),
        environment=codec.loads(Environment, run["environment"]),
        command=run["command"],
        failure=failure,
        performances=tuple(codec.loads(Performance, row["body"]) for row in performances),
        title=run["title"],
    )


def status_of(run: Mapping[Any, Any] | RowMapping) -> tuple[str, str | None]:
    """Give a run's status and failure; nobody wrote down that a killed one has ended."""
    if run["status"] == "running" and not owner.is_alive(run["owner"]):
        return "interrupted", KILLED
    return run["status"], run["failure"]


def _finding(row: RowMapping, trials: Sequence[RowMapping]) -> Finding:
    finding = codec.loads(Finding, row["body"])
    own = (trial for trial in trials if trial["position"] == row["position"])
    return replace(finding, trials=tuple(_trial(trial) for trial in own))


def _trial(row: RowMapping) -> Trial:
    return replace(codec.loads(Trial, row["body"]), samples_file=row["samples_file"])


def _number(value: float) -> float | None:
    return None if math.isnan(value) else value
