"""The gain of a rule's fix, as `loadstone audit prove` measured it."""

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Gain:
    """One metric after the fix as a multiple of before, with its 95 % interval."""

    metric: str  # "throughput"
    scenario: str  # "token issue"
    changes: str  # KEY=VALUE of the lab's settings, as measured
    ratio: float
    low: float
    high: float  # infinite if there are too few pairs for an interval
    pairs: int
    is_sure: bool  # the interval excludes 1, or lies so near 1 that both sides are equivalent
    measured_on: str  # YYYY-MM-DD
    deployment: str  # whose settings were measured
    runs: tuple[str, str]  # before and after, in the store

    @property
    def has_interval(self) -> bool:
        """Whether there were enough pairs for an interval."""
        return math.isfinite(self.high)

    @property
    def sentence(self) -> str:
        """Describe the gain: what was measured, by how much it changed, and where."""
        within = f"95 % interval {self.low:.3g} to {self.high:.3g}"
        doubt = "" if self.is_sure else ", no difference that is sure"
        return (
            f"measured: {self.metric} of {self.scenario} {self.ratio:.3g} times with "
            f"{self.changes} ({within if self.has_interval else 'too few pairs for an interval'}, "
            f"{self.pairs} pairs{doubt}) on lab deployment {self.deployment}, {self.measured_on}"
        )
