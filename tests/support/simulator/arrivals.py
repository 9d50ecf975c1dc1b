"""When requests come: the kinds of load, as the engine keeps them."""

import heapq
from math import inf
from typing import Protocol

import numpy as np

from loadstone.plan.arrivals import due_s
from loadstone.plan.load import BandLoad, ClosedLoad, Load, OpenLoad, ReplayLoad, StagedLoad

RETRY_S = 0.05  # a closed-loop worker that was refused comes again after this


class Arrivals(Protocol):
    """Says when the next iteration is due; is told what became of those before."""

    due_s: float

    def arrived(self, in_flight: int) -> None:
        """Take note that the one due has come; `in_flight` counts it."""

    def ended(self, at_s: float, in_flight: int, is_refused: bool) -> None:
        """Take note that one has ended."""


def arrivals(load: Load, random: np.random.Generator, *, all_poisson: bool) -> Arrivals:
    """Give the arrivals of a load; `all_poisson` makes open ones so that ask to be even."""
    match load:
        case OpenLoad():
            is_even = load.arrivals == "constant" and not all_poisson
            return Even(load) if is_even else Poisson(load, random)
        case StagedLoad() | ReplayLoad():
            return Given(load)
        case ClosedLoad():
            return Closed(load)
        case BandLoad():
            return Band(load)


class Even:
    """Arrival i is due at i / rate."""

    def __init__(self, load: OpenLoad) -> None:
        self._rate_rps = load.rate_rps
        self._count = 0
        self.due_s = 0.0

    def arrived(self, in_flight: int) -> None:  # noqa: ARG002
        """Go on with the schedule, which is open."""
        self._count += 1
        self.due_s = self._count / self._rate_rps

    def ended(self, at_s: float, in_flight: int, is_refused: bool) -> None:
        """Change nothing: the schedule is open."""


class Poisson:
    """Arrivals at random with the same mean rate."""

    def __init__(self, load: OpenLoad, random: np.random.Generator) -> None:
        self._mean_gap_s = 1 / load.rate_rps
        self._random = random
        self.due_s = float(random.exponential(self._mean_gap_s))

    def arrived(self, in_flight: int) -> None:  # noqa: ARG002
        """Go on with the schedule, which is open."""
        self.due_s += float(self._random.exponential(self._mean_gap_s))

    def ended(self, at_s: float, in_flight: int, is_refused: bool) -> None:
        """Change nothing: the schedule is open."""


class Given:
    """Arrivals at instants that are known beforehand."""

    def __init__(self, load: StagedLoad | ReplayLoad) -> None:
        self._times_s = due_s(load)
        self.due_s = next(self._times_s, inf)

    def arrived(self, in_flight: int) -> None:  # noqa: ARG002
        """Go on with the schedule, which is open."""
        self.due_s = next(self._times_s, inf)

    def ended(self, at_s: float, in_flight: int, is_refused: bool) -> None:
        """Change nothing: the schedule is open."""


class Closed:
    """Each worker comes again when its last iteration has ended."""

    def __init__(self, load: ClosedLoad) -> None:
        self._ready_s = [0.0] * load.workers
        self._think_s = load.think_s
        self._left = inf if load.iterations is None else load.iterations
        self.due_s = 0.0

    def arrived(self, in_flight: int) -> None:  # noqa: ARG002
        """Occupy the worker that was ready."""
        heapq.heappop(self._ready_s)
        self._left -= 1
        self._next()

    def ended(self, at_s: float, in_flight: int, is_refused: bool) -> None:  # noqa: ARG002
        """Make its worker ready, after a pause where it was refused."""
        pause_s = max(RETRY_S if is_refused else 0.0, self._think_s)
        heapq.heappush(self._ready_s, at_s + pause_s)
        self._next()

    def _next(self) -> None:
        self.due_s = self._ready_s[0] if self._ready_s and self._left > 0 else inf


class Band:
    """Arrivals at two rates that keep the number in flight between two marks."""

    def __init__(self, load: BandLoad) -> None:
        self._load = load
        self._is_filling = True
        self._last_s = 0.0
        self.due_s = 0.0

    def arrived(self, in_flight: int) -> None:
        """Ebb once the upper mark is reached."""
        self._last_s = self.due_s
        if in_flight >= self._load.high:
            self._is_filling = False
        rate_rps = self._load.fill_rps if self._is_filling else self._load.ebb_rps
        self.due_s = self._last_s + 1 / rate_rps

    def ended(self, at_s: float, in_flight: int, is_refused: bool) -> None:  # noqa: ARG002
        """Fill once the lower mark is reached."""
        if not self._is_filling and in_flight <= self._load.low:
            self._is_filling = True
            self.due_s = min(self.due_s, max(at_s, self._last_s + 1 / self._load.fill_rps))
