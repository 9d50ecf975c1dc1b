"""SLA rules over the iterations of a workload, with Rally's exact semantics.

Rally judges after each iteration, in the order in which they end; so do `judge` (after the last)
and `first_failure` (the iteration at which --abort-on-sla-failure acts). Rally's traps are kept:
a mean over no successful iteration is 0 and holds. Our own rules have none: no successful
iteration proves nothing.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import assert_never

import numpy as np
import numpy.typing as npt

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

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
TICK_S = 1e-9  # the shortest duration: a ratio to 0 says nothing (Rally raises an error there)


@dataclass(frozen=True, slots=True)
class Iterations:
    """The iterations of one workload in the order in which they ended, one row each."""

    duration_s: Floats
    failed: Bools
    # Action -> sum of its durations and how often it was made, by iteration.
    action_s: Mapping[str, Floats] = field(default_factory=dict)
    action_count: Mapping[str, Floats] = field(default_factory=dict)
    load_s: float = 0.0  # from the first start to the last end

    @property
    def good_s(self) -> Floats:
        """Durations of the successful iterations."""
        return self.duration_s[~self.failed]


@dataclass(frozen=True, slots=True)
class Criterion:
    """One row of Rally's SLA results."""

    criterion: str
    success: bool
    detail: str


def judge(rules: Iterable[SlaRule], iterations: Iterations) -> tuple[Criterion, ...]:
    """Judge a workload that has ended, rule by rule."""
    return tuple(_judged(rule, iterations) for rule in rules)


def first_failure(rules: Iterable[SlaRule], iterations: Iterations) -> int | None:
    """Give the index of the iteration after which a rule first fails.

    Rules that are judged at the end only (percentiles, throughput, minimum) never abort.
    """
    failures = [row for rule in rules if (row := _first(rule, iterations)) is not None]
    return min(failures, default=None)


def _status(success: bool) -> str:
    return "Passed" if success else "Failed"


def _judged(rule: SlaRule, iterations: Iterations) -> Criterion:  # noqa: PLR0911 (one each)
    match rule:
        case FailureRate():
            return _failure_rate(rule, iterations)
        case MaxSecondsPerIteration():
            longest = float(iterations.duration_s.max(initial=0.0))
            return _at_most(
                "max_seconds_per_iteration", "Maximum seconds per iteration", longest, rule.max_s
            )
        case MaxAvgDuration():
            mean = _mean(iterations.good_s)
            return _at_most(
                "max_avg_duration", "Average duration of one iteration", mean, rule.max_s
            )
        case MaxAvgDurationPerAtomic():
            return _per_atomic(rule, iterations)
        case Outliers():
            return _outliers(rule, iterations)
        case PerformanceDegradation():
            return _degradation(rule, iterations)
        case MaxPercentiles() | MinThroughput() | MinIterations():
            return _own(rule, iterations)
        case _:
            assert_never(rule)


def _at_most(criterion: str, words: str, found_s: float, max_s: float) -> Criterion:
    success = found_s <= max_s
    detail = f"{words} {found_s:.2f}s <= {max_s:.2f}s - {_status(success)}"
    return Criterion(criterion, success, detail)


def _mean(values: Floats) -> float:
    return float(values.mean()) if len(values) else 0.0


def _failure_rate(rule: FailureRate, iterations: Iterations) -> Criterion:
    count = len(iterations.failed)
    rate = float(iterations.failed.sum() * 100.0 / count) if count else 0.0
    # Rally judges after each iteration: without one, nothing was judged.
    success = not count or rule.min_percent <= rate <= rule.max_percent
    limits = f"{rule.min_percent:.2f}% <= {rate:.2f}% <= {rule.max_percent:.2f}%"
    return Criterion(
        "failure_rate", success, f"Failure rate criteria {limits} - {_status(success)}"
    )


def _per_atomic(rule: MaxAvgDurationPerAtomic, iterations: Iterations) -> Criterion:
    good = ~iterations.failed
    means = {}
    for action in rule.max_s:
        count = (
            float(iterations.action_count[action][good].sum()) if _has(action, iterations) else 0
        )
        # An action that was never made takes 0 s on average and holds: Rally's trap.
        means[action] = float(iterations.action_s[action][good].sum()) / count if count else 0.0
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


def _outlier_rows(rule: Outliers, iterations: Iterations) -> list[int]:
    """Give the rows that exceed mean + sigmas * deviation of the successful rows before them.

    Knuth, The Art of Computer Programming, vol. 2, p. 232: one pass, as Rally computes it.
    """
    found = []
    total, mean, squares, threshold = 0.0, 0.0, 0.0, 0.0
    for count, row in enumerate(np.flatnonzero(~iterations.failed).tolist(), 1):
        value = float(iterations.duration_s[row])
        if count >= rule.min_iterations and threshold and value > threshold:
            found.append(row)
        total += value
        before, mean = mean, total / count
        squares += (value - before) * (value - mean)
        if count >= 2:
            threshold = mean + rule.sigmas * float(np.sqrt(squares / (count - 1)))
    return found


def _outliers(rule: Outliers, iterations: Iterations) -> Criterion:
    count = len(_outlier_rows(rule, iterations))
    success = count <= rule.max_count
    detail = f"Maximum number of outliers {count} <= {rule.max_count} - {_status(success)}"
    return Criterion("outliers", success, detail)


def _degradation(rule: PerformanceDegradation, iterations: Iterations) -> Criterion:
    good = np.maximum(iterations.good_s, TICK_S)
    found = float((good.max() / good.min() - 1) * 100.0) if len(good) else 0.0
    success = found <= rule.max_percent
    shown = f"{found:.6f}".rstrip("0")
    shown += "0" if shown.endswith(".") else ""
    detail = f"Current degradation: {shown}% - {_status(success)}"
    return Criterion("performance_degradation", success, detail)


def _own(rule: MaxPercentiles | MinThroughput | MinIterations, iterations: Iterations) -> Criterion:
    good = iterations.good_s
    match rule:
        case MinIterations():
            success = len(good) >= rule.count
            words = f"Successful iterations {len(good)} >= {rule.count}"
            return Criterion("min_iterations", success, f"{words} - {_status(success)}")
        case MinThroughput():
            rate = len(good) / iterations.load_s if iterations.load_s > 0 else 0.0
            success = rate >= rule.min_rps
            words = f"Successful iterations per second {rate:.2f} >= {rule.min_rps:.2f}"
            return Criterion("min_throughput", success, f"{words} - {_status(success)}")
        case MaxPercentiles():
            return _percentiles(rule, good)


def _percentiles(rule: MaxPercentiles, good: Floats) -> Criterion:
    if not len(good):
        return Criterion("max_percentiles", False, "No successful iteration - Failed")
    found = {wanted: float(np.percentile(good, wanted)) for wanted in rule.max_s}
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
            rows = _outlier_rows(rule, iterations)
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
