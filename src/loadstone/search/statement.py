"""Computes the result of a metered search."""

import math

from loadstone.analysis.interval import CONFIDENCE
from loadstone.analysis.model import Cause
from loadstone.search.bracket import Bracket, Flag
from loadstone.search.change import LevelChange
from loadstone.search.depth import DEEP, SHALLOW, Depths
from loadstone.search.guard import CHANGED, OF_EMPTY, OF_LATER, at_least, no_more_than
from loadstone.search.model import Capacity, CapacityKind
from loadstone.search.pool import ThroughputEstimate, estimate
from loadstone.search.posterior import Posterior

OVERLAP = 1.5  # half-widths by which bracket and meter may differ and still agree
HARD = {Flag.ERRORS_BELOW, Flag.LESS_SUSTAINED, Flag.MORE_SUSTAINED, Flag.OBJECTIVE}
# Share of N for slow noise and drift that one search cannot detect. For a service that slows by
# 0.1 % a minute, the coverage is 97 of 100 runs with it and 88 without (docs/methodology.md).
ALLOWANCE = 0.004
# Share of N on the low side: noise only slows a service, and a search misses bursts that are rarer
# than one per search.
UNSEEN = 0.003
ERRORS_SEEN = 0.02  # share of N on the low side, if requests failed in saturation or slightly below
# A search that metered for less time than this has seen fewer bursts.
LONG_S = 120.0
UNSEEN_POWER = 0.7
# Load after a change, at least: until then it may change back, as for a job in the background.
SETTLED_S = 60.0
TOO_LITTLE = "too little was seen after it: measure again"
# Changes after which no level is for good: a neighbour that comes and goes, not a deployment and
# its way back.
RESTLESS = 3
# Seconds of full service: in less, a rate above N may be sustained twice by chance.
CLEAR_S = 60.0
WIDE = 0.03  # half-width over N from which more time is recommended


def state(depths: Depths, bracket: Bracket, likely: Posterior | None = None) -> Capacity:
    """Return N with its interval and notes; `likely` is N by all saturated seconds."""
    found = estimate(depths.pool)
    steps = _steps(depths)
    if found is None:
        return _changed(steps) if steps else _unmetered(bracket)
    notes = (*changes(steps), *_notes(depths, bracket, found))
    if bracket.flags & HARD:
        return _contradicted(depths, bracket, found, notes)
    is_likely = likely is not None and depths.top <= DEEP
    if likely is None or not is_likely:
        half_width = math.hypot(found.half_width_rps, ALLOWANCE * found.rate_rps)
        likely = Posterior(found.rate_rps, found.rate_rps - half_width, found.rate_rps + half_width)
    likely = _agreed(likely, found)
    rate = likely.rate_rps
    unseen = UNSEEN * max(1.0, (LONG_S / depths.pool.seconds) ** UNSEEN_POWER)
    low = likely.low_rps - unseen * rate
    low = min(low, bracket.spoiled or low)
    if depths.errors or bracket.has_failures:  # slightly lower, the allowed share fails
        low -= ERRORS_SEEN * rate
    # A rate above the meter's interval that was sustained twice may be the true capacity.
    high = max(likely.high_rps, bracket.steady or 0.0)
    if not is_likely or _depends(depths):
        low, high = _for_depth(depths, found, low, high)
    recent = depths.recent()
    if recent is not None:
        last, reach = recent.after_rps, recent.half_width_rps
        low, high = min(low, last - reach), max(high, last + reach)
        notes = (*notes, f"{last:.4g}/s at last: a burst of noise, or the service changed")
    end_s = depths.chunks[-1].begin_s + depths.chunks[-1].pool.seconds
    is_settled = not steps or end_s - steps[-1].first_s >= SETTLED_S
    if len(steps) >= RESTLESS or not is_settled:
        before = [step.before_rps for step in steps]
        low, high = min(low, *before), max(high, *before)
        why = f"it changed {len(steps)} times, and may change again"
        notes = (*notes, TOO_LITTLE if len(steps) < RESTLESS else why)
        return Capacity(None, max(0.0, low), high, 0.0, notes, causes=(Cause.DRIFT,))
    if steps and bracket.passed is not None and bracket.high is None:
        # It may have become faster again.
        low, passed = max(0.0, low), bracket.passed
        held = f"at least {low:.4g}/s: after the change {passed:.4g}/s was sustained"
        return Capacity(None, low, None, 0.0, (held, *notes))
    notes = (*notes, *_more_time(rate, low, high))
    return Capacity(rate, max(0.0, low), high, CONFIDENCE, notes, CapacityKind.SATURATION)


def _agreed(likely: Posterior, found: ThroughputEstimate) -> Posterior:
    """Return an interval that holds what completed per second, which a model may miss.

    The model counts single seconds. Where many requests complete at a time, as of a service that
    looks for work every so often, these may beat with the seconds.
    """
    if likely.low_rps <= found.rate_rps <= likely.high_rps:
        return likely
    low = min(likely.low_rps, found.rate_rps - found.half_width_rps)
    high = max(likely.high_rps, found.rate_rps + found.half_width_rps)
    return Posterior((low + high) / 2, low, high)


def _steps(depths: Depths) -> list[LevelChange]:
    """Return the changes of the service, including the one from the ramp's level."""
    fell = depths.fell()
    return depths.steps if fell is None else [fell]


def changes(steps: list[LevelChange]) -> tuple[str, ...]:
    """Describe the levels of the service, and when they ended."""
    if not steps:
        return ()
    before = ", ".join(f"{step.before_rps:.4g}/s until {step.instant} of load" for step in steps)
    return f"{CHANGED}: {before}, then {steps[-1].after_rps:.4g}/s", OF_LATER


def _changed(steps: list[LevelChange]) -> Capacity:
    last = steps[-1]
    # Within the few seconds after the change it may still have been changing.
    is_faster = last.after_rps > last.before_rps
    low, high = (last.before_rps, None) if is_faster else (None, last.before_rps)
    notes = (*changes(steps), TOO_LITTLE)
    return Capacity(None, low, high, 0.0, notes, causes=(Cause.DRIFT,))


def _unmetered(bracket: Bracket) -> Capacity:
    """Return the result of constant-rate trials, if saturation was too short to be metered."""
    notes = ("saturation was too short to be metered", *bracket.reasons)
    causes = (Cause.OBJECTIVE,) if Flag.OBJECTIVE in bracket.flags else ()
    if bracket.high is None:
        if bracket.is_at_ceiling:
            return at_least(bracket.steady or 0.0)
        held = bracket.held_rps
        if held is None:
            return Capacity(None, None, None, 0.0, (*bracket.estimate, *notes), causes=causes)
        # No rate failed, so there is no upper bound.
        notes = (f"at least {held:.4g}/s, which was sustained", *notes)
        return Capacity(held, held, None, 0.0, notes, causes=causes)
    if bracket.low is None:
        return no_more_than(bracket.high, notes, causes)
    rate = (bracket.low + bracket.high) / 2
    return Capacity(rate, bracket.low, bracket.high, CONFIDENCE, notes, _kind(bracket))


def _kind(bracket: Bracket) -> CapacityKind:
    if Flag.OBJECTIVE in bracket.flags:
        return CapacityKind.OBJECTIVE
    return CapacityKind.REFUSAL if Flag.ERRORS_BELOW in bracket.flags else CapacityKind.SATURATION


def _contradicted(
    depths: Depths, bracket: Bracket, found: ThroughputEstimate, notes: tuple[str, ...]
) -> Capacity:
    half_width = found.half_width_rps
    # Noise or a slow queue may have caused the failures, and this rate completed in saturation.
    _, most = _for_depth(depths, found, found.rate_rps - half_width, found.rate_rps + half_width)
    if bracket.low is None:
        causes = (Cause.OBJECTIVE,) if Flag.OBJECTIVE in bracket.flags else ()
        failed = bracket.high or found.rate_rps
        high = failed if bracket.is_limited else max(failed, most)
        return no_more_than(high, (*notes, *bracket.reasons), causes)
    reach = OVERLAP * found.half_width_rps
    high = bracket.high if bracket.high is not None else found.rate_rps + found.half_width_rps
    agrees = bracket.low <= found.rate_rps + reach and high >= found.rate_rps - reach
    if agrees and not bracket.flags & {Flag.ERRORS_BELOW, Flag.OBJECTIVE}:
        rate = min(max(found.rate_rps, bracket.low), high)
        low = min(bracket.low, found.rate_rps - found.half_width_rps)
        high = max(high, found.rate_rps + found.half_width_rps)
        return Capacity(rate, max(0.0, low), high, CONFIDENCE, notes, CapacityKind.SATURATION)
    is_long = depths.pool.seconds >= CLEAR_S
    if Flag.MORE_SUSTAINED in bracket.flags and bracket.high is None and is_long:
        # More than it completes when it is full, and nothing shows how much more.
        return Capacity(None, max(0.0, found.rate_rps - half_width), None, 0.0, notes)
    low, high = sorted((bracket.low, high))
    rate = (low + high) / 2
    if Flag.LESS_SUSTAINED in bracket.flags:
        high = max(high, most)
    if Flag.MORE_SUSTAINED in bracket.flags:  # what a full bucket or a cache let pass may not last
        low = min(low, found.rate_rps - found.half_width_rps)
    return Capacity(rate, low, high, CONFIDENCE, notes, _kind(bracket))


def _for_depth(
    depths: Depths, found: ThroughputEstimate, low: float, high: float
) -> tuple[float, float]:
    """Widen the interval where throughput depends on the backlog."""
    if not _depends(depths):
        deep = estimate(depths.pool_of(DEEP))
        # A small difference may exist although it is not significant.
        return low, max(high, deep.rate_rps + deep.half_width_rps) if deep else high
    points = depths.points()
    half_width = found.half_width_rps
    low = min([low, *(rate - half_width for _, rate in points)])
    high = max([high, *(rate + half_width for _, rate in points)])
    if len(points) < 2 or points[-1][1] <= points[-2][1]:
        return low, high
    # 1/X = 1/C + k/Q, extrapolated to an infinite backlog.
    (some, slower), (more, faster) = points[-2:]
    inverse = (more / faster - some / slower) / (more - some) if more > some else 0.0
    if inverse > 0:
        high = max(high, min(1.3 * found.rate_rps, 1 / inverse) + half_width)
    return low, high


def _depends(depths: Depths) -> bool:
    return depths.top > DEEP or depths.gap(SHALLOW, DEEP) != 0


def _notes(depths: Depths, bracket: Bracket, found: ThroughputEstimate) -> tuple[str, ...]:
    metered = f"{found.rate_rps:.4g}/s"
    high = f"{bracket.high:.4g}/s" if bracket.high else "N"
    low = f"{bracket.low:.4g}/s" if bracket.low else "a rate below"
    noise = bracket.noise[0] if bracket.noise else "no reason kept"
    texts = {
        Flag.NOISY: f"{low} held in the end, but a trial below N failed ({noise})",
        Flag.ERRORS_BELOW: f"errors come below the {metered} that saturation reaches",
        Flag.LESS_SUSTAINED: f"{high} was not sustained, although {metered} complete in saturation",
        Flag.MORE_SUSTAINED: f"{low} was sustained, above the {metered} completed in saturation",
        Flag.ABOVE_UNDECIDED: "no rate above N was seen to fail in the time given",
        Flag.BELOW_UNDECIDED: "no rate below N was seen to hold in the time given",
        Flag.OBJECTIVE: f"the objective is the limit: {metered} complete in saturation, too late",
    }
    flags = bracket.flags | _unproven(bracket)
    notes = [texts[flag] for flag in Flag if flag in flags]
    if depths.bucket is not None:
        full_rps = depths.bucket.before_rps
        emptied = f"{full_rps:.4g}/s complete after a rest, until a limiter's bucket is empty"
        notes = [emptied, OF_EMPTY, *notes]
    if _depends(depths):
        points = [f"{rate:.4g}/s with {inside:.0f} in flight" for inside, rate in depths.points()]
        notes.append(f"capacity depends on the backlog: {', '.join(points)}")
    if depths.errors:
        kinds = ", ".join(f"{count} x {name}" for name, count in depths.errors.most_common(3))
        notes.append(f"errors in saturation: {kinds}")
    return tuple(notes)


def _unproven(bracket: Bracket) -> set[Flag]:
    """Return the flags of the sides that no trial has decided yet."""
    if bracket.flags & HARD:
        return set()
    below = {Flag.BELOW_UNDECIDED} if bracket.low is None else set()
    return below | ({Flag.ABOVE_UNDECIDED} if bracket.high is None else set())


def _more_time(rate: float, low: float, high: float) -> tuple[str, ...]:
    share = max(high - rate, rate - low) / rate
    if share <= WIDE:
        return ()
    return (f"known to within {100 * share:.0f} % only: four times the load time would halve that",)
