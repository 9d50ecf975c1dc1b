"""Operational time: how much of its undisturbed work a service can have done by an instant.

All workers share bursts and stalls, so the queue runs exactly in operational time; only arrivals
and departures are mapped. (In G/G/c with a common speed v(t), W(t) is the integral of v.)
"""

from bisect import bisect_right
from itertools import pairwise

import numpy as np

from simulator.service import Service

STRETCH_S = 600.0
STALLED = 1e-9  # speed of a stalled service; not zero so that time can be mapped back


class Speed:
    """Maps seconds to operational seconds and back; a fixed path once drawn."""

    def __init__(self, service: Service, random: np.random.Generator) -> None:
        self._service = service
        self._random = random
        self._wall = [0.0]
        self._work = [0.0]
        disturbed = service.bursts or service.stalls or service.change
        self.is_constant = disturbed is None

    def to_work(self, at_s: float) -> float:
        """Operational seconds by `at_s`."""
        if self.is_constant:
            return at_s
        while self._wall[-1] <= at_s:
            self._extend()
        return _interpolate(at_s, self._wall, self._work)

    def to_wall(self, work_s: float) -> float:
        """The instant by which `work_s` operational seconds have passed."""
        if self.is_constant:
            return work_s
        while self._work[-1] <= work_s:
            self._extend()
        return _interpolate(work_s, self._work, self._wall)

    def _extend(self) -> None:
        begin_s = self._wall[-1]
        end_s = begin_s + STRETCH_S
        stretches = [*self._bursts(begin_s, end_s), *self._stalls(begin_s, end_s)]
        change = self._service.change
        if change is not None and change.at_s < end_s and change.back_at_s > begin_s:
            since_s, until_s = max(begin_s, change.at_s), min(end_s, change.back_at_s)
            stretches.append((since_s, until_s, 1 / change.slower))
        edges = sorted({begin_s, end_s, *(edge for s in stretches for edge in s[:2])})
        for left, right in pairwise(edges):
            speed = 1.0
            for start, stop, factor in stretches:
                if start <= left < stop:
                    speed *= factor
            self._wall.append(right)
            self._work.append(self._work[-1] + max(speed, STALLED) * (right - left))

    def _bursts(self, begin_s: float, end_s: float) -> list[tuple[float, float, float]]:
        kind = self._service.bursts
        found: list[tuple[float, float, float]] = []
        if kind is None:
            return found
        # The session begins somewhere in the noise, not at the end of a burst.
        at_s = begin_s or float(self._random.uniform(-2 * kind.gap_s, -kind.gap_s))
        while True:
            at_s += float(self._random.exponential(kind.gap_s))
            until_s = at_s + float(self._random.uniform(kind.least_s, kind.most_s))
            if at_s >= end_s:
                return found
            if until_s > begin_s:
                found.append((max(at_s, begin_s), min(until_s, end_s), 1 / (1 + kind.slower)))
            at_s = until_s

    def _stalls(self, begin_s: float, end_s: float) -> list[tuple[float, float, float]]:
        kind = self._service.stalls
        found: list[tuple[float, float, float]] = []
        if kind is None:
            return found
        at_s = begin_s
        while True:
            at_s += float(self._random.exponential(kind.gap_s))
            until_s = at_s + float(self._random.uniform(kind.least_s, kind.most_s))
            if until_s >= end_s:
                return found
            found.append((at_s, until_s, STALLED))
            at_s = until_s


def _interpolate(x: float, xs: list[float], ys: list[float]) -> float:
    i = bisect_right(xs, x)
    left = xs[i - 1]
    return ys[i - 1] + (ys[i] - ys[i - 1]) * (x - left) / (xs[i] - left)
