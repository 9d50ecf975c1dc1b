"""Compares one metric of two targets, measured in pairs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from math import exp, isclose, isfinite, log, sqrt
from statistics import fmean

from loadstone.compare import trimmed
from loadstone.compare.sequential import FEWEST_PAIRS, interval, pairs_needed
from loadstone.compare.starts import scatter

ALPHA = 0.05
LEADING_WEIGHT = 0.8  # share of the error rate for the metrics that answer which side is faster
MOST_NEEDED = 10_000  # pairs: nobody measures more


class ComparisonAnswer(StrEnum):
    """Whether B is better than A in one metric."""

    FASTER = "faster"
    SLOWER = "slower"
    SAME = "same"
    UNKNOWN = "unknown"

    @property
    def is_difference(self) -> bool:
        """Whether the sides were shown to differ."""
        return self in (ComparisonAnswer.FASTER, ComparisonAnswer.SLOWER)


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric to compare."""

    name: str
    unit: str
    is_higher_better: bool
    is_leading: bool = False  # answers which service is faster
    is_plural: bool = False  # its name


@dataclass(frozen=True, slots=True)
class Criteria:
    """Rules that decide when a comparison has its answer."""

    most_pairs: int = 40  # of trials
    fewest_pairs: int = FEWEST_PAIRS  # minimum; more narrow the interval of a large difference
    alpha: float = ALPHA  # chance of any false "faster" or "slower", over all metrics together
    same_within: float = 0.03  # ratios within this of 1 count as equal


@dataclass(frozen=True, slots=True)
class MetricComparison:
    """B as a multiple of A in one metric, with its interval over all pairs so far."""

    metric: Metric
    a: float  # typical values of both sides; b / a is the ratio
    b: float
    ratio: float
    low: float
    high: float
    pairs: int
    answer: ComparisonAnswer
    deviation: float  # of the pairs' log ratios (`starts.scatter`)
    of_all: float | None = None  # ratio by all pairs, with those that the trimmed mean leaves out
    alpha: float = ALPHA  # the share of the error rate with which it was tested

    @property
    def is_widened(self) -> bool:
        """Whether only the pairs that the ratio leaves out carry an end of the interval."""
        is_end = self.of_all in (self.low, self.high)
        # Of pairs that are all alike, the interval is the ratio.
        return is_end and not isclose(self.low, self.high)

    def pairs_to_find(self, share: float) -> int | None:
        """Return the pairs of trials that find a difference of `share` (0.02 is 2 %), if known."""
        return self._pairs_for(log(1 + share))

    def pairs_to_decide(self, most_slower: float) -> int | None:
        """Return the pairs that tell this ratio from B being slower by a share.

        None if that is not known, or takes no more pairs than there were or more than MOST_NEEDED.
        """
        slower = -log(self.ratio) if self.metric.is_higher_better else log(self.ratio)
        distance = abs(slower - log(1 + most_slower))
        # Pairs grow with the square; this many need no exact number.
        if self.deviation > distance * sqrt(MOST_NEEDED):
            return None
        needed = self._pairs_for(distance)
        return needed if needed and self.pairs < needed <= MOST_NEEDED else None

    def _pairs_for(self, difference: float) -> int | None:
        """Return the pairs that find a difference of the logarithms."""
        is_known = self.pairs >= FEWEST_PAIRS and isfinite(self.deviation)
        if not is_known or difference <= 0:
            return None
        return pairs_needed(self.deviation, difference, self.alpha)


Pair = tuple[float, float]  # of A and of B, greater than 0


def compare(
    pairs: Mapping[Metric, Sequence[Pair]],
    criteria: Criteria,
    starts: Mapping[Metric, Sequence[int]] | None = None,
) -> tuple[MetricComparison, ...]:
    """Compare all metrics after the pairs so far.

    `starts` has the number of the start of each pair, where the services were started anew.
    """
    of_pairs = starts or {}
    rows = [
        _summary(metric, of_metric, of_pairs.get(metric, ())) for metric, of_metric in pairs.items()
    ]
    return decided(rows, criteria)


def decided(rows: Sequence[MetricComparison], criteria: Criteria) -> tuple[MetricComparison, ...]:
    """Return the rows with answers that all hold together.

    Holm's method with weights (Scand. J. Statist. 6, 1979, section 4) keeps the chance of a false
    answer in any of the rows at `criteria.alpha`; with sequential tests: Ye et al., Statistics in
    Medicine 32, 2013. The leading rows have most of the weight, so that the others cost them little
    time. Intervals are those of the level at which a row was last tested.
    """
    found = list(rows)
    open_weights = dict(enumerate(_weights(rows)))
    while open_weights:
        total = sum(open_weights.values())
        for number, weight in open_weights.items():
            found[number] = _tested(found[number], criteria, criteria.alpha * weight / total)
        different = [number for number in open_weights if found[number].answer.is_difference]
        for number in different:
            del open_weights[number]
        if not different:
            break
    return tuple(found)


def leading(rows: Sequence[MetricComparison]) -> list[MetricComparison]:
    """Return the metrics that can answer which service is faster, the most important one first."""
    return [row for row in rows if row.metric.is_leading] or list(rows[:1])


def _weights(rows: Sequence[MetricComparison]) -> list[float]:
    """Return the share of the error rate of each row."""
    first = {row.metric for row in leading(rows)}
    others = len(rows) - len(first)
    share = LEADING_WEIGHT if others else 1.0
    return [
        share / len(first) if row.metric in first else (1 - LEADING_WEIGHT) / others for row in rows
    ]


def answer_of(metric: Metric, low: float, high: float, same_within: float) -> ComparisonAnswer:
    """Return the answer from the interval of the ratio B / A.

    Equivalence is two one-sided tests (Schuirmann, J. Pharmacokin. Biopharm. 15, 1987): the whole
    interval lies within the margin.
    """
    if 1 / (1 + same_within) <= low and high <= 1 + same_within:
        return ComparisonAnswer.SAME
    if low > 1:
        return ComparisonAnswer.FASTER if metric.is_higher_better else ComparisonAnswer.SLOWER
    if high < 1:
        return ComparisonAnswer.SLOWER if metric.is_higher_better else ComparisonAnswer.FASTER
    return ComparisonAnswer.UNKNOWN


def _summary(metric: Metric, pairs: Sequence[Pair], starts: Sequence[int]) -> MetricComparison:
    """Return the mean and the deviation of the pairs, without an answer."""
    ratios = [log(b / a) for a, b in pairs]
    ratio = trimmed.mean(ratios) if pairs else 0.0
    # The ratio leaves outliers out, so a and b are placed around the middle of both sides.
    middle = fmean(log(a * b) / 2 for a, b in pairs) if pairs else float("nan")
    return MetricComparison(
        metric=metric,
        a=exp(middle - ratio / 2),
        b=exp(middle + ratio / 2),
        ratio=exp(ratio),
        low=0.0,
        high=float("inf"),
        pairs=len(pairs),
        answer=ComparisonAnswer.UNKNOWN,
        deviation=scatter(ratios, starts),
        of_all=exp(fmean(ratios)) if pairs else None,
    )


def _tested(row: MetricComparison, criteria: Criteria, alpha: float) -> MetricComparison:
    """Return a row with its interval and its answer at an error rate."""
    mean = log(row.ratio)
    found = interval(mean, row.deviation, row.pairs, criteria.most_pairs, alpha)
    low, high = _ratio(found.low), _ratio(found.high)
    # What is rare but large on one side is not noise. It may not be left out of the answer.
    low, high = min(low, row.of_all or low), max(high, row.of_all or high)
    answer = answer_of(row.metric, low, high, criteria.same_within)
    return replace(row, low=low, high=high, answer=answer, alpha=alpha)


def _ratio(logarithm: float) -> float:
    return exp(logarithm) if logarithm < 700 else float("inf")
