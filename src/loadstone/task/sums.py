"""What SLA rules judge: the iterations of a workload, and what they come to."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from loadstone.task.model import Outliers

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Sums:
    """What of a workload its rules are judged by once it has ended."""

    count: int  # iterations that ended
    failed: int
    longest_s: float  # failed ones included
    good_mean_s: float  # 0 without one
    good_range_s: tuple[float, float] | None  # the shortest and the longest; None without one
    action_mean_s: Mapping[str, float]
    load_s: float
    percentile_s: Callable[[float], float]  # of the good ones, 0 to 100
    outliers: Callable[[Outliers], int]

    @property
    def good(self) -> int:
        """Iterations that ended well."""
        return self.count - self.failed


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

    @property
    def sums(self) -> Sums:
        """Give what the rules are judged by."""
        return Sums(
            count=len(self.failed),
            failed=int(self.failed.sum()),
            longest_s=float(self.duration_s.max(initial=0.0)),
            good_mean_s=_mean(self.good_s),
            good_range_s=(float(self.good_s.min()), float(self.good_s.max()))
            if len(self.good_s)
            else None,
            action_mean_s={name: self._action_mean_s(name) for name in self.action_count},
            load_s=self.load_s,
            percentile_s=lambda wanted: float(np.percentile(self.good_s, wanted)),
            outliers=lambda rule: len(outlier_rows(rule, self)),
        )

    def _action_mean_s(self, name: str) -> float:
        good = ~self.failed
        count = float(self.action_count[name][good].sum())
        return float(self.action_s[name][good].sum()) / count if count else 0.0


def _mean(values: Floats) -> float:
    return float(values.mean()) if len(values) else 0.0


@dataclass(slots=True)
class OutlierWatch:
    """Says of each successful iteration whether it stands out of those before it.

    Knuth, The Art of Computer Programming, vol. 2, p. 232: one pass, as Rally computes it.
    """

    rule: Outliers
    found: int = 0
    _count: int = 0
    _total: float = 0.0
    _mean: float = 0.0
    _squares: float = 0.0
    _threshold: float = 0.0

    def sees(self, value: float) -> bool:
        """Take in one more duration; True where it exceeds mean + sigmas * deviation."""
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


def outlier_rows(rule: Outliers, iterations: Iterations) -> list[int]:
    """Give the rows that stand out of the successful rows before them."""
    good = np.flatnonzero(~iterations.failed)
    seen = OutlierWatch(rule)
    return [
        row
        for row, value in zip(good.tolist(), iterations.good_s.tolist(), strict=True)
        if seen.sees(value)
    ]
