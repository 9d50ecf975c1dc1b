"""Change points of a series of measurements: where its level changed, and by how much.

The split of the series into two or three segments with the least squared deviation of the
logarithms is found by dynamic programming (ruptures, KernelCPD). It counts as a change if few
permutations of the same values can be split as well: a permutation test of the largest F over all
splits, as in e-divisive (Matteson and James, J. Am. Stat. Assoc. 109, 2014), which MongoDB and
Apache Otava use on benchmark histories. Splits into three segments are included because a search
for one split misses a level that returns. Each segment is then searched in the same way.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import exp, log

import numpy as np
import numpy.typing as npt

ALPHA = 0.05  # probability of any change point in a series without changes
# With fewer values, no split can be rarer than ALPHA among the permutations.
FEWEST_VALUES = 8
MOST_VALUES = 300  # the newest are searched; the time grows with the square of their number
PERMUTATIONS = 499
SHORTEST = 2  # values of a segment: a single value is an outlier, not a level
MOST_SPLITS = 2  # at once
ROUNDING = 1e-12  # share of the squared deviation that is rounding error
SEED = 20261122

Column = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class ChangePoint:
    """A change of the level between two neighbouring values."""

    index: int  # of the first value of the new level
    ratio: float  # of the level after to the level before
    low: float  # 95 % interval of the ratio (Welch), assuming that `index` is right
    high: float
    p: float  # share of permutations that can be split as well


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
    ends = [0, *(index for index, _ in found), len(logs)]
    stretches = [logs[start:end] for start, end in pairwise(ends)]
    return tuple(
        _change(skipped + index, p, before, after)
        for (index, p), (before, after) in zip(found, pairwise(stretches), strict=True)
    )


def _splits(logs: Column, offset: int, random: np.random.Generator) -> Iterator[tuple[int, float]]:
    """Yield the positions at which a segment is split, with the p-value of the split."""
    if len(logs) < FEWEST_VALUES or np.ptp(logs) == 0:
        return
    best, places = _best_split(logs)
    as_good = sum(_best_split(random.permutation(logs))[0] >= best for _ in range(PERMUTATIONS))
    p = (1 + as_good) / (1 + PERMUTATIONS)
    if p > ALPHA:
        return
    for place in places:
        yield offset + place, p
    for start, end in pairwise((0, *places, len(logs))):
        yield from _splits(logs[start:end], offset + start, random)


def _best_split(logs: Column) -> tuple[float, tuple[int, ...]]:
    """Return the largest F of a split into two or three segments, and its positions."""
    from ruptures import KernelCPD  # type: ignore[import-untyped]  # it has none

    search = KernelCPD(kernel="linear", min_size=SHORTEST).fit(logs.reshape(-1, 1))
    total = float(np.sum((logs - logs.mean()) ** 2))
    found: list[tuple[float, tuple[int, ...]]] = []
    for count in range(1, MOST_SPLITS + 1):
        *places, _ = search.predict(n_bkps=count)
        parts = np.split(logs, places)
        left = sum(float(np.sum((part - part.mean()) ** 2)) for part in parts)
        free = len(logs) - count - 1
        is_exact = left <= ROUNDING * total
        f = float("inf") if is_exact else (total - left) / count / (left / free)
        found.append((f, tuple(places)))
    return max(found, key=lambda one: one[0])  # the first of equal ones has fewer splits


def _change(index: int, p: float, before: Column, after: Column) -> ChangePoint:
    from scipy.stats import ttest_ind

    difference = float(after.mean() - before.mean())
    if np.ptp(before) == 0 and np.ptp(after) == 0:
        ratio = exp(difference)
        return ChangePoint(index, ratio, ratio, ratio, p)
    interval = ttest_ind(after, before, equal_var=False).confidence_interval()
    return ChangePoint(index, exp(difference), exp(interval.low), exp(interval.high), p)
