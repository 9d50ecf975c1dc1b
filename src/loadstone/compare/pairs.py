"""Measures two targets in pairs, in random order, until the answer is known."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from random import Random

from loadstone.analysis.model import Trial
from loadstone.compare.answer import (
    ComparisonAnswer,
    Criteria,
    Metric,
    MetricComparison,
    Pair,
    compare,
    leading,
)
from loadstone.compare.metrics import LEADING, THROUGHPUT, values
from loadstone.compare.turns import Duet, NotFull, full_rates, not_full, statements
from loadstone.errors import MeasurementInvalid

MOST_INVALID = 3  # trials in a row in which the load generator was the limit
# Differences that two starts of one deployment may make (docs/compare.md): by where memory lies,
# and in throughput by the cores on which the kernel runs workers and caches, unless they are bound.
SMALL = 0.06
SMALL_THROUGHPUT = 0.2
MOST_FAILED = 0.01  # share of failed iterations; above, a trial says little about the speed


class GuardOutcome(StrEnum):
    """Result of --fail-if-slower."""

    PASSED = "not slower"
    FAILED = "slower"
    UNDECIDED = "undecided"


@dataclass(frozen=True, slots=True)
class PairComparison:
    """The metrics of two targets after the pairs so far, the primary one first."""

    metrics: tuple[MetricComparison, ...]
    pairs: int
    criteria: Criteria
    statements: tuple[str, ...] = ()  # on the way in which it was measured
    not_full: NotFull | None = None  # the sides whose throughput may be higher


def deciding(rows: Sequence[MetricComparison]) -> MetricComparison:
    """Return the metric that decides: the first that has an answer, else the first."""
    found = leading(rows)
    return next((row for row in found if row.answer is not ComparisonAnswer.UNKNOWN), found[0])


def in_pairs(
    measures: Sequence[Callable[[], Trial]],
    names: Sequence[str],
    criteria: Criteria,
    random: Random,
    *,
    is_paced: bool,
    remedy: str = "",
) -> Iterator[PairComparison]:
    """Measure pair after pair and yield the comparison after each; the caller decides to stop.

    Raises MeasurementInvalid if the load generator was the limit MOST_INVALID times in a row, or if
    too many iterations fail for a trial to be usable.
    """
    found: tuple[list[Trial], list[Trial]] = ([], [])
    for _ in range(criteria.most_pairs):
        order = [0, 1]
        random.shuffle(order)
        for side in order:
            [trial] = usable(partial(_alone, measures[side]), names[side : side + 1], remedy)
            found[side].append(trial)
        yield of_trials(*found, criteria, is_paced=is_paced)


def _alone(measure: Callable[[], Trial]) -> tuple[Trial]:
    return (measure(),)


def of_trials(
    a: Sequence[Trial], b: Sequence[Trial], criteria: Criteria, *, is_paced: bool
) -> PairComparison:
    """Compare paired trials: the n-th of A with the n-th of B."""
    pairs = min(len(a), len(b))
    ours = [values(trial, is_paced=is_paced) for trial in a[:pairs]]
    theirs = [values(trial, is_paced=is_paced) for trial in b[:pairs]]
    measured = [metric for metric in ours[0] if all(metric in one for one in (*ours, *theirs))]
    by_metric: dict[Metric, Sequence[Pair]] = {
        metric: [(x[metric], y[metric]) for x, y in zip(ours, theirs, strict=True)]
        for metric in measured
    }
    found = compare(by_metric, criteria)
    return PairComparison(found, pairs, criteria, (*_of_one_start(found), *_pauses(found)))


def of_turns(duets: Sequence[Duet], criteria: Criteria, only: str | None = None) -> PairComparison:
    """Compare two targets whose loads took turns; `only` names the one metric that decides."""
    by_metric: dict[Metric, list[Pair]] = {}
    starts: dict[Metric, list[int]] = {}
    throughput = full_rates(duets)
    for one in duets:
        for metric, both in one.values.items():
            full = next(throughput) if metric == THROUGHPUT else both
            by_metric.setdefault(metric, []).append(full)
            if one.start is not None:
                starts.setdefault(metric, []).append(one.start)
    first = [metric for metric in LEADING if metric in by_metric]
    if only is not None:
        for metric in [one for one in first if one.name != only]:
            first.remove(metric)
            del by_metric[metric]
    ordered = {metric: by_metric[metric] for metric in (*first, *by_metric)}
    lengths = [one.length for one in duets]
    rounds = max((lengths.count(length) for length in set(lengths)), default=0)
    found = compare(ordered, criteria, starts)
    said = [*statements(duets), *([] if starts else _of_one_start(found)), *_pauses(found)]
    return PairComparison(found, rounds, criteria, tuple(said), not_full(duets))


def _of_one_start(rows: Sequence[MetricComparison]) -> Iterator[str]:
    """Say that a small difference may be one between two starts, which no interval holds."""
    for row in leading(rows):
        least = SMALL_THROUGHPUT if row.metric == THROUGHPUT else SMALL
        is_small = row.high > 1 / (1 + least) and row.low < 1 + least
        if is_small and row.answer.is_difference:
            yield (
                "Both services went on as they were. Two starts of one deployment can differ by up "
                f"to {100 * least:.0f} % in {row.metric.name}, which the interval does not include."
            )


def _pauses(rows: Sequence[MetricComparison]) -> Iterator[str]:
    """Say that one side is slower in a few pairs, which the ratio leaves out."""
    for row in leading(rows):
        if row.is_widened:
            yield (
                f"Over all pairs, {row.metric.name} B / A is {row.of_all:.3f}: one side pauses "
                "more often or for longer. The ratio leaves such pairs out, and the interval "
                "contains both."
            )


def guard(
    rows: Sequence[MetricComparison], most_slower: float
) -> tuple[GuardOutcome, MetricComparison]:
    """Return whether B is slower than A by more than a share, and the metric that says so.

    One metric that is too slow fails, and one that is undecided leaves it undecided.
    """
    outcomes = [(verdict(row, most_slower), row) for row in leading(rows)]
    order = (GuardOutcome.FAILED, GuardOutcome.UNDECIDED, GuardOutcome.PASSED)
    return min(outcomes, key=lambda one: order.index(one[0]))


def verdict(found: MetricComparison, most_slower: float) -> GuardOutcome:
    """Return whether B is not slower than A by more than a share (0.05 is 5 %)."""
    if found.metric.is_higher_better:
        least, low, high = 1 / (1 + most_slower), found.low, found.high
    else:
        least, low, high = 1 / (1 + most_slower), 1 / found.high, 1 / max(found.low, 1e-300)
    if low >= least:
        return GuardOutcome.PASSED
    return GuardOutcome.FAILED if high < least else GuardOutcome.UNDECIDED


def is_answered(found: PairComparison, most_slower: float | None) -> bool:
    """Return whether every metric that decides has its answer after the minimum number of pairs."""
    # Without metrics, no pair of turns was complete: the service became slow.
    if found.pairs < found.criteria.fewest_pairs or not found.metrics:
        return False
    if most_slower is not None and guard(found.metrics, most_slower)[0] is GuardOutcome.FAILED:
        return True
    return all(is_row_answered(row, most_slower) for row in leading(found.metrics))


def is_row_answered(row: MetricComparison, most_slower: float | None) -> bool:
    """Return whether one metric has its answer, or is known to be slow or not."""
    if most_slower is not None:
        return verdict(row, most_slower) is not GuardOutcome.UNDECIDED
    return row.answer is not ComparisonAnswer.UNKNOWN


def is_usable(trial: Trial) -> bool:
    """Return whether a trial measures the service's speed: valid, and with few failures."""
    return trial.is_valid and not _has_failed(trial)


def _has_failed(trial: Trial) -> bool:
    return trial.stats.failed > MOST_FAILED * trial.stats.total.count or not trial.stats.ok


def _failure(trial: Trial, remedy: str) -> str:
    if not trial.stats.total.count:
        return f"no iteration ended within {trial.planned_s:g} s{remedy}"
    kinds = ", ".join(trial.stats.error_texts[:3])
    return (
        f"{trial.stats.failed} of {trial.stats.total.count} iterations failed ({kinds}); a "
        "comparison of speed needs a load that both answer"
    )


def usable(
    measure: Callable[[], Sequence[Trial]],
    names: Sequence[str],
    remedy: str,
    *,
    tolerates_failures: bool = False,
) -> Sequence[Trial]:
    """Measure until the trials, one for each name, are usable.

    `remedy` is what the command advises for trials that are too short. `tolerates_failures`: of
    these trials nothing is compared, so some iterations may fail.
    Raises MeasurementInvalid as `in_pairs` does.
    """
    for _ in range(MOST_INVALID):
        trials = measure()
        for trial, name in zip(trials, names, strict=True):
            if not trial.stats.ok or (_has_failed(trial) and not tolerates_failures):
                raise MeasurementInvalid(f"{name}: {_failure(trial, remedy)}")
        if all(trial.is_valid for trial in trials):
            return trials
    [(trial, name), *_] = [
        (one, name) for one, name in zip(trials, names, strict=True) if not one.is_valid
    ]
    limits = "; ".join(trial.health.limits[:1]) if trial.health else ""
    raise MeasurementInvalid(
        f"{name}: the load generator was the limit {MOST_INVALID} times in a row ({limits})"
    )
