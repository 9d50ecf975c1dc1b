"""Change points of a series of measurements: where its level changed, and by how much.

The split of the series into two or three segments with the least squared deviation of the
logarithms is found by trying all of them. It counts as a change if few permutations of the same
values can be split as well: a permutation test of the largest F over all splits, as in e-divisive
(Matteson and James, J. Am. Stat. Assoc. 109, 2014), which MongoDB and Apache Otava use on benchmark
histories. Splits into three segments are included because a search for one split misses a level
that returns. Each segment is then searched in the same way.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from math import exp, log, sqrt

import numpy as np

from loadstone.analysis.arrays import Floats, Ints
from loadstone.analysis.interval import student_t

ALPHA = 0.05  # probability of any change point in a series without changes
# With fewer values, no split can be rarer than ALPHA among the permutations.
FEWEST_VALUES = 8
MOST_VALUES = 300  # the newest are searched; the time grows with the square of their number
PERMUTATIONS = 499
SHORTEST = 2  # values of a segment: a single value is an outlier, not a level
ROUNDING = 1e-12  # share of the squared deviation that is rounding error
SEED = 20261122


@dataclass(frozen=True, slots=True)
class ChangePoint:
    """A change of the level between two neighbouring values."""

    index: int  # of the first value of the new level
    ratio: float  # of the level after to the level before
    low: float  # 95 % interval of the ratio (Welch), assuming that `index` is right
    high: float


def change_points(values: Sequence[float]) -> tuple[ChangePoint, ...]:
    """Return the changes of a series of positive values, oldest first.

    Raises ValueError for values that are not positive.
    """
    if any(not value > 0 for value in values):
        raise ValueError("change points are those of positive values")
    skipped = max(0, len(values) - MOST_VALUES)
    logs = np.array([log(value) for value in values[skipped:]])
    random = np.random.default_rng(SEED)
    found = sorted(_splits(logs, 0, random))
    ends = [0, *found, len(logs)]
    stretches = [logs[start:end] for start, end in pairwise(ends)]
    return tuple(
        _change(skipped + index, before, after)
        for index, (before, after) in zip(found, pairwise(stretches), strict=True)
    )


def _splits(logs: Floats, offset: int, random: np.random.Generator) -> Iterator[int]:
    """Yield the positions at which a segment is split."""
    if len(logs) < FEWEST_VALUES or np.ptp(logs) == 0:
        return
    best, places = _best_split(logs)
    as_good = sum(_best_split(random.permutation(logs))[0] >= best for _ in range(PERMUTATIONS))
    if (1 + as_good) / (1 + PERMUTATIONS) > ALPHA:
        return
    yield from (offset + place for place in places)
    for start, end in pairwise((0, *places, len(logs))):
        yield from _splits(logs[start:end], offset + start, random)


def _best_split(logs: Floats) -> tuple[float, tuple[int, ...]]:
    """Return the largest F of a split into two or three segments, and its positions."""
    centred = logs - logs.mean()
    total = float(np.sum(centred**2))
    sums = np.concatenate(([0.0], np.cumsum(centred)))
    found: list[tuple[float, tuple[int, ...]]] = []
    for places in _every_split(len(logs)):
        # The squared deviation that a split explains: of each segment, sum ** 2 / length.
        explained = np.diff(sums[places], axis=0) ** 2 / np.diff(places, axis=0)
        gains = explained.sum(axis=0)
        best = int(gains.argmax())
        count = len(places) - 2
        left = total - float(gains[best])
        free = len(logs) - count - 1
        is_exact = left <= ROUNDING * total
        f = float("inf") if is_exact else float(gains[best]) / count / (left / free)
        found.append((f, tuple(places[1:-1, best].tolist())))
    return max(found, key=lambda one: one[0])  # the first of equal ones has fewer splits


@lru_cache(maxsize=8)
def _every_split(length: int) -> tuple[Ints, Ints]:
    """Return the bounds of segments for each split into two and into three, a column per split."""
    one = np.arange(SHORTEST, length - SHORTEST + 1)
    first, second = np.triu_indices(length - SHORTEST + 1, k=SHORTEST)
    is_long = first >= SHORTEST
    both = (first[is_long], second[is_long])
    return _bounded(length, one), _bounded(length, *both)


def _bounded(length: int, *places: Ints) -> Ints:
    start = np.zeros_like(places[0])
    return np.stack([start, *places, np.full_like(start, length)])


def _change(index: int, before: Floats, after: Floats) -> ChangePoint:
    difference = float(after.mean() - before.mean())
    if np.ptp(before) == 0 and np.ptp(after) == 0:
        ratio = exp(difference)
        return ChangePoint(index, ratio, ratio, ratio)
    half = _welch(before, after)
    low, high = exp(difference - half), exp(difference + half)
    return ChangePoint(index, exp(difference), low, high)


def _welch(before: Floats, after: Floats) -> float:
    """Return half the 95 % interval of the difference of two means, of any variances."""
    terms = [(float(one.var(ddof=1)) / len(one), len(one) - 1) for one in (before, after)]
    variance = sum(square for square, _ in terms)
    degrees = variance**2 / sum(square**2 / free for square, free in terms)
    return student_t(degrees) * sqrt(variance)
