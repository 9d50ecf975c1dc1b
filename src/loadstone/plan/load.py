"""How hard: the schedule of iterations."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class OpenLoad:
    """Iterations are due at a rate, however slow the answers (open loop).

    Constant: iteration i is due at i / rate. Poisson: the gaps are exponential with mean 1 / rate,
    the same for the same seed, as of many users who know nothing of each other.
    """

    rate_rps: float
    duration_s: float
    arrivals: Literal["constant", "poisson"] = "constant"
    seed: int = 0  # of Poisson arrivals
    kind: Literal["open"] = "open"


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


Load = OpenLoad | ClosedLoad | BandLoad
