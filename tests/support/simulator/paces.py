"""Services whose speed depends on what they have done, on the time, or on how many are inside."""

from dataclasses import dataclass
from math import cos, exp, pi
from typing import Protocol


class Pace(Protocol):
    """A factor of the service times; each service has a copy of its own."""

    def slower(self, at_s: float, inside: int, served: int) -> float:
        """Return the factor for a request that comes at `at_s` and finds `inside` others."""


@dataclass(slots=True)
class Decline:
    """Slower by a share for each request served, and for each second."""

    per_request: float = 0.0
    per_s: float = 0.0

    def slower(self, at_s: float, inside: int, served: int) -> float:  # noqa: ARG002
        """Return a factor that grows without end."""
        return 1 + self.per_request * served + self.per_s * at_s


@dataclass(slots=True)
class Collapse:
    """Slower from `most` inside on; if it `sticks`, until at most `calm` are inside."""

    most: int
    factor: float = 2.0
    sticks: bool = False
    calm: int = 0
    is_slow: bool = False

    def slower(self, at_s: float, inside: int, served: int) -> float:  # noqa: ARG002
        """Return the factor of the present state."""
        least = self.calm if self.sticks and self.is_slow else self.most
        self.is_slow = inside >= max(1, least)
        return self.factor if self.is_slow else 1.0


@dataclass(slots=True)
class Contention:
    """Slower by a share for each request inside (> 0), or faster up to a number of them."""

    share: float
    most: float = 1e9

    def slower(self, at_s: float, inside: int, served: int) -> float:  # noqa: ARG002
        """Return the factor for so many inside."""
        inside = min(inside, self.most)
        return 1 + self.share * inside if self.share >= 0 else 1 / (1 - self.share * inside)


@dataclass(slots=True)
class Swing:
    """Slower and faster in turn, as a cosine of the time."""

    period_s: float
    depth: float
    phase: float = 0.0

    def slower(self, at_s: float, inside: int, served: int) -> float:  # noqa: ARG002
        """Return a factor between 1 and 1 + depth."""
        return 1 + self.depth * (0.5 - 0.5 * cos(2 * pi * (at_s / self.period_s + self.phase)))


@dataclass(slots=True)
class Job:
    """Slower for a while, every so often: a background job."""

    every_s: float
    for_s: float
    factor: float
    begun: float = 0.0

    def slower(self, at_s: float, inside: int, served: int) -> float:  # noqa: ARG002
        """Return the factor while the job runs."""
        return (
            self.factor if (at_s + self.begun * self.every_s) % self.every_s < self.for_s else 1.0
        )


@dataclass(slots=True)
class Filling:
    """Slow at first, and faster as a cache fills."""

    gain: float
    requests: float

    def slower(self, at_s: float, inside: int, served: int) -> float:  # noqa: ARG002
        """Return a factor that falls to 1."""
        return 1 + self.gain * exp(-served / self.requests)


@dataclass(slots=True)
class Scaling:
    """Instances are added one by one, so many requests apart."""

    every: int
    most: int

    def slower(self, at_s: float, inside: int, served: int) -> float:  # noqa: ARG002
        """Return the share of the first instance."""
        return 1 / min(self.most, 1 + served // self.every)


@dataclass(slots=True)
class Pauses:
    """Every nth request takes longer, by more each time: a collector of a growing heap."""

    every: int
    growth: float

    def slower(self, at_s: float, inside: int, served: int) -> float:  # noqa: ARG002
        """Return the factor of this request."""
        return 1 + self.growth * served if served % self.every == 0 else 1.0


@dataclass(slots=True)
class Idle:
    """Slower for the first requests after nothing came for a while."""

    after_s: float
    requests: float
    gain: float
    last_s: float = 0.0
    since: int = 0

    def slower(self, at_s: float, inside: int, served: int) -> float:  # noqa: ARG002
        """Return a factor that falls to 1."""
        if at_s - self.last_s > self.after_s:
            self.since = served
        self.last_s = at_s
        return 1 + self.gain * exp(-(served - self.since) / self.requests)
