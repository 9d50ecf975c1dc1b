"""Input of SLA rules: the iterations of a workload and their totals."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from loadstone.analysis.arrays import Bools, Floats
from loadstone.analysis.criteria import Outliers


@dataclass(frozen=True, slots=True)
class Sums:
    """Totals of an ended workload."""

    count: int  # iterations that ended
    failed: int
    longest_s: float  # including failed ones
    good_mean_s: float  # 0 without one
    good_range_s: tuple[float, float] | None  # shortest and longest; None without one
    action_mean_s: Mapping[str, float]
    load_s: float
    percentile_s: Callable[[float], float]  # of the successful ones, 0 to 100
    outliers: Callable[[Outliers], int]

    @property
    def good(self) -> int:
        """Number of successful iterations."""
        return self.count - self.failed

    def slowed(self, factor: float) -> "Sums":
        """Return the same if each iteration had taken so many times as long."""
        longest = self.good_range_s
        return replace(
            self,
            longest_s=factor * self.longest_s,
            good_mean_s=factor * self.good_mean_s,
            good_range_s=longest and (factor * longest[0], factor * longest[1]),
            action_mean_s={name: factor * mean for name, mean in self.action_mean_s.items()},
            percentile_s=lambda percent: factor * self.percentile_s(percent),
        )


@dataclass(frozen=True, slots=True)
class WorkloadIterations:
    """The iterations of one workload in the order in which they ended, one row each."""

    duration_s: Floats
    failed: Bools
    # Action -> total duration and number of calls per iteration.
    action_s: Mapping[str, Floats] = field(default_factory=dict)
    action_count: Mapping[str, Floats] = field(default_factory=dict)

    @property
    def good_s(self) -> Floats:
        """Durations of the successful iterations."""
        return self.duration_s[~self.failed]


@dataclass(slots=True)
class OutlierWatch:
    """Finds outliers among successful iterations, each compared with those before it.

    Knuth, The Art of Computer Programming, vol. 2, p. 232: one pass, as in Rally.
    """

    rule: Outliers
    found: int = 0
    _count: int = 0
    _total: float = 0.0
    _mean: float = 0.0
    _squares: float = 0.0
    _threshold: float = 0.0

    def sees(self, value: float) -> bool:
        """Add a duration; return whether it exceeds mean + sigmas * deviation."""
        self._count += 1
        stands_out = self._count >= self.rule.min_iterations and 0 < self._threshold < value
        self.found += stands_out
        self._total += value
        before, self._mean = self._mean, self._total / self._count
        self._squares += (value - before) * (value - self._mean)
        if self._count >= 2:
            deviation = math.sqrt(self._squares / (self._count - 1))
            self._threshold = self._mean + self.rule.sigmas * deviation
        return stands_out


def outlier_rows(rule: Outliers, iterations: WorkloadIterations) -> list[int]:
    """Return the rows that are outliers compared with the successful rows before them."""
    good = np.flatnonzero(~iterations.failed)
    seen = OutlierWatch(rule)
    return [
        row
        for row, value in zip(good.tolist(), iterations.good_s.tolist(), strict=True)
        if seen.sees(value)
    ]
