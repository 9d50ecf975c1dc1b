"""Meter: while every worker is busy, completions per second are the capacity.

1 ramp    a short closed loop finds saturation and the knee
2 meter   the number in flight is held in a band; completions are counted, shallow and deep in turn
3 below   a constant rate a little below must be sustained, from a drained state
4 meter   on, until the interval is narrow enough or the budget is spent
5 above   a constant rate a little above must diverge
6 state   they agree: the meter's rate and interval; they do not: the trials win, words say why
"""

from dataclasses import dataclass

from loadstone.search.curve import with_curve
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
LONE_S = 1.5
FULL_BUDGET_S = 285.0  # at which the lengths below are as they are
SMALL_BUDGET_S = 240.0
ENOUGH = 0.84  # of a full budget; the rest is for proofs that noise spoils
ENOUGH_SMALL = 0.95
WATCHED = 0.94  # of what is enough: slow noise shows itself only to who watches that long


@dataclass(frozen=True, slots=True)
class Lengths:
    """Seconds of each part."""

    chunk_s: float
    below_s: float
    above_s: float
    watch_s: float  # so much load even if the interval is narrow sooner
    enough_s: float  # and no more metering than so much

    @staticmethod
    def within(budget_s: float) -> "Lengths":
        """Fit the parts into a budget."""
        small = min(1.0, budget_s / FULL_BUDGET_S)
        enough_s = max(min(ENOUGH_SMALL * budget_s, SMALL_BUDGET_S), ENOUGH * budget_s)
        return Lengths(
            chunk_s=max(8.0, 15.0 * small),
            below_s=max(5.0, 60.0 * small),
            above_s=max(4.0, 40.0 * small),
            watch_s=WATCHED * enough_s,
            enough_s=enough_s,
        )


def meter(settings: Settings) -> Strategy:
    """Search by metering saturation, with a trial on either side as proof."""
    session = Session(settings)
    return with_curve(session, guarded(session, _search(session)))


def _search(session: Session) -> Strategy:
    lengths = Lengths.within(session.settings.budget_s)
    knee = yield from ramp(session)
    if not knee.is_saturated:
        return at_least(session.settings.ceiling_rps)
    depths = Depths(knee, knee.throughput_rps, knee.most_in_flight)
    sides = Sides(session, depths)
    if session.pace < 1:  # one longer chunk instead of two
        yield from depths.meter(session, lengths.chunk_s + LONE_S)
    else:
        for _ in range(2):
            yield from depths.meter(session, lengths.chunk_s)
    yield from sides.prove_below(lengths.below_s, lengths.above_s, lengths.chunk_s)
    reserve_s = lengths.chunk_s + lengths.above_s + 4 * DRAIN_S
    while session.left_s > reserve_s and _wants_more(session, lengths, sides):
        yield from depths.meter(session, lengths.chunk_s)
    if sides.high is None:
        yield from sides.prove_above(lengths.above_s)
    while _wants_more(session, lengths, sides):
        yield from depths.meter(session, _fitting_s(session, lengths))
    return state(depths, sides)


def _wants_more(session: Session, lengths: Lengths, sides: Sides) -> bool:
    if sides.is_limited or session.spent_s > lengths.enough_s - LEAST_CHUNK_S - DRAIN_S:
        return False
    return session.spent_s < lengths.watch_s or not sides.is_narrow


def _fitting_s(session: Session, lengths: Lengths) -> float:
    return min(lengths.chunk_s, lengths.enough_s - session.spent_s - DRAIN_S)
