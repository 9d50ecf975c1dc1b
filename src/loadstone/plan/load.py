"""Loads: schedules of iterations."""

from bisect import bisect_left
from dataclasses import dataclass, field
from typing import Literal


@dataclass(frozen=True, slots=True)
class OpenLoad:
    """Iterations are due at a rate, however slow the answers (open loop).

    Constant: iteration i is due at i / rate. Poisson: the gaps are exponential with mean 1 / rate,
    reproducible by the seed, as for many independent users. Ends after `duration_s` or
    `iterations`, whichever is first.
    """

    rate_rps: float
    duration_s: float
    arrivals: Literal["constant", "poisson"] = "constant"
    seed: int = 0  # of Poisson arrivals
    iterations: int | None = None
    kind: Literal["open"] = "open"


@dataclass(frozen=True, slots=True)
class Stage:
    """A period in which the rate changes linearly or is constant."""

    duration_s: float
    from_rps: float
    to_rps: float

    @property
    def count(self) -> float:
        """Number of iterations due in it: the integral of the rate."""
        return (self.from_rps + self.to_rps) / 2 * self.duration_s


@dataclass(frozen=True, slots=True)
class StagedLoad:
    """Iterations are due at a rate that varies by stages: steps, ramps, pauses (open loop).

    Iteration i is due when the integral of the rate reaches i, so there are no bursts and no drift.
    Poisson arrivals are those of a process of rate 1 with its time scaled in the same way.
    """

    stages: tuple[Stage, ...]
    arrivals: Literal["constant", "poisson"] = "constant"
    seed: int = 0  # of Poisson arrivals
    iterations: int | None = None
    kind: Literal["stages"] = "stages"

    @property
    def duration_s(self) -> float:
        """How long iterations are started."""
        return sum(stage.duration_s for stage in self.stages)


@dataclass(frozen=True, slots=True)
class ReplayLoad:
    """Iterations are due at recorded times, in seconds from the start, ascending."""

    offsets_s: tuple[float, ...] = field(repr=False)
    kind: Literal["replay"] = "replay"

    @property
    def duration_s(self) -> float:
        """How long iterations are started."""
        return self.offsets_s[-1]


@dataclass(frozen=True, slots=True)
class ClosedLoad:
    """Each of `workers` starts its next iteration `think_s` after its last one ended (closed loop).

    Ends after `duration_s` or `iterations`, whichever is first. With `turn`, the load takes turns
    with that of a second target: it has so many iterations in a turn, and waits in the other's.
    """

    workers: int
    duration_s: float | None = None
    iterations: int | None = None
    think_s: float = 0.0
    turn: int | None = None  # iterations in each turn; None: it is alone
    kind: Literal["closed"] = "closed"


@dataclass(frozen=True, slots=True)
class BandLoad:
    """Open-loop arrivals that keep the number in flight (due and not ended) within a band.

    Arrivals come at `fill_rps` after the number in flight falls to `low`, and at `ebb_rps` after it
    reaches `high`.
    """

    low: int
    high: int
    fill_rps: float
    ebb_rps: float
    duration_s: float
    kind: Literal["band"] = "band"


OpenLoop = OpenLoad | StagedLoad | ReplayLoad
Load = OpenLoop | ClosedLoad | BandLoad


def peak_rps(load: OpenLoop) -> float:
    """Return the highest offered rate; for a recording, that of its busiest second."""
    match load:
        case OpenLoad():
            return load.rate_rps
        case StagedLoad():
            return max(max(stage.from_rps, stage.to_rps) for stage in load.stages)
        case ReplayLoad():
            offsets_s = load.offsets_s
            return max(bisect_left(offsets_s, at_s + 1) - i for i, at_s in enumerate(offsets_s))
