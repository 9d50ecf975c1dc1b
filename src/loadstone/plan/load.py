"""How hard: the schedule of iterations."""

from bisect import bisect_left
from dataclasses import dataclass, field
from typing import Literal


@dataclass(frozen=True, slots=True)
class OpenLoad:
    """Iterations are due at a rate, however slow the answers (open loop).

    Constant: iteration i is due at i / rate. Poisson: the gaps are exponential with mean 1 / rate,
    the same for the same seed, as of many users who know nothing of each other. Ends after
    `duration_s`, or after `iterations` in all where they are given and come first.
    """

    rate_rps: float
    duration_s: float
    arrivals: Literal["constant", "poisson"] = "constant"
    seed: int = 0  # of Poisson arrivals
    iterations: int | None = None
    kind: Literal["open"] = "open"


@dataclass(frozen=True, slots=True)
class Stage:
    """A stretch in which the rate goes evenly from one value to another, or stays."""

    duration_s: float
    from_rps: float
    to_rps: float

    @property
    def count(self) -> float:
        """How many iterations are due in it: the integral of the rate."""
        return (self.from_rps + self.to_rps) / 2 * self.duration_s


@dataclass(frozen=True, slots=True)
class StagedLoad:
    """Iterations are due at a rate that goes through stages: steps, ramps, pauses (open loop).

    Iteration i is due when the integral of the rate reaches i: no bursts, no drift. Poisson
    arrivals are those of a process of rate 1, its time stretched in the same way.
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
    """Iterations are due when they were in a recording, in seconds from its start, ascending."""

    offsets_s: tuple[float, ...] = field(repr=False)
    kind: Literal["replay"] = "replay"

    @property
    def duration_s(self) -> float:
        """How long iterations are started."""
        return self.offsets_s[-1]


@dataclass(frozen=True, slots=True)
class ClosedLoad:
    """Each of `workers` starts its next iteration `think_s` after its last one ended (closed loop).

    Ends after `duration_s`, or after `iterations` in all, whichever is given and comes first.
    """

    workers: int
    duration_s: float | None = None
    iterations: int | None = None
    think_s: float = 0.0
    kind: Literal["closed"] = "closed"


@dataclass(frozen=True, slots=True)
class BandLoad:
    """Open-loop arrivals that hold the number in flight (due and not ended) inside a band.

    Arrivals come at `fill_rps` from the moment that in-flight falls to `low` until it reaches
    `high`, and at `ebb_rps` from then until it falls to `low` again.
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
    """Return the highest offered rate; of a recording, that of its busiest second."""
    match load:
        case OpenLoad():
            return load.rate_rps
        case StagedLoad():
            return max(max(stage.from_rps, stage.to_rps) for stage in load.stages)
        case ReplayLoad():
            offsets_s = load.offsets_s
            return max(bisect_left(offsets_s, at_s + 1) - i for i, at_s in enumerate(offsets_s))
