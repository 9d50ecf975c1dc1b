"""Finds the first of several versions that is slower, by comparing few of them.

The versions are in order: the first is good, the last is slower. Each step compares one of them
with the first, and asks on which side of half the whole slowdown it lies. So a step is far from
its limit when one version brought the whole slowdown.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import sqrt

from loadstone.compare.answer import ComparisonAnswer, MetricComparison, leading
from loadstone.compare.pairs import GuardOutcome, verdict

NOT_MEASURED = "no complete pair was measured"


class StepAnswer(StrEnum):
    """What a comparison with the first version says of a version."""

    GOOD = "nearer to the first"
    BAD = "nearer to the last"
    UNDECIDED = "undecided"


@dataclass(frozen=True, slots=True)
class JudgedVersion:
    """A version that was compared with the first, and the answer."""

    index: int
    answer: StepAnswer
    row: MetricComparison | None  # None: it could not be measured
    failure: str = ""


@dataclass(frozen=True, slots=True)
class Bisected:
    """Where the slowdown came in: after `last_good`, at the latest with `first_bad`."""

    last_good: int
    first_bad: int
    steps: tuple[JudgedVersion, ...]

    @property
    def is_found(self) -> bool:
        """Whether one version brought it, and not one of several."""
        return self.first_bad == self.last_good + 1


def slowest(rows: Sequence[MetricComparison]) -> MetricComparison | None:
    """Return the metric in which the last version is slower by most; None if it is in none."""
    slower = [row for row in leading(rows) if row.answer is ComparisonAnswer.SLOWER]
    return max(slower, key=slowdown, default=None)


def slowdown(row: MetricComparison) -> float:
    """Return how many times slower B is."""
    return 1 / row.ratio if row.metric.is_higher_better else row.ratio


def limit(whole: MetricComparison) -> float:
    """Return the share of slowdown that tells a good version from a bad one: half of the whole."""
    return sqrt(slowdown(whole)) - 1


def is_confirmed(rows: Sequence[MetricComparison], whole: MetricComparison) -> bool:
    """Return whether the comparison of two neighbours shows that one brought the slowdown.

    It is slower in the same metric, by half of the whole or more.
    """
    return any(
        row.metric == whole.metric
        and row.answer is ComparisonAnswer.SLOWER
        and slowdown(row) - 1 >= limit(whole)
        for row in rows
    )


def step_of(index: int, rows: Sequence[MetricComparison], whole: MetricComparison) -> JudgedVersion:
    """Judge a version by its comparison with the first."""
    row = next((one for one in rows if one.metric == whole.metric), None)
    if row is None:
        return JudgedVersion(index, StepAnswer.UNDECIDED, None, NOT_MEASURED)
    answer = {
        GuardOutcome.PASSED: StepAnswer.GOOD,
        GuardOutcome.FAILED: StepAnswer.BAD,
        GuardOutcome.UNDECIDED: StepAnswer.UNDECIDED,
    }[verdict(row, limit(whole))]
    return JudgedVersion(index, answer, row)


def bisect(count: int, compare: Callable[[int], JudgedVersion]) -> Bisected:
    """Halve the versions between the first, which is good, and the last, which is slower.

    A version that cannot be judged is left out, and its neighbours are tried.
    """
    good, bad, steps = 0, count - 1, []
    undecided: set[int] = set()
    while candidates := [one for one in range(good + 1, bad) if one not in undecided]:
        middle = (good + bad) / 2
        step = compare(min(candidates, key=lambda one: abs(one - middle)))
        steps.append(step)
        if step.answer is StepAnswer.UNDECIDED:
            undecided.add(step.index)
        elif step.answer is StepAnswer.GOOD:
            good = step.index
        else:
            bad = step.index
    return Bisected(good, bad, tuple(steps))
