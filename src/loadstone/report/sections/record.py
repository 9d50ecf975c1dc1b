"""Every figure of a measurement as data, with the same keys for each; null: unknown or absent.

`report/result.schema.json` describes it.
"""

from dataclasses import asdict
from typing import Any

from loadstone.analysis.model import Durations, TracedRequest, Trial
from loadstone.engine.health import Health
from loadstone.report import identity, prediction, profile, resources, usage
from loadstone.report.data import finite
from loadstone.report.generator import Generator, generator_of
from loadstone.report.hooks import charts, hooks
from loadstone.report.sections import fault
from loadstone.result.model import Measurement
from loadstone.search.floor import judge_floor
from loadstone.search.model import Capacity


def of(measurement: Measurement) -> dict[str, Any]:
    """Return the figures of a measurement as JSON-compatible data."""
    given = measurement.workload.as_data() if measurement.workload else None
    watched = resources.of(measurement)
    overload = resources.findings_as_data(fault.findings(measurement))
    return {
        "scenario": measurement.scenario,
        "title": measurement.title,
        "subtask": measurement.subtask,
        "subtask_description": measurement.subtask_description,
        "description": measurement.description,
        "request": measurement.request,
        "policy": measurement.policy,
        "status": measurement.status,
        "failure": measurement.failure,
        "parameters": dict(measurement.parameters),
        "given": given,
        "config_id": measurement.config_id or None,
        "requests_as_rally": measurement.requests_as_rally,
        "paced_as_rally": measurement.paced_as_rally,
        "reduced": [asdict(one) for one in measurement.reduced],
        "capacity": _capacity(measurement.capacity),
        "predicted": prediction.as_data(measurement),
        "floor": _floor(measurement),
        "checks": [asdict(row) for row in measurement.checks],
        "checks_passed": measurement.checks_passed if measurement.checks else None,
        "load_seconds": finite(measurement.load_s),
        "wall_seconds": finite(measurement.wall_s),
        "generator": _generator(generator_of(measurement)),
        **watched,
        "findings": [*watched["findings"], *overload],
        "faults": fault.as_data(measurement),
        "unmeasured_faults": fault.unmeasured_as_data(measurement),
        "faults_summary": fault.summary_as_data(measurement),
        "profile": profile.as_data(measurement),
        "hooks": list(hooks(measurement)),
        "trials": [_trial(trial) for trial in measurement.trials],
    }


def durations(row: Durations) -> dict[str, Any]:
    """Return durations in seconds, with how often they occurred and succeeded."""
    plain = asdict(row) | {"success": row.success}
    return {
        name: finite(value) if isinstance(value, float) else value for name, value in plain.items()
    }


def _capacity(capacity: Capacity | None) -> dict[str, Any] | None:
    if capacity is None:
        return None
    return {
        "rate_rps": finite(capacity.rate_rps),
        "low_rps": finite(capacity.low_rps),
        "high_rps": finite(capacity.high_rps),
        "confidence": finite(capacity.confidence),
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
        "send_lag_ms": _send_lag_ms(generator),
        "cpu_share": finite(generator.cpu_share),
        "cpu_share_max": finite(generator.cpu_share_max),
        "valid": generator.is_valid,
        "invalid_trials": list(generator.invalid_trials),
        "reasons": list(generator.reasons),
    }


def _send_lag_ms(sender: Generator | Health) -> dict[str, Any]:
    return {
        "p50": finite(sender.lag_p50_ms),
        "p99": finite(sender.lag_p99_ms),
        "max": finite(sender.lag_max_ms),
    }


def _trial(trial: Trial) -> dict[str, Any]:
    stats, seen = trial.stats, trial.resources
    return {
        "number": trial.number,
        "purpose": trial.purpose,
        "status": trial.status,
        "runner": trial.runner,
        "start_time": trial.start_s,
        "rate_rps": finite(trial.rate_rps),
        "seconds": finite(stats.load_s),
        "planned_seconds": finite(trial.planned_s),
        "wall_seconds": finite(trial.wall_s) or None,
        "requests": stats.due,
        "cut_off": stats.cut_off,
        "throughput_rps": finite(stats.throughput_rps),
        "latency": durations(stats.total),
        "service_time": durations(stats.service),
        "idle": durations(stats.idle) if stats.idle else None,
        "actions": [durations(row) for row in stats.actions],
        "errors": stats.failed,
        "errors_by_kind": dict(stats.errors),
        "failures": [asdict(failure) for failure in stats.failures],
        "retried": trial.health.retries if trial.health else None,
        "backlog_growth": finite(stats.backlog_growth),
        "verdict": trial.verdict.state.value,
        "cause": trial.verdict.cause.value if trial.verdict.cause else None,
        "reasons": list(trial.verdict.reasons),
        "checks": [asdict(check) for check in trial.checks],
        "generator": _health(trial.health),
        "usage": usage.as_data(trial.usage),
        "resources": resources.as_data(seen.observation.uses, seen.observation.service)
        if seen
        else [],
        "identity_requests": identity.as_data(trial.identity),
        "outputs": [{"iteration": one.iteration + 1, **charts(one)} for one in trial.outputs],
        "outputs_dropped": trial.outputs_dropped,
        "traces": [_traced(one) for one in trial.traces],
        "readings_file": seen.readings_file if seen else None,
        "samples_file": trial.samples_file,
    }


def _traced(request: TracedRequest) -> dict[str, Any]:
    return {
        "trace_id": request.trace_id,
        "action": request.action,
        "iteration": request.iteration + 1,
        "due_seconds": finite(request.due_s),
        "latency_seconds": finite(request.latency_s),
        "result": request.outcome,
    }


def _health(health: Health | None) -> dict[str, Any] | None:
    if health is None:
        return None
    return {
        "send_lag_ms": _send_lag_ms(health),
        "connection_wait_ms": {
            "p99": finite(health.wait_p99_ms),
            "max": finite(health.wait_max_ms),
        },
        "waited": health.waited,
        "requests_without_port": health.without_port,
        "http": health.http,
        "ceiling": health.ceiling or None,
        "tls_resumption": health.tls_resumption,
        "cpu_share": finite(health.cpu_share),
        "core_wait_seconds": finite(health.runqueue_wait_s),
        "valid": health.is_valid,
        "reasons": list(health.limits),
        "parts": [asdict(part) for part in health.parts],
    }
