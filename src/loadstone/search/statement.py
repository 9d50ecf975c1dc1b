"""What a metered search may claim."""

import math

from loadstone.search.change import change, fall
from loadstone.search.depth import DEEP, LEVELS, SHALLOW, Depths
from loadstone.search.guard import no_more_than
from loadstone.search.model import Capacity
from loadstone.search.pool import Estimate, estimate
from loadstone.search.sides import Flag, Sides

CONFIDENCE = 0.95
OVERLAP = 1.5  # half-widths by which bracket and meter may miss each other and still agree
HARD = {Flag.ERRORS_BELOW, Flag.LESS_SUSTAINED, Flag.MORE_SUSTAINED, Flag.OBJECTIVE}
# Of N: what slow noise and drift move unseen during one search. Without it the interval covers a
# service that slows by 0.1 % a minute in 88 runs of 100, with it in 97 (docs/methodology.md).
ALLOWANCE = 0.004
# Of N, on the low side: noise only ever slows a service, and a burst that is rarer than one in a
# search was not seen by it.
UNSEEN = 0.007
WIDE = 0.03  # half-width over N from which more time is recommended


def state(depths: Depths, sides: Sides) -> Capacity:
    """Give N with its interval, and in words what it does not say."""
    found = estimate(depths.pool)
    if found is None:
        return no_more_than(depths.rate_rps, ("saturation was too short to be metered",))
    if depths.top == DEEP and (changed := change(depths.by_time)):
        return changed
    knee = depths.knee
    if not _depends(depths) and (
        fallen := fall(knee.throughput_rps, knee.completed, depths.by_time)
    ):
        return fallen
    words = _words(depths, sides, found)
    if sides.flags & HARD:
        return _contradicted(sides, found, words)
    half_width = math.hypot(found.half_width_rps, ALLOWANCE * found.rate_rps)
    low = found.rate_rps - half_width - UNSEEN * found.rate_rps
    # What held twice above the meter's interval does not contradict it, but may be the truth.
    high = max(found.rate_rps + half_width, sides.steady or 0.0)
    low, high = _for_depth(depths, found, low, high)
    return Capacity(found.rate_rps, max(0.0, low), high, CONFIDENCE, (*words, *_more_time(found)))


def _contradicted(sides: Sides, found: Estimate, words: tuple[str, ...]) -> Capacity:
    if sides.low is None:
        return no_more_than(sides.high or found.rate_rps, (*words, *sides.reasons))
    reach = OVERLAP * found.half_width_rps
    high = sides.high if sides.high is not None else found.rate_rps + found.half_width_rps
    agrees = sides.low <= found.rate_rps + reach and high >= found.rate_rps - reach
    if agrees and not sides.flags & {Flag.ERRORS_BELOW, Flag.OBJECTIVE}:
        rate = min(max(found.rate_rps, sides.low), high)
        low = min(sides.low, found.rate_rps - found.half_width_rps)
        high = max(high, found.rate_rps + found.half_width_rps)
        return Capacity(rate, max(0.0, low), high, CONFIDENCE, words)
    low, high = sorted((sides.low, high))
    return Capacity((low + high) / 2, low, high, CONFIDENCE, words)


def _for_depth(depths: Depths, found: Estimate, low: float, high: float) -> tuple[float, float]:
    """Widen the interval where throughput depends on the backlog."""
    if not _depends(depths):
        return low, high
    points = [
        (sum(depths.in_flight[level]) / len(depths.in_flight[level]), at.rate_rps)
        for level in range(len(LEVELS))
        if depths.in_flight[level] and (at := estimate(depths.pools[level]))
    ]
    half_width = found.half_width_rps
    low = min([low, *(rate - half_width for _, rate in points)])
    high = max([high, *(rate + half_width for _, rate in points)])
    if len(points) < 2 or points[-1][1] <= points[-2][1]:
        return low, high
    # 1/X = 1/C + k/Q: what an endless backlog would bring.
    (some, slower), (more, faster) = points[-2:]
    inverse = (more / faster - some / slower) / (more - some) if more > some else 0.0
    if inverse > 0:
        high = max(high, min(1.3 * found.rate_rps, 1 / inverse) + half_width)
    return low, high


def _depends(depths: Depths) -> bool:
    return depths.top > DEEP or depths.gap(SHALLOW, DEEP) != 0


def _words(depths: Depths, sides: Sides, found: Estimate) -> tuple[str, ...]:
    metered = f"{found.rate_rps:.4g}/s"
    high = f"{sides.high:.4g}/s" if sides.high else "N"
    low = f"{sides.low:.4g}/s" if sides.low else "a rate below"
    told = {
        Flag.NOISY: f"{low} held in the end, but one trial below N failed ({_first(sides)})",
        Flag.ERRORS_BELOW: f"errors come below the {metered} that saturation reaches",
        Flag.LESS_SUSTAINED: f"{high} was not sustained, although {metered} complete in saturation",
        Flag.MORE_SUSTAINED: f"{low} was sustained, above the {metered} completed in saturation",
        Flag.ABOVE_UNDECIDED: "no rate above N was seen to fail in the time given",
        Flag.BELOW_UNDECIDED: "no rate below N was seen to hold in the time given",
        Flag.OBJECTIVE: f"the objective is the limit: {metered} complete in saturation, too late",
    }
    words = [told[flag] for flag in Flag if flag in sides.flags]
    if _depends(depths):
        words.append(_by_depth(depths))
    if depths.errors:
        kinds = ", ".join(f"{count} x {name}" for name, count in depths.errors.most_common(3))
        words.append(f"errors in saturation: {kinds}")
    return tuple(words)


def _first(sides: Sides) -> str:
    return sides.reasons[0] if sides.reasons else "no reason kept"


def _by_depth(depths: Depths) -> str:
    points = [
        f"{at.rate_rps:.4g}/s with {sum(seen) / len(seen):.0f} in flight"
        for pool, seen in zip(depths.pools, depths.in_flight, strict=True)
        if seen and (at := estimate(pool))
    ]
    return f"capacity depends on the backlog: {', '.join(points)}"


def _more_time(found: Estimate) -> tuple[str, ...]:
    share = found.half_width_rps / found.rate_rps
    if share <= WIDE:
        return ()
    return (f"known to within {share:.0%} only: four times the load time would halve that",)
