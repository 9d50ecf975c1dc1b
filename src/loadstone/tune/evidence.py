"""What pairs of trials say of a gain: how many times better B is than A, as a logarithm."""

from collections.abc import Iterable
from dataclasses import dataclass
from math import exp, inf, isfinite, nan, sqrt

from loadstone.analysis import student
from loadstone.compare import trimmed

FEWEST = 2  # pairs for an interval


@dataclass(frozen=True, slots=True)
class GainInterval:
    """A gain and its interval, as ratios: 1.1 is 10 % better."""

    gain: float
    low: float
    high: float

    @property
    def shows_gain(self) -> bool:
        """Whether all of it is better."""
        return self.low > 1.0


@dataclass(frozen=True, slots=True)
class GainEvidence:
    """Trimmed mean and deviation of the pairs' log ratios; above 0 is better."""

    mean: float
    deviation: float  # NaN: not known
    pairs: int
    of_all: float | None = None  # mean of all pairs, with those that the trimmed mean leaves out

    def interval(self, alpha: float) -> GainInterval:
        """Return the interval of Student's t, which misses the true gain with chance `alpha`."""
        if self.pairs < FEWEST or not isfinite(self.deviation):
            return GainInterval(exp(self.mean), 0.0, inf)
        half = student.quantile(1 - alpha / 2, trimmed.degrees(self.pairs)) * self.error
        low, high = self.mean - half, self.mean + half
        if self.of_all is not None:
            low, high = min(low, self.of_all), max(high, self.of_all)
        return GainInterval(exp(self.mean), exp(low), _exp(high))

    @property
    def error(self) -> float:
        """Standard error of the mean."""
        return self.deviation / sqrt(self.pairs)

    @property
    def p_no_gain(self) -> float:
        """Return the chance of such a mean, or a higher one, if there is no gain (one-sided)."""
        if self.pairs < FEWEST or not isfinite(self.deviation):
            return 1.0
        mean = self.mean if self.of_all is None else min(self.mean, self.of_all)
        if self.error == 0:
            return 0.0 if mean > 0 else 1.0
        both = student.two_sided_p(mean / self.error, trimmed.degrees(self.pairs))
        return both / 2 if mean > 0 else 1 - both / 2


def pooled(found: Iterable[GainEvidence]) -> GainEvidence:
    """Return the evidence of all these pairs together."""
    known = [one for one in found if one.pairs]
    count = sum(one.pairs for one in known)
    mean = sum(one.mean * one.pairs for one in known) / count
    between = sum(one.pairs * (one.mean - mean) ** 2 for one in known)
    # A single pair does not scatter around its own mean.
    within = sum((one.pairs - 1) * one.deviation**2 for one in known if one.pairs > 1)
    deviation = sqrt((between + within) / (count - 1)) if count > 1 else nan
    if all(one.of_all is None for one in known):
        return GainEvidence(mean, deviation, count)
    all_pairs = sum(one.pairs * (one.mean if one.of_all is None else one.of_all) for one in known)
    return GainEvidence(mean, deviation, count, all_pairs / count)


def _exp(logarithm: float) -> float:
    return exp(logarithm) if logarithm < 700 else inf
