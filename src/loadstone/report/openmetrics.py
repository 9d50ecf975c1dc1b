"""A result as OpenMetrics text, for Prometheus' textfile collector and push gateways.

Format: https://prometheus.io/docs/specs/om/open_metrics_spec/
"""

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from loadstone.report import words
from loadstone.report.generator import generator_of
from loadstone.result import Finding, Result

Labels = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Family:
    """One metric and what it means."""

    name: str
    unit: str  # also the end of the name, where there is one
    help: str


CAPACITY = Family("loadstone_capacity_rps", "rps", "Highest rate that the service sustains.")
CONFIDENCE = Family(
    "loadstone_capacity_confidence_ratio",
    "ratio",
    "Share of such searches whose interval holds the truth.",
)
LATENCY = Family(
    "loadstone_latency_seconds",
    "seconds",
    "Latency from the due time, at the highest sustained rate.",
)
SUSTAINED = Family("loadstone_sustained_rps", "rps", "Highest rate of a sustained trial.")
COST = Family(
    "loadstone_cpu_per_request_seconds", "seconds", "CPU of the service that one request costs."
)
FAILED = Family("loadstone_failed_requests", "requests", "Requests that failed, over all trials.")
SENT = Family("loadstone_due_requests", "requests", "Requests that were due, over all trials.")
VALID = Family("loadstone_generator_valid", "", "1 where the load generator was not the limit.")
LOAD = Family("loadstone_load_seconds", "seconds", "How long load was offered.")
FAMILIES = (CAPACITY, CONFIDENCE, LATENCY, SUSTAINED, COST, FAILED, SENT, VALID, LOAD)


def render(result: Result) -> str:
    """Give the metrics of a run, each with the time at which the run ended."""
    when = _epoch(result.ended_at)
    values: dict[str, list[str]] = {family.name: [] for family in FAMILIES}
    count = Counter(finding.scenario for finding in result.findings)
    for finding in result.findings:
        # Several searches of one scenario are told apart by their titles.
        part: Labels = (("search", finding.title),) if count[finding.scenario] > 1 else ()
        for family, labels, value in _figures(finding):
            if value is not None and math.isfinite(value):
                shown = (("scenario", finding.scenario), *part, *labels)
                values[family.name].append(f"{family.name}{_labels(shown)} {value!r}{when}")
    run = (("run_id", result.run_id), ("kind", result.kind), ("status", result.status))
    lines = [
        "# TYPE loadstone_run info",
        "# HELP loadstone_run The run that these figures are of.",
        f"loadstone_run_info{_labels(run)} 1{when}",
    ]
    for family in FAMILIES:
        if values[family.name]:
            lines.append(f"# TYPE {family.name} gauge")
            lines += [f"# UNIT {family.name} {family.unit}"] if family.unit else []
            lines.append(f"# HELP {family.name} {family.help}")
            lines += values[family.name]
    return "\n".join((*lines, "# EOF")) + "\n"


def _figures(finding: Finding) -> Iterator[tuple[Family, Labels, float | None]]:
    if finding.capacity is not None:
        yield CAPACITY, (("bound", "estimate"),), finding.capacity.rate_rps
        yield CAPACITY, (("bound", "low"),), finding.capacity.low_rps
        yield CAPACITY, (("bound", "high"),), finding.capacity.high_rps
        yield CONFIDENCE, (), finding.capacity.confidence
    trial = words.last_sustained(finding)
    if trial is not None:
        latency = trial.summary.latency
        for quantile, value_ms in (
            ("0.5", latency.p50_ms),
            ("0.9", latency.p90_ms),
            ("0.95", latency.p95_ms),
            ("0.99", latency.p99_ms),
        ):
            yield LATENCY, (("quantile", quantile),), value_ms / 1000
        yield SUSTAINED, (), trial.rate_rps
    yield COST, (), finding.cpu_per_request_s
    yield FAILED, (), float(sum(trial.summary.failed for trial in finding.trials))
    yield SENT, (), float(sum(trial.summary.due for trial in finding.trials))
    generator = generator_of(finding)
    yield VALID, (), None if generator is None else float(generator.is_valid)
    yield LOAD, (), finding.load_s


def _labels(labels: Labels) -> str:
    inside = ",".join(f'{name}="{_escaped(value)}"' for name, value in labels)
    return f"{{{inside}}}"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


def _epoch(moment: str | None) -> str:
    if moment is None:
        return ""
    return f" {datetime.fromisoformat(moment).timestamp():.3f}"
