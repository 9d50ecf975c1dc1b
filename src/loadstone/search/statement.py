"""What a metered search may claim."""

import math

from loadstone.analysis.model import Cause
from loadstone.search.change import LevelChange
from loadstone.search.depth import DEEP, LEVELS, SHALLOW, Depths
from loadstone.search.guard import no_more_than
from loadstone.search.model import Capacity, CapacityKind
from loadstone.search.pool import ThroughputEstimate, estimate
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
ERRORS_SEEN = 0.02  # of N, on the low side, where requests failed in saturation or a little below
# A search that metered for less time than this saw fewer bursts.
LONG_S = 120.0
UNSEEN_POWER = 0.7
MOST_AFTER = 0.1  # half-width over N after a change, in which it may still be going on
TOO_LITTLE = "too little was seen after it: measure again"
WIDE = 0.03  # half-width over N from which more time is recommended


def state(depths: Depths, sides: Sides) -> Capacity:
    """Return N with its interval and the words that limit it."""
    found = estimate(depths.pool)
    steps = _steps(depths)
    if found is None:
        return _changed(steps) if steps else _unmetered(depths, sides)
    words = (*changes(steps), *_bucket_words(depths), *_words(depths, sides, found))
    if sides.flags & HARD:
        return _contradicted(depths, sides, found, words)
    half_width = math.hypot(found.half_width_rps, ALLOWANCE * found.rate_rps)
    unseen = UNSEEN * max(1.0, (LONG_S / depths.pool.seconds) ** UNSEEN_POWER)
    low = found.rate_rps - half_width - unseen * found.rate_rps
    low = min(low, sides.spoiled or low)
    if depths.errors or sides.has_failures:  # a little lower, few enough fail to be allowed
        low -= ERRORS_SEEN * found.rate_rps
    # What held twice above the meter's interval does not contradict it, but may be the truth.
    high = max(found.rate_rps + half_width, sides.steady or 0.0)
    low, high = _for_depth(depths, found, low, high)
    recent = depths.recent()
    if recent is not None:
        last, reach = recent.after_rps, recent.half_width_rps
        low, high = min(low, last - reach), max(high, last + reach)
        words = (*words, f"{last:.4g}/s at last: a burst of noise, or the service changed")
    if steps and found.half_width_rps > MOST_AFTER * found.rate_rps:
        return Capacity(None, max(0.0, low), None, 0.0, (*words, TOO_LITTLE), causes=(Cause.DRIFT,))
    words = (*words, *_more_time(found, low, high))
    # It changed once, and held what was too much since: it may have become faster again.
    is_open = bool(steps) and sides.passed is not None and sides.high is None
    most = None if is_open else high
    return Capacity(found.rate_rps, max(0.0, low), most, CONFIDENCE, words, CapacityKind.SATURATION)


def _steps(depths: Depths) -> list[LevelChange]:
    """Return how the service changed, what the ramp reached included."""
    fell = depths.fell()
    return depths.steps if fell is None else [fell]


def changes(steps: list[LevelChange]) -> tuple[str, ...]:
    """Say which levels there were, and when they ended."""
    if not steps:
        return ()
    before = ", ".join(f"{step.before_rps:.4g}/s until {step.instant} of load" for step in steps)
    return (
        f"the capacity changed during the search: {before}, then {steps[-1].after_rps:.4g}/s; N is "
        f"that of the service as it was after the change",
    )


def _bucket_words(depths: Depths) -> tuple[str, ...]:
    step = depths.bucket
    if step is None:
        return ()
    return (
        f"{step.before_rps:.4g}/s complete after a rest, until a limiter's bucket is empty; N is "
        f"what it bears from then on",
    )


def _changed(steps: list[LevelChange]) -> Capacity:
    last = steps[-1]
    # Within the few seconds that were seen it may still have been changing.
    is_faster = last.after_rps > last.before_rps
    low, high = (last.before_rps, None) if is_faster else (None, last.before_rps)
    words = (*changes(steps), TOO_LITTLE)
    return Capacity(None, low, high, 0.0, words, causes=(Cause.DRIFT,))


def _unmetered(depths: Depths, sides: Sides) -> Capacity:
    """State what trials at constant rates showed where saturation was too short to be metered."""
    words = ("saturation was too short to be metered", *sides.reasons)
    if sides.low is None:
        causes = (Cause.OBJECTIVE,) if Flag.OBJECTIVE in sides.flags else ()
        return no_more_than(sides.high or depths.rate_rps, words, causes)
    high = sides.high or max(sides.low, depths.rate_rps)
    rate = (sides.low + high) / 2
    return Capacity(rate, sides.low, high, CONFIDENCE, words, _kind(sides))


def _kind(sides: Sides) -> CapacityKind:
    if Flag.OBJECTIVE in sides.flags:
        return CapacityKind.OBJECTIVE
    return CapacityKind.REFUSAL if Flag.ERRORS_BELOW in sides.flags else CapacityKind.SATURATION


def _contradicted(
    depths: Depths, sides: Sides, found: ThroughputEstimate, words: tuple[str, ...]
) -> Capacity:
    half_width = found.half_width_rps
    # What failed, noise or a slow queue may have failed: so much did complete in saturation.
    _, most = _for_depth(depths, found, found.rate_rps - half_width, found.rate_rps + half_width)
    if sides.low is None:
        causes = (Cause.OBJECTIVE,) if Flag.OBJECTIVE in sides.flags else ()
        failed = sides.high or found.rate_rps
        high = failed if sides.is_limited else max(failed, most)
        return no_more_than(high, (*words, *sides.reasons), causes)
    reach = OVERLAP * found.half_width_rps
    high = sides.high if sides.high is not None else found.rate_rps + found.half_width_rps
    agrees = sides.low <= found.rate_rps + reach and high >= found.rate_rps - reach
    if agrees and not sides.flags & {Flag.ERRORS_BELOW, Flag.OBJECTIVE}:
        rate = min(max(found.rate_rps, sides.low), high)
        low = min(sides.low, found.rate_rps - found.half_width_rps)
        high = max(high, found.rate_rps + found.half_width_rps)
        return Capacity(rate, max(0.0, low), high, CONFIDENCE, words, CapacityKind.SATURATION)
    low, high = sorted((sides.low, high))
    rate = (low + high) / 2
    if Flag.LESS_SUSTAINED in sides.flags:
        high = max(high, most)
    if Flag.MORE_SUSTAINED in sides.flags:  # what a full bucket or a cache let pass may not last
        low = min(low, found.rate_rps - found.half_width_rps)
    return Capacity(rate, low, high, CONFIDENCE, words, _kind(sides))


def _for_depth(
    depths: Depths, found: ThroughputEstimate, low: float, high: float
) -> tuple[float, float]:
    """Widen the interval where throughput depends on the backlog."""
    if not _depends(depths):
        deep = estimate(depths.pool_of(DEEP))
        # A small difference is not significant, and may be there.
        return low, max(high, deep.rate_rps + deep.half_width_rps) if deep else high
    points = [
        (sum(seen) / len(seen), at.rate_rps)
        for level in range(len(LEVELS))
        if (seen := depths.in_flight(level)) and (at := estimate(depths.pool_of(level)))
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


def _words(depths: Depths, sides: Sides, found: ThroughputEstimate) -> tuple[str, ...]:
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
    flags = sides.flags | _unproven(sides)
    words = [told[flag] for flag in Flag if flag in flags]
    if _depends(depths):
        words.append(_by_depth(depths))
    if depths.errors:
        kinds = ", ".join(f"{count} x {name}" for name, count in depths.errors.most_common(3))
        words.append(f"errors in saturation: {kinds}")
    return tuple(words)


def _unproven(sides: Sides) -> set[Flag]:
    """Return the sides of which no trial came to a verdict, so far."""
    if sides.flags & HARD:
        return set()
    below = {Flag.BELOW_UNDECIDED} if sides.low is None else set()
    return below | ({Flag.ABOVE_UNDECIDED} if sides.high is None else set())


def _first(sides: Sides) -> str:
    return sides.reasons[0] if sides.reasons else "no reason kept"


def _by_depth(depths: Depths) -> str:
    points = [
        f"{at.rate_rps:.4g}/s with {sum(seen) / len(seen):.0f} in flight"
        for level in range(len(LEVELS))
        if (seen := depths.in_flight(level)) and (at := estimate(depths.pool_of(level)))
    ]
    return f"capacity depends on the backlog: {', '.join(points)}"


def _more_time(found: ThroughputEstimate, low: float, high: float) -> tuple[str, ...]:
    if found.half_width_rps <= WIDE * found.rate_rps:
        return ()
    share = max(high - found.rate_rps, found.rate_rps - low) / found.rate_rps
    return (f"known to within {share:.0%} only: four times the load time would halve that",)
