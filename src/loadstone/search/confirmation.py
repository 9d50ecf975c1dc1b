"""Plans confirming trials: distance from the capacity, length and allowed backlog."""

import math
from dataclasses import dataclass

from loadstone.analysis.alarm import LEAST_REQUESTS
from loadstone.search.pool import ThroughputEstimate

SIGMAS = 3.5  # by which the expected drift of a trial's backlog exceeds its random walk
SHARE = 0.4  # of the expected drift: the height that separates steady from growing
NEAREST = 0.01
FARTHEST = 0.08
SHORTEST_S = 20.0
WANTED = 0.015  # distance for which a trial is made longer than the shortest
# If noise requires a larger distance than this even for the longest trial, the trial lasts half as
# long: its distance grows by 1.4, and the seconds are better used for metering.
TOO_FAR = 0.03
ROOM = 2.5  # minimum ratio of the drift to the least height
LEAST_HEIGHT_S = 0.1
PATIENCE_S = 2.0  # seconds of backlog that a steady service may temporarily gain by noise


@dataclass(frozen=True, slots=True)
class Confirmation:
    """The terms of a confirming trial."""

    distance: float  # share of the capacity
    seconds: float
    height_s: float


def least_height_s(rate_rps: float) -> float:
    """Return the least backlog that a verdict may depend on: at least six requests."""
    return max(LEAST_HEIGHT_S, LEAST_REQUESTS / rate_rps)


def plan_confirmation(
    known: ThroughputEstimate, longest_s: float, *, may_be_short: bool = True
) -> Confirmation:
    """Plan a trial that distinguishes a rate from the capacity.

    In T seconds at distance d the backlog moves by d * T seconds of work, while its random walk has
    sigma = sqrt(I * T / C) (I: dispersion of the counts of completions and arrivals together).
    """
    height = least_height_s(known.rate_rps)
    noise = known.dispersion / known.rate_rps
    if may_be_short and SIGMAS * math.sqrt(noise / longest_s) > TOO_FAR:
        longest_s /= 2
    farthest = max(FARTHEST, ROOM * height / longest_s)
    seconds = min(longest_s, max(SHORTEST_S, noise * (SIGMAS / WANTED) ** 2))
    noise_distance = SIGMAS * math.sqrt(noise / seconds)
    distance = min(farthest, max(NEAREST, noise_distance, known.half_width_rps / known.rate_rps))
    seconds = min(longest_s, max(seconds, ROOM * height / distance))
    distance = max(distance, min(farthest, ROOM * height / seconds))
    return Confirmation(distance, seconds, height_s(known.rate_rps, distance, seconds))


def height_s(rate_rps: float, distance: float, seconds: float) -> float:
    """Return the backlog that separates steady from growing."""
    return max(least_height_s(rate_rps), SHARE * distance * seconds)


def power(known: ThroughputEstimate, distance: float, seconds: float) -> float:
    """Return how many sigmas such a trial separates the rate from the capacity by."""
    walk_s = math.sqrt(known.dispersion * seconds / known.rate_rps)
    return distance * seconds / max(walk_s, least_height_s(known.rate_rps) / 1.5)
