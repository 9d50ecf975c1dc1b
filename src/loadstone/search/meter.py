"""Meter: while every worker is busy, completions per second are the capacity.

1 ramp    a short closed loop finds saturation and the knee
2 meter   the number in flight is held in a band; completions are counted, shallow and deep in turn
3 below   a constant rate a little below must be sustained, from a drained state
4 meter   on, until the interval is narrow enough or the budget is spent
5 above   a constant rate a little above must diverge
6 state   they agree: the meter's rate and interval; they do not: the trials win, words say why
"""

from dataclasses import dataclass

from loadstone.search.depth import Depths
from loadstone.search.guard import at_least, guarded
from loadstone.search.model import Strategy
from loadstone.search.ramp import ramp
from loadstone.search.session import Session
from loadstone.search.settings import Settings
from loadstone.search.sides import Sides
from loadstone.search.statement import state

DRAIN_S = 4.0  # after a trial, for outstanding requests
LEAST_CHUNK_S = 6.0
FULL_BUDGET_S = 285.0  # at which the lengths below are as they are


@dataclass(frozen=True, slots=True)
class Lengths:
    """Seconds of each part."""

    chunk_s: float = 15.0
    least_metered_s: float = 30.0
    most_metered_s: float = 150.0
    below_s: float = 60.0
    above_s: float = 40.0

    @staticmethod
    def within(budget_s: float) -> "Lengths":
        """Fit the parts into a budget."""
        share = budget_s / FULL_BUDGET_S
        small = min(1.0, share)
        return Lengths(
            chunk_s=max(8.0, 15.0 * small),
            least_metered_s=max(14.0, 30.0 * small),
            most_metered_s=150.0 * max(1.0, share * 1.2),
            below_s=max(16.0, 60.0 * small),
            above_s=max(10.0, 40.0 * small),
        )


def meter(settings: Settings) -> Strategy:
    """Search by metering saturation, with a trial on either side as proof."""
    session = Session(settings)
    return guarded(session, _search(session))


def _search(session: Session) -> Strategy:
    lengths = Lengths.within(session.settings.budget_s)
    knee = yield from ramp(session)
    if not knee.is_saturated:
        return at_least(session.settings.ceiling_rps)
    depths = Depths(knee, knee.throughput_rps, knee.most_in_flight)
    sides = Sides(session, depths)
    for _ in range(2):
        yield from depths.meter(session, lengths.chunk_s)
    yield from sides.prove_below(lengths.below_s, lengths.above_s, lengths.chunk_s)
    reserve_s = lengths.chunk_s + lengths.above_s + 2 * DRAIN_S
    while session.left_s > reserve_s and _wants_more(depths, lengths, sides):
        yield from depths.meter(session, lengths.chunk_s)
    if sides.high is None:
        yield from sides.prove_above(lengths.above_s)
    while session.left_s > LEAST_CHUNK_S + DRAIN_S and _wants_more(depths, lengths, sides):
        yield from depths.meter(session, min(lengths.chunk_s, session.left_s - DRAIN_S))
    return state(depths, sides)


def _wants_more(depths: Depths, lengths: Lengths, sides: Sides) -> bool:
    seconds = depths.pool.seconds
    if seconds >= lengths.most_metered_s:
        return False
    return seconds < lengths.least_metered_s or not sides.is_narrow
