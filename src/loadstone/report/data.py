"""A result as data for other programs; tests/data/result.schema.json says what stands where."""

import math
from typing import Any

from loadstone.analysis.model import Percentiles, Trial
from loadstone.monitor.usage import Usage
from loadstone.report import words, workload
from loadstone.report.generator import Generator, generator_of
from loadstone.result import Finding, Result
from loadstone.search.model import Capacity

SCHEMA_VERSION = 1


def as_data(result: Result) -> dict[str, Any]:
    """Give the result in what JSON knows; a number that is not known is null.

    The finding of a single search stands at the top level, those of several under `findings`,
    the workloads of a task under `workloads`.
    """
    data: dict[str, Any] = {
        "schema_version": SCHEMA_VERSION,
        "run_id": result.run_id,
        "kind": result.kind,
        "status": result.status,
        "started_at": result.started_at,
        "ended_at": result.ended_at,
        "command": result.command,
        "failure": result.failure,
        "environment": {
            "machine": dict(result.environment.machine),
            "target": dict(result.environment.target),
        },
    }
    if result.performances:
        workloads = [workload.as_data(one) for one in result.performances]
        return data | {"title": result.title, "workloads": workloads}
    if len(result.findings) == 1:
        return data | _finding(result.findings[0])
    return data | {"findings": [_finding(finding) for finding in result.findings]}


def _finding(finding: Finding) -> dict[str, Any]:
    return {
        "scenario": finding.scenario,
        "title": finding.title,
        "request": finding.request,
        "parameters": dict(finding.parameters),
        "capacity": _capacity(finding.capacity),
        "load_seconds": _number(finding.load_s),
        "wall_seconds": _number(finding.wall_s),
        "generator": _generator(generator_of(finding)),
        "trials": [_trial(trial) for trial in finding.trials],
        "words": list(words.of(finding)),
    }


def _capacity(capacity: Capacity | None) -> dict[str, Any] | None:
    if capacity is None:
        return None
    return {
        "rate_rps": _number(capacity.rate_rps),
        "low_rps": _number(capacity.low_rps),
        "high_rps": _number(capacity.high_rps),
        "confidence": _number(capacity.confidence),
        "words": list(capacity.words),
    }


def _generator(generator: Generator | None) -> dict[str, Any] | None:
    if generator is None:
        return None
    return {
        "send_lag_ms": {
            "p50": _number(generator.lag_p50_ms),
            "p99": _number(generator.lag_p99_ms),
            "max": _number(generator.lag_max_ms),
        },
        "cpu_share": _number(generator.cpu_share),
        "cpu_share_max": _number(generator.cpu_share_max),
        "valid": generator.is_valid,
        "invalid_trials": list(generator.invalid_trials),
        "reasons": list(generator.reasons),
    }


def _trial(trial: Trial) -> dict[str, Any]:
    summary = trial.summary
    return {
        "number": trial.number,
        "purpose": trial.purpose,
        "rate_rps": _number(trial.rate_rps),
        "seconds": _number(summary.load_s),
        "planned_seconds": _number(trial.planned_s),
        "requests": summary.due,
        "throughput_rps": _number(summary.throughput_rps),
        "latency_ms": _percentiles(summary.latency),
        "service_time_ms": _percentiles(summary.service_time),
        "errors": summary.failed,
        "errors_by_kind": dict(summary.errors),
        "backlog_growth": _number(summary.backlog_growth),
        "verdict": trial.verdict.state.value,
        "cause": trial.verdict.cause.value if trial.verdict.cause else None,
        "reasons": list(trial.verdict.reasons),
        "generator": {
            "send_lag_ms": {
                "p50": _number(trial.health.lag_p50_ms),
                "p99": _number(trial.health.lag_p99_ms),
                "max": _number(trial.health.lag_max_ms),
            },
            "cpu_share": _number(trial.health.cpu_share),
            "valid": trial.health.is_valid,
            "reasons": list(trial.health.limits),
        },
        "usage": _usage(trial.usage),
        "samples_file": trial.samples_file,
    }


def _usage(usage: Usage | None) -> dict[str, Any] | None:
    if usage is None:
        return None
    return {
        "cores": usage.cores,
        "machine_busy": _number(usage.machine_busy),
        "machine_steal": _number(usage.machine_steal),
        "service_cpu_seconds": _number(usage.service_cpu_s),
        "service_busy": _number(usage.service_busy),
        "generator_cpu_seconds": _number(usage.generator_cpu_s),
        "generator_busy": _number(usage.generator_busy),
    }


def _percentiles(latency: Percentiles) -> dict[str, float | None]:
    return {
        "mean": _number(latency.mean_ms),
        "p50": _number(latency.p50_ms),
        "p90": _number(latency.p90_ms),
        "p95": _number(latency.p95_ms),
        "p99": _number(latency.p99_ms),
        "max": _number(latency.max_ms),
    }


def _number(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None
