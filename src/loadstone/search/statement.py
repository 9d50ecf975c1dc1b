"""What a metered search may claim."""

from loadstone.search.depth import DEEP, LEVELS, SHALLOW, Depths
from loadstone.search.guard import no_more_than
from loadstone.search.model import Capacity
from loadstone.search.pool import Estimate, estimate
from loadstone.search.sides import Flag, Sides

CONFIDENCE = 0.95
OVERLAP = 1.5  # half-widths by which bracket and meter may miss each other and still agree
HARD = {Flag.ERRORS_BELOW, Flag.LESS_SUSTAINED, Flag.MORE_SUSTAINED, Flag.OBJECTIVE}


def state(depths: Depths, sides: Sides) -> Capacity:
    """Give N with its interval, and in words what it does not say."""
    found = estimate(depths.pool)
    if found is None:
        return no_more_than(depths.rate_rps, ("saturation was too short to be metered",))
    low = found.rate_rps - found.half_width_rps
    high = found.rate_rps + found.half_width_rps
    if not sides.flags & HARD:
        low, high = _for_depth(depths, found, low, high)
        return Capacity(found.rate_rps, low, high, CONFIDENCE, _words(depths, sides))
    return _contradicted(depths, sides, found)


def _contradicted(depths: Depths, sides: Sides, found: Estimate) -> Capacity:
    words = _words(depths, sides)
    if sides.low is None:
        return no_more_than(sides.high or found.rate_rps, (*words, *sides.reasons))
    reach = OVERLAP * found.half_width_rps
    high = sides.high if sides.high is not None else found.rate_rps + found.half_width_rps
    agrees = sides.low <= found.rate_rps + reach and high >= found.rate_rps - reach
    if agrees and not sides.flags & {Flag.ERRORS_BELOW, Flag.OBJECTIVE}:
        rate = min(max(found.rate_rps, sides.low), high)
        low = min(sides.low, found.rate_rps - found.half_width_rps)
        high = max(high, found.rate_rps + found.half_width_rps)
        return Capacity(rate, low, high, CONFIDENCE, words)
    low, high = sorted((sides.low, high))
    return Capacity((low + high) / 2, low, high, CONFIDENCE, words)


def _for_depth(depths: Depths, found: Estimate, low: float, high: float) -> tuple[float, float]:
    """Widen the interval where throughput depends on the backlog."""
    if depths.top == DEEP and not depths.gap(SHALLOW, DEEP):
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


def _words(depths: Depths, sides: Sides) -> tuple[str, ...]:
    return tuple(str(flag) for flag in sorted(sides.flags)) + tuple(
        ("depends",) if depths.top > DEEP or depths.gap(SHALLOW, DEEP) else ()
    )
