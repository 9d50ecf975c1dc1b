"""The compared metrics and their values in a trial."""

from collections.abc import Mapping
from math import isfinite

from loadstone.analysis.model import Trial
from loadstone.compare.answer import Metric

CAPACITY = Metric("N", "/s", is_higher_better=True)
THROUGHPUT = Metric("throughput", "/s", is_higher_better=True, is_leading=True)
MEDIAN = Metric("latency p50", "s", is_higher_better=False)
P95 = Metric("latency p95", "s", is_higher_better=False)
P99 = Metric("latency p99", "s", is_higher_better=False)
# One at a time.
REQUEST_TIME = Metric("request time", "s", is_higher_better=False, is_leading=True)
STATEMENTS = Metric("SQL statements per request", "", is_higher_better=False, is_plural=True)
CPU = Metric("CPU per request", "s", is_higher_better=False)


LEADING = (THROUGHPUT, REQUEST_TIME)  # in the order of their rows


def values(trial: Trial, *, is_paced: bool) -> Mapping[Metric, float]:
    """Return the metrics of a trial, the primary one first.

    With a paced load the schedule determines the throughput, so the primary metric is the median
    latency.
    """
    total, usage = trial.stats.total, trial.usage
    found = {} if is_paced else {THROUGHPUT: trial.stats.completed_rps}
    found |= {MEDIAN: total.median_s, P95: total.p95_s, P99: total.p99_s}
    if usage is not None and usage.service_cpu_s is not None and total.ok:
        found[CPU] = usage.service_cpu_s / total.ok
    if trial.resources is not None:
        statements = trial.resources.observation.figure("statements_per_request")
        found |= {} if statements is None else {STATEMENTS: statements}
    return {metric: value for metric, value in found.items() if isfinite(value) and value > 0}
