"""A result as metrics, for node_exporter's textfile collector, push gateways and Prometheus.

The text is valid both as OpenMetrics and in the Prometheus format. It holds only gauges and
summaries, without timestamps: node_exporter rejects a whole file for a type that it does not know,
and for any timestamp.

Formats: https://prometheus.io/docs/specs/om/open_metrics_spec/,
https://prometheus.io/docs/instrumenting/exposition_formats/
"""

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from loadstone.analysis.model import NOT_JUDGED, Durations, Trial, TrialState
from loadstone.engine.health import Health
from loadstone.monitor.usage import Usage
from loadstone.report import exposition, names, prediction
from loadstone.report.generator import generator_of
from loadstone.report.sections import steps
from loadstone.report.sections.trials import representative
from loadstone.result.model import Measurement, Run
from loadstone.search.model import Capacity

Labels = dict[str, str]
PREFIX = "loadstone_"
UNITS = ("seconds", "ratio")

# All metrics, in the order of the text. An iteration is one pass through a scenario.
HELP = {
    "run_info": "The run that these figures are of; always 1.",
    "run_start_timestamp_seconds": "Unix time at which the run began.",
    "run_end_timestamp_seconds": "Unix time at which the run ended.",
    "capacity_iterations_per_second": "N, the highest rate that the service sustains.",
    "capacity_confidence_ratio": "Confidence level of the interval of N.",
    "predicted_iterations_per_second": "N as predicted from a low load.",
    "measurement_status": "How the measurement ended (label status); always 1.",
    "measurement_sustained_iterations_per_second": "Rate of the fastest sustained trial.",
    "measurement_latency_seconds": "Latency since the due time, in the only trial, or of a search "
    "in the fastest sustained one.",
    "measurement_iterations": "Iterations that were due, over all trials.",
    "measurement_failed_iterations": "Iterations that failed, over all trials.",
    "measurement_cpu_per_iteration_seconds": "CPU time of the service that one iteration costs.",
    "measurement_load_duration_seconds": "Time during which load was offered.",
    "measurement_duration_seconds": "Time that the measurement took, with set-up and clean-up.",
    "measurement_checks_passed": "1 if all criteria held, else 0.",
    "measurement_hook_runs": "Times that hooks acted.",
    "measurement_failed_hook_runs": "Times that hooks failed.",
    "measurement_generator_valid": "1 if the load generator was not the limit, else 0.",
    "measurement_generator_send_lag_seconds": "Worst lateness of the load generator.",
    "measurement_generator_cpu_ratio": "CPU of the load generator, of one core per thread.",
    "trial_verdict": "How the trial was judged (label verdict); always 1.",
    "trial_check_success": "1 if this criterion held, else 0.",
    "trial_step_load": "Load of this step: concurrency, or iterations per second (rps).",
    "trial_offered_iterations_per_second": "Constant rate that was offered.",
    "trial_throughput_iterations_per_second": "Successful iterations per second of load.",
    "trial_latency_seconds": "Latency since the due time, of successful iterations.",
    "trial_service_time_seconds": "Time since the actual send, of successful iterations.",
    "trial_iterations": "Iterations that were due.",
    "trial_failed_iterations": "Iterations that failed.",
    "trial_cut_off_iterations": "Iterations that were due and had not ended with the load.",
    "trial_errors": "Iterations that failed, by action and cause.",
    "trial_action_iterations": "Iterations in which the action was made.",
    "trial_action_failed_iterations": "Iterations in which the action failed.",
    "trial_action_duration_seconds": "Duration of the action, where it was successful.",
    "trial_load_duration_seconds": "Time from the first due time to the last end.",
    "trial_backlog_growth_ratio": "Seconds of offered work that the backlog gains per second.",
    "trial_generator_valid": "1 if the load generator was not the limit, else 0.",
    "trial_generator_send_lag_seconds": "Time from the due time until the generator took it up.",
    "trial_generator_cpu_ratio": "CPU of the load generator, of one core per thread.",
    "trial_machine_busy_ratio": "Busy share of all cores of this machine.",
    "trial_machine_steal_ratio": "Share of all cores that the hypervisor gave to others.",
    "trial_service_busy_ratio": "Share of all cores that the service used.",
    "trial_generator_busy_ratio": "Share of all cores that the load generator used.",
    "trial_service_cpu_seconds": "CPU time of the service's processes.",
    "trial_ended_processes": "Processes of the service that ended under load.",
}


@dataclass(frozen=True, slots=True)
class SummaryValues:
    """Values of a summary metric, in seconds."""

    quantiles: tuple[tuple[str, float], ...]
    count: int
    mean_s: float


Point = tuple[str, Labels, float | SummaryValues | None]


def render(run: Run) -> str:
    """Return the metrics of a run as text; without unknown values."""
    from prometheus_client import Metric

    metrics: dict[str, Metric] = {}
    for name, labels, value in _points(run):
        if name not in metrics:
            kind = "summary" if isinstance(value, SummaryValues) else "gauge"
            unit = next((unit for unit in UNITS if name.endswith(f"_{unit}")), "")
            metrics[name] = Metric(PREFIX + name, HELP[name], kind, unit)
        for suffix, own_labels, number in _samples(value):
            metrics[name].add_sample(PREFIX + name + suffix, labels | own_labels, number)

    return exposition.text_of(
        metrics[name] for name in HELP if name in metrics and metrics[name].samples
    )


def _samples(value: float | SummaryValues | None) -> Iterator[tuple[str, Labels, float]]:
    match value:
        case SummaryValues():
            if value.count:
                for quantile, time_s in value.quantiles:
                    yield "", {"quantile": quantile}, time_s
                yield "_count", {}, float(value.count)
                yield "_sum", {}, value.mean_s * value.count
        case float() if math.isfinite(value):
            yield "", {}, value


def _points(run: Run) -> Iterator[Point]:
    target = dict(run.environment.target).get("url")
    where = {"target": target} if target else {}
    own = {"run_id": run.run_id}
    yield "run_info", {**own, "kind": run.kind, "status": run.status, **where}, 1.0
    yield "run_start_timestamp_seconds", own, _epoch(run.started_at)
    yield "run_end_timestamp_seconds", own, _epoch(run.ended_at)
    named = names.unique((one.scenario, names.of_measurement(one)) for one in run.measurements)
    for measurement, name in zip(run.measurements, named, strict=True):
        labels = {**where, "scenario": measurement.scenario, "measurement": name}
        for metric, more, value in _measurement(measurement):
            yield metric, labels | more, value


def _measurement(measurement: Measurement) -> Iterator[Point]:
    trials = measurement.trials
    yield "measurement_status", {"status": measurement.status}, 1.0
    yield from _capacity(measurement)
    yield "measurement_iterations", {}, float(sum(t.stats.due for t in trials))
    yield "measurement_failed_iterations", {}, float(sum(t.stats.failed for t in trials))
    yield "measurement_cpu_per_iteration_seconds", {}, measurement.cpu_per_request_s
    yield "measurement_load_duration_seconds", {}, measurement.load_s
    yield "measurement_duration_seconds", {}, measurement.wall_s
    if measurement.checks:
        yield "measurement_checks_passed", {}, float(measurement.checks_passed)
    if runs := measurement.hook_runs:
        yield "measurement_hook_runs", {}, float(len(runs))
        failed = sum(run.status == "failed" for run in runs)
        yield "measurement_failed_hook_runs", {}, float(failed)
    yield from _generator(measurement)
    for trial in trials:
        for metric, own, value in (*_step(measurement, trial), *_trial(trial)):
            yield metric, {"trial": str(trial.number), **own}, value


def _capacity(measurement: Measurement) -> Iterator[Point]:
    capacity = measurement.capacity
    if capacity is not None:
        n_rps = estimate_rps(capacity)
        yield "capacity_iterations_per_second", {"bound": "estimate"}, n_rps
        yield "capacity_iterations_per_second", {"bound": "low"}, capacity.low_rps
        yield "capacity_iterations_per_second", {"bound": "high"}, capacity.high_rps
        yield "capacity_confidence_ratio", {}, capacity.confidence or None
    predicted = measurement.prediction
    if predicted is not None and prediction.unwatched(measurement):  # only an upper bound is known
        yield "predicted_iterations_per_second", {"bound": "high"}, predicted.rate_rps
    elif predicted is not None:
        yield "predicted_iterations_per_second", {"bound": "estimate"}, predicted.rate_rps
        yield "predicted_iterations_per_second", {"bound": "low"}, predicted.low_rps
        yield "predicted_iterations_per_second", {"bound": "high"}, predicted.high_rps
    best = representative(measurement)
    if best is not None and best.verdict.state is TrialState.SUSTAINED:
        yield "measurement_sustained_iterations_per_second", {}, best.rate_rps
    if best is not None:
        yield "measurement_latency_seconds", {}, _distribution(best.stats.total)


def estimate_rps(found: Capacity) -> float | None:
    """Return N; None if only a bound is known: "at least 50"."""
    is_bound = found.low_rps is not None and found.high_rps is None
    return None if is_bound else found.rate_rps


def _generator(measurement: Measurement) -> Iterator[Point]:
    generator = generator_of(measurement)
    if generator is not None:
        yield "measurement_generator_valid", {}, float(generator.is_valid)
        lag_ms = (generator.lag_p50_ms, generator.lag_p99_ms, generator.lag_max_ms)
        yield from _lag("measurement", lag_ms)
        yield "measurement_generator_cpu_ratio", {"stat": "mean"}, generator.cpu_share
        yield "measurement_generator_cpu_ratio", {"stat": "max"}, generator.cpu_share_max


def _step(measurement: Measurement, trial: Trial) -> Iterator[Point]:
    if trial.runner is not None:
        setting, value = steps.setting_and_value(measurement.step(trial))
        yield "trial_step_load", {"setting": setting}, value


def _trial(trial: Trial) -> Iterator[Point]:
    stats = trial.stats
    if trial.verdict != NOT_JUDGED:
        yield "trial_verdict", {"verdict": trial.verdict.state.value}, 1.0
    for criterion, held in {check.criterion: check.success for check in trial.checks}.items():
        yield "trial_check_success", {"criterion": criterion}, float(held)
    yield "trial_offered_iterations_per_second", {}, trial.rate_rps
    yield "trial_throughput_iterations_per_second", {}, stats.throughput_rps
    yield "trial_latency_seconds", {}, _distribution(stats.total)
    yield "trial_service_time_seconds", {}, _distribution(stats.service)
    yield "trial_iterations", {}, float(stats.due)
    yield "trial_failed_iterations", {}, float(stats.failed)
    yield "trial_cut_off_iterations", {}, float(stats.cut_off)
    errors: Counter[tuple[str, str]] = Counter()
    for failure in stats.failures:
        errors[failure.action, failure.kind] += failure.count
    for (action, cause), count in errors.items():
        yield "trial_errors", {"action": action, "cause": cause}, float(count)
    for row in stats.actions:
        of_action = {"action": row.name}
        yield "trial_action_iterations", of_action, float(row.count)
        yield "trial_action_failed_iterations", of_action, float(row.count - row.ok)
        yield "trial_action_duration_seconds", of_action, _distribution(row)
    yield "trial_load_duration_seconds", {}, stats.load_s
    yield "trial_backlog_growth_ratio", {}, stats.backlog_growth
    yield from _health(trial.health)
    yield from _usage(trial.usage)


def _usage(usage: Usage | None) -> Iterator[Point]:
    if usage is None:
        return
    yield "trial_machine_busy_ratio", {}, usage.machine_busy
    yield "trial_machine_steal_ratio", {}, usage.machine_steal
    yield "trial_service_busy_ratio", {}, usage.service_busy
    yield "trial_generator_busy_ratio", {}, usage.generator_busy
    yield "trial_service_cpu_seconds", {}, usage.service_cpu_s
    yield "trial_ended_processes", {}, float(len(usage.ended))


def _health(health: Health | None) -> Iterator[Point]:
    if health is None:
        return
    yield "trial_generator_valid", {}, float(health.is_valid)
    yield from _lag("trial", (health.lag_p50_ms, health.lag_p99_ms, health.lag_max_ms))
    yield "trial_generator_cpu_ratio", {}, health.cpu_share


def _lag(prefix: str, lag_ms: tuple[float, float, float]) -> Iterator[Point]:
    for stat, value_ms in zip(("p50", "p99", "max"), lag_ms, strict=True):
        yield f"{prefix}_generator_send_lag_seconds", {"stat": stat}, value_ms / 1000


def _distribution(row: Durations) -> SummaryValues:
    quantiles = (
        ("0.0", row.min_s),
        ("0.5", row.median_s),
        ("0.9", row.p90_s),
        ("0.95", row.p95_s),
        ("0.99", row.p99_s),
        ("1.0", row.max_s),
    )
    return SummaryValues(quantiles, row.ok, row.mean_s)


def _epoch(moment: str | None) -> float | None:
    return None if moment is None else datetime.fromisoformat(moment).timestamp()
