"""Results to rows and back."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from sqlalchemy import RowMapping

from loadstone.analysis.model import Trial
from loadstone.result import Environment, Finding, Result
from loadstone.store import codec, owner

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


def result_of(
    run: RowMapping, findings: Sequence[RowMapping], trials: Sequence[RowMapping]
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
