"""How far from the capacity, how long and how strictly a constant rate is tried."""

import math
from dataclasses import dataclass

from loadstone.analysis.alarm import LEAST_REQUESTS

SIGMAS = 3.5  # by which a trial's expected drift of the backlog exceeds its random walk
SHARE = 0.4  # of the expected drift: the height that separates steady from growing
NEAREST = 0.01
FARTHEST = 0.08
SHORTEST_S = 20.0
WANTED = 0.015  # distance for which a trial is lengthened beyond the shortest
# Where noise makes even the longest trial tell no nearer than this, it lasts half as long: its
# distance grows by 1.4, and metering gains the seconds, which say more of the capacity.
TOO_FAR = 0.03
ROOM = 2.5  # times the least height that the drift must reach
LEAST_HEIGHT_S = 0.1
PATIENCE_S = 2.0  # of backlog that a steady service under noise may gain and lose again


@dataclass(frozen=True, slots=True)
class Proof:
    """The terms of a confirming trial."""

    distance: float  # share of the capacity
    seconds: float
    height_s: float


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of the capacity when a trial is planned."""

    rate_rps: float
    half_width_rps: float
    dispersion: float  # of completions and arrivals together

    @property
    def least_height_s(self) -> float:
        """No verdict hangs on fewer than six requests."""
        return max(LEAST_HEIGHT_S, LEAST_REQUESTS / self.rate_rps)


def proof(known: Known, longest_s: float) -> Proof:
    """Plan a trial that can tell: in T seconds at distance d the backlog moves by d * T seconds of
    work, while its random walk has sigma = sqrt(I * T / C) (I: index of dispersion of counts).
    """
    noise = known.dispersion / known.rate_rps
    if SIGMAS * math.sqrt(noise / longest_s) > TOO_FAR:
        longest_s /= 2
    farthest = max(FARTHEST, ROOM * known.least_height_s / longest_s)
    seconds = min(longest_s, max(SHORTEST_S, noise * (SIGMAS / WANTED) ** 2))
    by_noise = SIGMAS * math.sqrt(noise / seconds)
    distance = min(farthest, max(NEAREST, by_noise, known.half_width_rps / known.rate_rps))
    seconds = min(longest_s, max(seconds, ROOM * known.least_height_s / distance))
    distance = max(distance, min(farthest, ROOM * known.least_height_s / seconds))
    return Proof(distance, seconds, height_s(known, distance, seconds))


def height_s(known: Known, distance: float, seconds: float) -> float:
    """Return the backlog that separates steady from growing."""
    return max(known.least_height_s, SHARE * distance * seconds)


def power(known: Known, distance: float, seconds: float) -> float:
    """By how many sigmas such a trial tells a rate off the capacity from one at it."""
    walk_s = math.sqrt(known.dispersion * seconds / known.rate_rps)
    return distance * seconds / max(walk_s, known.least_height_s / 1.5)
