"""Judges criteria: SLA rules, with Rally's exact semantics, and objectives.

Rally evaluates after each iteration, in the order in which they end. So do `judge_criteria` (after
the last) and `first_failure` (where --abort-on-sla-failure acts). Rally's pitfalls are kept: a mean
over no successful iteration is 0 and passes. Loadstone's own rules and objectives fail without
successful iterations.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import assert_never

import numpy as np

from loadstone.analysis import decimals
from loadstone.analysis.arrays import Bools, Floats
from loadstone.analysis.criteria import (
    Criterion,
    FailureRate,
    MaxAvgDuration,
    MaxAvgDurationPerAtomic,
    MaxPercentiles,
    MaxSecondsPerIteration,
    MinIterations,
    MinThroughput,
    Objective,
    Outliers,
    PerformanceDegradation,
    SlaRule,
)
from loadstone.analysis.sums import Sums, WorkloadIterations, outlier_rows

TICK_S = 1e-9  # the shortest duration; a ratio to 0 is meaningless (Rally raises an error)


@dataclass(frozen=True, slots=True)
class Check:
    """Result of a criterion: one row of Rally's SLA results."""

    criterion: str
    success: bool
    detail: str


def judge_criteria(criteria: Iterable[Criterion], sums: Sums) -> tuple[Check, ...]:
    """Judge an ended trial by each criterion."""
    return tuple(_judged(one, sums) for one in criteria)


def first_failure(rules: Iterable[SlaRule], iterations: WorkloadIterations) -> int | None:
    """Return the index of the iteration after which a rule first fails.

    Rules that need the end of the load (percentiles, throughput, minimum) never abort.
    """
    failures = [row for rule in rules if (row := _first(rule, iterations)) is not None]
    return min(failures, default=None)


def _judged(criterion: Criterion, sums: Sums) -> Check:
    if isinstance(criterion, Objective):
        return _objective(criterion, sums)
    success, detail = _found(criterion, sums)
    return Check(criterion.name, success, f"{detail} {'Passed' if success else 'Failed'}")


def _objective(objective: Objective, sums: Sums) -> Check:
    found_s = math.nan
    if sums.good_range_s is not None:
        match objective.figure:
            case "mean":
                found_s = sums.good_mean_s
            case "max":
                found_s = sums.good_range_s[1]
            case percentile:
                found_s = sums.percentile_s(float(percentile[1:]))
    if math.isnan(found_s):
        return Check(str(objective), False, f"no iteration succeeded, wanted {objective}")
    found_ms = 1000 * found_s
    # Two digits, or whole milliseconds if these are more.
    least = max(0, 1 - math.floor(math.log10(found_ms))) if found_ms > 0 else 0
    count = decimals.needed(found_ms, 1000 * objective.limit_s, least)
    detail = f"{objective.figure} was {found_ms:.{count}f} ms, wanted {objective}"
    return Check(str(objective), found_s < objective.limit_s, detail)


def _found(rule: SlaRule, sums: Sums) -> tuple[bool, str]:  # noqa: PLR0911 (one each)
    """Return whether a rule is fulfilled, and the text before "Passed" or "Failed"."""
    match rule:
        case FailureRate():
            return _failure_rate(rule, sums)
        case MaxSecondsPerIteration():
            return _at_most("Maximum seconds per iteration", sums.longest_s, rule.max_s)
        case MaxAvgDuration():
            return _at_most("Average duration of one iteration", sums.good_mean_s, rule.max_s)
        case MaxAvgDurationPerAtomic():
            return _per_atomic(rule, sums)
        case Outliers():
            count = sums.outliers(rule)
            text = f"Maximum number of outliers {count} <= {rule.max_count} -"
            return count <= rule.max_count, text
        case PerformanceDegradation():
            return _degradation(rule, sums)
        case MaxPercentiles():
            return _percentiles(rule, sums)
        case MinThroughput():
            rate = sums.good / sums.load_s if sums.load_s > 0 else 0.0
            digits = f".{decimals.needed(rate, rule.min_rps, 2)}f"
            text = f"Successful iterations per second {rate:{digits}} >= {rule.min_rps:{digits}} -"
            return rate >= rule.min_rps, text
        case MinIterations():
            text = f"Successful iterations {sums.good} >= {rule.count} -"
            return sums.good >= rule.count, text
        case _:
            assert_never(rule)


def _at_most(message: str, found_s: float, max_s: float) -> tuple[bool, str]:
    return found_s <= max_s, f"{message} {found_s:.2f}s <= {max_s:.2f}s -"


def _failure_rate(rule: FailureRate, sums: Sums) -> tuple[bool, str]:
    rate = sums.failed * 100.0 / sums.count if sums.count else 0.0
    # Rally judges after each iteration, so without iterations there is no failure.
    success = not sums.count or rule.min_percent <= rate <= rule.max_percent
    limits = f"{rule.min_percent:.2f}% <= {rate:.2f}% <= {rule.max_percent:.2f}%"
    return success, f"Failure rate criteria {limits} -"


def _per_atomic(rule: MaxAvgDurationPerAtomic, sums: Sums) -> tuple[bool, str]:
    # An action that never ran has a mean of 0 s and passes: Rally's pitfall.
    means = {action: sums.action_mean_s.get(action, 0.0) for action in rule.max_s}
    lines = [
        f"Action: '{action}'. {means[action]:.2f}s <= {most:.2f}s"
        for action, most in rule.max_s.items()
    ]
    head = "Average duration of one iteration for atomic actions:"
    success = all(means[action] <= most for action, most in rule.max_s.items())
    return success, "\n".join([head, *lines, "Status:"])


def _degradation(rule: PerformanceDegradation, sums: Sums) -> tuple[bool, str]:
    found = 0.0
    if sums.good_range_s is not None:
        shortest, longest = (max(time_s, TICK_S) for time_s in sums.good_range_s)
        found = (longest / shortest - 1) * 100.0
    shown = f"{found:.6f}".rstrip("0")
    shown += "0" if shown.endswith(".") else ""
    return found <= rule.max_percent, f"Current degradation: {shown}% -"


def _percentiles(rule: MaxPercentiles, sums: Sums) -> tuple[bool, str]:
    if not sums.good:
        return False, "No successful iteration -"
    found = {wanted: sums.percentile_s(wanted) for wanted in rule.max_s}
    parts = []
    for wanted, most in rule.max_s.items():
        digits = f".{decimals.needed(found[wanted], most, 3)}f"
        parts.append(f"p{wanted:g} {found[wanted]:{digits}}s <= {most:{digits}}s")
    success = all(found[wanted] <= most for wanted, most in rule.max_s.items())
    return success, f"{', '.join(parts)} -"


def _first(rule: SlaRule, iterations: WorkloadIterations) -> int | None:  # noqa: PLR0911 (one each)
    """Return the first row after which the rule fails."""
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
    """Return the mean over the successful rows so far; 0 before the first one."""
    sums = np.where(good, values, 0.0).cumsum()
    so_far = np.where(good, counts, 0.0).cumsum()
    means: Floats = np.divide(sums, so_far, out=np.zeros_like(sums), where=so_far > 0)
    return means


def _first_atomic(rule: MaxAvgDurationPerAtomic, iterations: WorkloadIterations) -> int | None:
    good = ~iterations.failed
    rows = [
        _first_row(
            _running(iterations.action_s[action], good, iterations.action_count[action]) > most
        )
        for action, most in rule.max_s.items()
        if action in iterations.action_count
    ]
    return min((row for row in rows if row is not None), default=None)


def _first_degraded(rule: PerformanceDegradation, iterations: WorkloadIterations) -> int | None:
    good = ~iterations.failed
    durations = np.maximum(iterations.duration_s, TICK_S)
    longest = np.maximum.accumulate(np.where(good, durations, -np.inf))
    shortest = np.minimum.accumulate(np.where(good, durations, np.inf))
    # Before the first successful row this is -inf / inf, which no value exceeds.
    with np.errstate(invalid="ignore"):
        return _first_row((longest / shortest - 1) * 100.0 > rule.max_percent)
