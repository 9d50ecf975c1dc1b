"""SLA rules over the iterations of a workload, with Rally's exact semantics.

Rally judges after each iteration, in the order in which they end; so do `judge` (after the last)
and `first_failure` (the iteration at which --abort-on-sla-failure acts). Rally's traps are kept:
a mean over no successful iteration is 0 and holds. Our own rules have none: no successful
iteration proves nothing.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import assert_never

import numpy as np

from loadstone.task.model import (
    FailureRate,
    MaxAvgDuration,
    MaxAvgDurationPerAtomic,
    MaxPercentiles,
    MaxSecondsPerIteration,
    MinIterations,
    MinThroughput,
    Outliers,
    PerformanceDegradation,
    SlaRule,
)
from loadstone.task.sums import Bools, Floats, Iterations, Sums, outlier_rows

TICK_S = 1e-9  # the shortest duration: a ratio to 0 says nothing (Rally raises an error there)


@dataclass(frozen=True, slots=True)
class Criterion:
    """One row of Rally's SLA results."""

    criterion: str
    success: bool
    detail: str


def judge(rules: Iterable[SlaRule], sums: Sums) -> tuple[Criterion, ...]:
    """Judge a workload that has ended, rule by rule."""
    return tuple(_judged(rule, sums) for rule in rules)


def first_failure(rules: Iterable[SlaRule], iterations: Iterations) -> int | None:
    """Give the index of the iteration after which a rule first fails.

    Rules that are judged at the end only (percentiles, throughput, minimum) never abort.
    """
    failures = [row for rule in rules if (row := _first(rule, iterations)) is not None]
    return min(failures, default=None)


def _status(success: bool) -> str:
    return "Passed" if success else "Failed"


def _judged(rule: SlaRule, sums: Sums) -> Criterion:  # noqa: PLR0911 (one each)
    match rule:
        case FailureRate():
            return _failure_rate(rule, sums)
        case MaxSecondsPerIteration():
            words = "Maximum seconds per iteration"
            return _at_most("max_seconds_per_iteration", words, sums.longest_s, rule.max_s)
        case MaxAvgDuration():
            words = "Average duration of one iteration"
            return _at_most("max_avg_duration", words, sums.good_mean_s, rule.max_s)
        case MaxAvgDurationPerAtomic():
            return _per_atomic(rule, sums)
        case Outliers():
            return _outliers(rule, sums)
        case PerformanceDegradation():
            return _degradation(rule, sums)
        case MaxPercentiles() | MinThroughput() | MinIterations():
            return _own(rule, sums)
        case _:
            assert_never(rule)


def _at_most(criterion: str, words: str, found_s: float, max_s: float) -> Criterion:
    success = found_s <= max_s
    detail = f"{words} {found_s:.2f}s <= {max_s:.2f}s - {_status(success)}"
    return Criterion(criterion, success, detail)


def _failure_rate(rule: FailureRate, sums: Sums) -> Criterion:
    count = sums.count
    rate = sums.failed * 100.0 / count if count else 0.0
    # Rally judges after each iteration: without one, nothing was judged.
    success = not count or rule.min_percent <= rate <= rule.max_percent
    limits = f"{rule.min_percent:.2f}% <= {rate:.2f}% <= {rule.max_percent:.2f}%"
    return Criterion(
        "failure_rate", success, f"Failure rate criteria {limits} - {_status(success)}"
    )


def _per_atomic(rule: MaxAvgDurationPerAtomic, sums: Sums) -> Criterion:
    # An action that was never made takes 0 s on average and holds: Rally's trap.
    means = {action: sums.action_mean_s.get(action, 0.0) for action in rule.max_s}
    success = all(means[action] <= most for action, most in rule.max_s.items())
    lines = [
        f"Action: '{action}'. {means[action]:.2f}s <= {most:.2f}s"
        for action, most in rule.max_s.items()
    ]
    head = "Average duration of one iteration for atomic actions:"
    detail = "\n".join([head, *lines, f"Status: {_status(success)}"])
    return Criterion("max_avg_duration_per_atomic", success, detail)


def _has(action: str, iterations: Iterations) -> bool:
    return action in iterations.action_count


def _outliers(rule: Outliers, sums: Sums) -> Criterion:
    count = sums.outliers(rule)
    success = count <= rule.max_count
    detail = f"Maximum number of outliers {count} <= {rule.max_count} - {_status(success)}"
    return Criterion("outliers", success, detail)


def _degradation(rule: PerformanceDegradation, sums: Sums) -> Criterion:
    found = 0.0
    if sums.good_range_s is not None:
        shortest, longest = (max(time_s, TICK_S) for time_s in sums.good_range_s)
        found = (longest / shortest - 1) * 100.0
    success = found <= rule.max_percent
    shown = f"{found:.6f}".rstrip("0")
    shown += "0" if shown.endswith(".") else ""
    detail = f"Current degradation: {shown}% - {_status(success)}"
    return Criterion("performance_degradation", success, detail)


def _own(rule: MaxPercentiles | MinThroughput | MinIterations, sums: Sums) -> Criterion:
    match rule:
        case MinIterations():
            success = sums.good >= rule.count
            words = f"Successful iterations {sums.good} >= {rule.count}"
            return Criterion("min_iterations", success, f"{words} - {_status(success)}")
        case MinThroughput():
            rate = sums.good / sums.load_s if sums.load_s > 0 else 0.0
            success = rate >= rule.min_rps
            words = f"Successful iterations per second {rate:.2f} >= {rule.min_rps:.2f}"
            return Criterion("min_throughput", success, f"{words} - {_status(success)}")
        case MaxPercentiles():
            return _percentiles(rule, sums)


def _percentiles(rule: MaxPercentiles, sums: Sums) -> Criterion:
    if not sums.good:
        return Criterion("max_percentiles", False, "No successful iteration - Failed")
    found = {wanted: sums.percentile_s(wanted) for wanted in rule.max_s}
    success = all(found[wanted] <= most for wanted, most in rule.max_s.items())
    parts = [
        f"p{wanted:g} {found[wanted]:.3f}s <= {most:.3f}s" for wanted, most in rule.max_s.items()
    ]
    return Criterion("max_percentiles", success, f"{', '.join(parts)} - {_status(success)}")


def _first(rule: SlaRule, iterations: Iterations) -> int | None:  # noqa: PLR0911 (one each)
    """Give the first row after which the rule does not hold."""
    match rule:
        case FailureRate():
            rate = iterations.failed.cumsum() * 100.0 / np.arange(1, len(iterations.failed) + 1)
            return _first_row(~((rule.min_percent <= rate) & (rate <= rule.max_percent)))
        case MaxSecondsPerIteration():
            return _first_row(iterations.duration_s > rule.max_s)
        case MaxAvgDuration():
            good = ~iterations.failed
            means = _running(iterations.duration_s, good, good.astype(np.float64))
            return _first_row(means > rule.max_s)
        case MaxAvgDurationPerAtomic():
            return _first_atomic(rule, iterations)
        case Outliers():
            rows = outlier_rows(rule, iterations)
            return rows[rule.max_count] if len(rows) > rule.max_count else None
        case PerformanceDegradation():
            return _first_degraded(rule, iterations)
        case MaxPercentiles() | MinThroughput() | MinIterations():
            return None
        case _:
            assert_never(rule)


def _first_row(failing: Bools) -> int | None:
    return int(failing.argmax()) if failing.any() else None


def _running(values: Floats, good: Bools, counts: Floats) -> Floats:
    """Give the mean over the successful rows so far; 0 before there is one."""
    sums = np.where(good, values, 0.0).cumsum()
    so_far = np.where(good, counts, 0.0).cumsum()
    means: Floats = np.divide(sums, so_far, out=np.zeros_like(sums), where=so_far > 0)
    return means


def _first_atomic(rule: MaxAvgDurationPerAtomic, iterations: Iterations) -> int | None:
    good = ~iterations.failed
    rows = [
        _first_row(
            _running(iterations.action_s[action], good, iterations.action_count[action]) > most
        )
        for action, most in rule.max_s.items()
        if _has(action, iterations)
    ]
    return min((row for row in rows if row is not None), default=None)


def _first_degraded(rule: PerformanceDegradation, iterations: Iterations) -> int | None:
    good = ~iterations.failed
    durations = np.maximum(iterations.duration_s, TICK_S)
    longest = np.maximum.accumulate(np.where(good, durations, -np.inf))
    shortest = np.minimum.accumulate(np.where(good, durations, np.inf))
    # Before the first successful row this is -inf / inf, which exceeds nothing.
    with np.errstate(invalid="ignore"):
        return _first_row((longest / shortest - 1) * 100.0 > rule.max_percent)
