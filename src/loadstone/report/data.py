"""A result as data for other programs; tests/data/result.schema.json describes it."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from loadstone.analysis.model import Durations, Trial
from loadstone.engine.health import Health
from loadstone.report import faults, identity, prediction, profile, resources, usage, words
from loadstone.report.generator import Generator, generator_of
from loadstone.report.hooks import charts, hooks
from loadstone.result.model import Measurement, Run
from loadstone.search.floor import judge_floor
from loadstone.search.model import Capacity

SCHEMA_VERSION = 2


def as_data(run: Run) -> dict[str, Any]:
    """Return the result as JSON-compatible data; unknown numbers are null.

    The measurement of a single search is at the top level, several are under `measurements`,
    the workloads of a task under `workloads`. `findings` are those of each measurement; where
    there are several measurements, they are also listed together at the top level.
    """
    data: dict[str, Any] = {
        "schema_version": SCHEMA_VERSION,
        "run_id": run.run_id,
        "kind": run.kind,
        "status": run.status,
        "started_at": run.started_at,
        "ended_at": run.ended_at,
        "command": run.command,
        "failure": run.failure,
        "environment": {
            "machine": dict(run.environment.machine),
            "target": dict(run.environment.target),
            "facts": dict(run.environment.facts),
            "audit": [asdict(one) for one in run.environment.audit],
        },
    }
    if run.workloads:
        workloads = [_workload(one) for one in run.workloads]
        return data | {
            "title": run.title,
            "findings": _findings(workloads),
            "workloads": workloads,
        }
    if len(run.searches) == 1:
        return data | _measurement(run.searches[0])
    measurements = [_measurement(one) for one in run.searches]
    return data | {"findings": _findings(measurements), "measurements": measurements}


def _findings(measurements: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return all findings of several measurements, each once."""
    findings: list[dict[str, Any]] = []
    for one in measurements:
        findings += [found for found in one["findings"] or () if found not in findings]
    return findings


def _measurement(measurement: Measurement) -> dict[str, Any]:
    return {
        "scenario": measurement.scenario,
        "title": measurement.title,
        "request": measurement.request,
        "policy": measurement.policy,
        "parameters": dict(measurement.parameters),
        "capacity": _capacity(measurement.capacity),
        "predicted": prediction.as_data(measurement),
        "profile": profile.as_data(measurement),
        "floor": _floor(measurement),
        "load_seconds": _number(measurement.load_s),
        "wall_seconds": _number(measurement.wall_s),
        "generator": _generator(generator_of(measurement)),
        "trials": [_trial(trial) for trial in measurement.trials],
        "words": list(words.of(measurement)),
        **_observed(measurement),
    }


def _observed(measurement: Measurement) -> dict[str, Any]:
    """Return resources and faults, with the findings of both in one list."""
    data = resources.of(measurement) | faults.as_data(measurement)
    found = resources.findings_as_data(faults.findings(measurement))
    return data | {"findings": [*(data["findings"] or ()), *found]} if found else data


def _workload(measurement: Measurement) -> dict[str, Any]:
    """Return a workload as JSON-compatible data; unknown numbers are null."""
    trial, stats, health = measurement.trial, measurement.stats, measurement.health
    spec = json.loads(measurement.spec)
    outputs = trial.outputs if trial else ()
    return {
        "policy": measurement.policy,
        "parameters": dict(measurement.parameters),
        "subtask": measurement.subtask,
        "scenario": measurement.scenario,
        "description": measurement.description,
        "status": measurement.status,
        "failure": measurement.failure,
        "given": spec,
        "config_id": measurement.config_id,
        "is_step": measurement.policy == "steps",
        "reduced": [asdict(one) for one in measurement.reduced],
        "requests": "rally" if measurement.requests_as_rally else "stated",
        "http": health.http if health else None,
        "start_time": trial.start_s if trial else None,
        "load_seconds": stats.load_s if stats else None,
        "full_seconds": measurement.wall_s,
        "pass_sla": measurement.checks_passed,
        "sla": [asdict(row) for row in measurement.checks],
        "throughput_rps": stats.throughput_rps if stats else None,
        "total": _durations(stats.total) if stats else None,
        "service_time": _durations(stats.service) if stats else None,
        "idle": _durations(stats.idle) if stats and stats.idle else None,
        "actions": [_durations(row) for row in stats.actions] if stats else [],
        "failures": [asdict(failure) for failure in stats.failures] if stats else [],
        "cut_off": stats.cut_off if stats else 0,
        "retried": health.retries if health else None,
        "tls_resumption": health.tls_resumption if health else None,
        "generator_valid": health.is_valid if health else None,
        "generator_limits": list(health.limits) if health else [],
        "usage": usage.as_data(measurement.usage),
        "identity_requests": identity.as_data(trial.identity) if trial else None,
        "samples_file": trial.samples_file if trial else None,
        "outputs": [{"iteration": one.iteration + 1, **charts(one)} for one in outputs],
        "outputs_dropped": trial.outputs_dropped if trial else 0,
        "hooks": list(hooks(measurement, spec.get("hooks") or [])),
        "profile": profile.as_data(measurement),
        **_observed(measurement),
    }


def _durations(row: Durations) -> dict[str, Any]:
    plain = asdict(row) | {"success": row.success}
    return {
        name: None if isinstance(value, float) and not math.isfinite(value) else value
        for name, value in plain.items()
    }


def _capacity(capacity: Capacity | None) -> dict[str, Any] | None:
    if capacity is None:
        return None
    return {
        "rate_rps": _number(capacity.rate_rps),
        "low_rps": _number(capacity.low_rps),
        "high_rps": _number(capacity.high_rps),
        "confidence": _number(capacity.confidence),
        "kind": capacity.kind,
        "words": list(capacity.words),
    }


def _floor(measurement: Measurement) -> dict[str, Any] | None:
    least = measurement.least_rps
    if least is None:
        return None
    return {"least_rps": least, "outcome": judge_floor(measurement.capacity, least).value}


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
    stats = trial.stats
    return {
        "number": trial.number,
        "purpose": trial.purpose,
        "rate_rps": _number(trial.rate_rps),
        "seconds": _number(stats.load_s),
        "planned_seconds": _number(trial.planned_s),
        "requests": stats.due,
        "throughput_rps": _number(stats.throughput_rps),
        "latency_ms": _percentiles(stats.total),
        "service_time_ms": _percentiles(stats.service),
        "errors": stats.failed,
        "errors_by_kind": dict(stats.errors),
        "retried": trial.health.retries if trial.health else None,
        "backlog_growth": _number(stats.backlog_growth),
        "verdict": trial.verdict.state.value,
        "cause": trial.verdict.cause.value if trial.verdict.cause else None,
        "reasons": list(trial.verdict.reasons),
        "checks": [asdict(check) for check in trial.checks],
        "actions": [_durations(row) for row in stats.actions],
        "generator": _health(trial.health),
        "usage": usage.as_data(trial.usage),
        "resources": resources.as_data(trial.resources.observation.uses)
        if trial.resources
        else None,
        "readings_file": trial.resources.readings_file if trial.resources else None,
        "samples_file": trial.samples_file,
    }


def _health(health: Health | None) -> dict[str, Any] | None:
    if health is None:
        return None
    return {
        "send_lag_ms": {
            "p50": _number(health.lag_p50_ms),
            "p99": _number(health.lag_p99_ms),
            "max": _number(health.lag_max_ms),
        },
        "connection_wait_ms": {
            "p99": _number(health.wait_p99_ms),
            "max": _number(health.wait_max_ms),
        },
        "waited": health.waited,
        "requests_without_port": health.without_port,
        "tls_resumption": health.tls_resumption,
        "cpu_share": _number(health.cpu_share),
        "valid": health.is_valid,
        "reasons": list(health.limits),
        "parts": [asdict(part) for part in health.parts],
    }


def _percentiles(times: Durations) -> dict[str, float | None]:
    return {
        "mean": _milliseconds(times.mean_s),
        "p50": _milliseconds(times.median_s),
        "p90": _milliseconds(times.p90_s),
        "p95": _milliseconds(times.p95_s),
        "p99": _milliseconds(times.p99_s),
        "max": _milliseconds(times.max_s),
    }


def _milliseconds(value_s: float) -> float | None:
    return _number(1000 * value_s)


def _number(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None
