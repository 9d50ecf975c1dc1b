"""Notices that the service itself changed while it was searched."""

import math

from loadstone.search.model import Capacity
from loadstone.search.pool import Pool

LEAST_CHANGE = 0.15  # no burst or drift of one search is that large
# Since the ramp, which is short and another kind of load.
LEAST_FALL = 0.3
SIGMAS = 3.0
LEAST_S = 3.0
PIECE_S = 5.0  # a change in the middle of a stretch shows between its pieces
DISPERSION = 0.5  # of completions, on the safe side for a service of few requests


def change(by_time: list[Pool]) -> Capacity | None:
    """Give what can be said when throughput jumped for good between two stretches of metering."""
    pieces = [piece for pool in by_time for piece in pool.pieces(PIECE_S)]
    used = [piece for piece in pieces if piece.seconds >= LEAST_S]
    for cut in range(1, len(used)):
        before, after = used[:cut], used[cut:]
        least = _least_change(before, after)
        fell = max(map(_rate, after)) < (1 - least) * min(map(_rate, before))
        rose = min(map(_rate, after)) > (1 + least) * max(map(_rate, before))
        if fell or rose:
            return _changed(_rate(sum(before, Pool())), _rate(sum(after, Pool())))
    return None


def fall(ramp_rps: float, completed: float, by_time: list[Pool]) -> Capacity | None:
    """Give what can be said when the ramp reached far more than was metered ever after."""
    metered = sum(by_time, Pool())
    if not completed or not metered.count:
        return None
    noise = math.sqrt(DISPERSION * (1 / completed + 1 / metered.count))
    if _rate(metered) < (1 - max(LEAST_FALL, SIGMAS * noise)) * ramp_rps:
        return _changed(ramp_rps, _rate(metered))
    return None


def _rate(pool: Pool) -> float:
    return pool.count / pool.seconds


def _least_change(before: list[Pool], after: list[Pool]) -> float:
    """Give the share that neither noise nor few completions explain (3 sigmas)."""
    counts = [max(1.0, sum(pool.count for pool in side)) for side in (before, after)]
    return max(LEAST_CHANGE, SIGMAS * math.sqrt(DISPERSION * sum(1 / count for count in counts)))


def _changed(before_rps: float, after_rps: float) -> Capacity:
    low, high = sorted((before_rps, after_rps))
    words = (
        f"the capacity changed during the search: {before_rps:.4g}/s at first, "
        f"{after_rps:.4g}/s later; measure again once the service is steady",
    )
    return Capacity(None, low, high, 0.0, words)
