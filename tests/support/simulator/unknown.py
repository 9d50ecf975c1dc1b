"""Ten families of services that no part of the search is made for.

Nothing in `search/` was adjusted to them: they show what a search says about a service of a kind
that nobody has thought of.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from math import exp

import numpy as np

from simulator.service import Fsync, Service

Random = np.random.Generator


@dataclass(slots=True)
class Wandering:
    """A speed that wanders around its mean (Ornstein-Uhlenbeck, in the logarithm)."""

    seed: int
    spread: float  # standard deviation
    lasting_s: float  # time constant
    path: list[float] = field(default_factory=lambda: [0.0])

    def slower(self, at_s: float, inside: int, served: int) -> float:  # noqa: ARG002
        """Return the factor of this half second."""
        step = int(2 * at_s)
        while len(self.path) <= step:
            kept = exp(-0.5 / self.lasting_s)
            drawn = np.random.default_rng([self.seed, len(self.path)]).normal()
            noise = self.spread * math.sqrt(1 - kept**2) * float(drawn)
            self.path.append(kept * self.path[-1] + noise)
        return exp(-self.path[step])


@dataclass(slots=True)
class Credits:
    """Fast while there are credits, which flow in at a rate: a burstable virtual machine."""

    per_s: float
    most: float
    factor: float
    left: float
    last_s: float = 0.0

    def slower(self, at_s: float, inside: int, served: int) -> float:  # noqa: ARG002
        """Return 1 for a credit, else the factor."""
        self.left = min(self.most, self.left + self.per_s * max(0.0, at_s - self.last_s))
        self.last_s = max(at_s, self.last_s)
        if self.left < 1:
            return self.factor
        self.left -= 1
        return 1.0


@dataclass(slots=True)
class Governor:
    """A processor that clocks down where it is not busy, and up within seconds."""

    gain: float
    lasting_s: float
    workers: int
    busy: float = 0.0
    last_s: float = 0.0

    def slower(self, at_s: float, inside: int, served: int) -> float:  # noqa: ARG002
        """Return a factor that is 1 at full load."""
        kept = exp(-max(0.0, at_s - self.last_s) / self.lasting_s)
        self.busy = kept * self.busy + (1 - kept) * min(1.0, inside / self.workers)
        self.last_s = max(at_s, self.last_s)
        return 1 + self.gain * (1 - self.busy)


@dataclass(slots=True)
class Neighbour:
    """Another program that takes a part of the machine for a while, at random instants."""

    seed: int
    mean_s: float  # of a state
    factor: float
    edges_s: list[float] = field(default_factory=lambda: [0.0])

    def slower(self, at_s: float, inside: int, served: int) -> float:  # noqa: ARG002
        """Return the factor of the present state."""
        while self.edges_s[-1] <= at_s:
            random = np.random.default_rng([self.seed, len(self.edges_s)])
            self.edges_s.append(self.edges_s[-1] + float(random.exponential(self.mean_s)))
        state = int(np.searchsorted(self.edges_s, at_s, side="right"))
        return self.factor if (state + self.seed) % 2 else 1.0


@dataclass(slots=True)
class Retries:
    """A proxy that asks again after a time-out: the work of those who wait long is done twice."""

    after: int  # inside: so many take the time-out

    def slower(self, at_s: float, inside: int, served: int) -> float:  # noqa: ARG002
        """Return 2 for who waits longer than the time-out."""
        return 2.0 if inside > self.after else 1.0


@dataclass(slots=True)
class Levelling:
    """Slower with all that was served, by less and less: a table that outgrows its cache."""

    loss: float
    requests: float

    def slower(self, at_s: float, inside: int, served: int) -> float:  # noqa: ARG002
        """Return a factor that rises to 1 + loss."""
        return 1 + self.loss * (1 - exp(-served / self.requests))


@dataclass(slots=True)
class Checkpoint:
    """One long request every so often, for which all others wait."""

    every_s: float
    stops_s: float
    mean_s: float  # of a request
    due_s: float

    def slower(self, at_s: float, inside: int, served: int) -> float:  # noqa: ARG002
        """Return the factor of the request that meets the checkpoint."""
        if at_s < self.due_s:
            return 1.0
        self.due_s += self.every_s
        return 1 + self.stops_s / self.mean_s


def _wandering(service: Service, random: Random) -> Service:
    spread, lasting_s = random.uniform(0.05, 0.2), _between(random, 3.0, 40.0)
    return replace(service, pace=Wandering(_seed(random), float(spread), lasting_s))


def _credits(service: Service, random: Random) -> Service:
    per_s = service.capacity_rps * float(random.uniform(0.1, 0.5))
    most = service.capacity_rps * _between(random, 5.0, 60.0)
    left = most * float(random.uniform(0.3, 1.0))
    return replace(service, pace=Credits(per_s, most, float(random.uniform(1.3, 3.0)), left))


def _governor(service: Service, random: Random) -> Service:
    gain, lasting_s = float(random.uniform(0.2, 1.0)), _between(random, 0.5, 6.0)
    return replace(service, pace=Governor(gain, lasting_s, service.workers))


def _neighbour(service: Service, random: Random) -> Service:
    factor, mean_s = float(random.uniform(1.1, 1.6)), _between(random, 4.0, 40.0)
    return replace(service, pace=Neighbour(_seed(random), mean_s, factor))


def _retries(service: Service, random: Random) -> Service:
    after = round(service.workers + service.capacity_rps * _between(random, 0.1, 2.0))
    return replace(service, pace=Retries(after))


def _levelling(service: Service, random: Random) -> Service:
    requests = service.capacity_rps * _between(random, 5.0, 120.0)
    return replace(service, pace=Levelling(float(random.uniform(0.1, 0.8)), requests))


def _checkpoint(service: Service, random: Random) -> Service:
    every_s = _between(random, 8.0, 40.0)
    stops_s = every_s * float(random.uniform(0.02, 0.15))
    begun_s = every_s * float(random.uniform(0, 1))
    pace = Checkpoint(every_s, stops_s, 1 / service.capacity_rps, begun_s)
    return replace(service, workers=1, pace=pace)


def _writers(service: Service, random: Random) -> Service:
    return replace(service, exclusive=float(random.uniform(0.02, 0.3)))


def _heavy(service: Service, random: Random) -> Service:
    share, variation = float(random.uniform(0.3, 0.7)), _between(random, 3.0, 8.0)
    return replace(service, fsync=Fsync(share=share, variation=variation))


def _fleet(service: Service, random: Random) -> Service:
    shares = random.uniform(0.6, 1.0, int(random.integers(3, 7)))
    return replace(service, uneven=tuple((shares / shares.sum()).tolist()))


UNKNOWN: dict[str, Callable[[Service, Random], Service]] = {
    "wandering": _wandering,
    "credits": _credits,
    "governor": _governor,
    "neighbour": _neighbour,
    "retries": _retries,
    "levelling": _levelling,
    "checkpoint": _checkpoint,
    "writers": _writers,
    "heavy": _heavy,
    "fleet": _fleet,
}


def _between(random: Random, low: float, high: float) -> float:
    return float(np.exp(random.uniform(math.log(low), math.log(high))))


def _seed(random: Random) -> int:
    return int(random.integers(1 << 30))
