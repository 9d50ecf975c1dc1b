"""Meter: while every worker is busy, completions per second are the capacity.

1 ramp    a short closed loop finds saturation and the knee
2 meter   the number in flight is kept in a band; completions are counted, shallow and deep in turn
3 below   a constant rate slightly below must be sustained, from a drained state
4 meter   until the interval is narrow enough or the budget is spent
5 above   a constant rate slightly above must diverge
6 state   if they agree: the meter's rate and interval; else the trials decide, with notes on why
"""

import contextlib
from dataclasses import dataclass, replace

from loadstone.plan.load import ClosedLoad
from loadstone.search.blocks import blocks
from loadstone.search.bracket import Bracket
from loadstone.search.curve import with_curve
from loadstone.search.depth import DEEP, SHALLOW, Depths, LevelChanged, RequestsRefused
from loadstone.search.errors import ask, checked, depend_on_load, doubted
from loadstone.search.guard import at_least, guarded
from loadstone.search.model import Capacity, Part, Strategy
from loadstone.search.posterior import posterior
from loadstone.search.ramp import Knee, ramp
from loadstone.search.refusal import Refusal, is_refusal
from loadstone.search.rest import Slowing, why_slower
from loadstone.search.session import Session
from loadstone.search.settings import SearchSettings
from loadstone.search.statement import changes, state

LEAST_CHUNK_S = 6.0
FULL_BUDGET_S = 285.0  # budget for which the lengths below are defined
SMALL_BUDGET_S = 240.0
ENOUGH = 0.84  # of a full budget; the rest is for repeating trials that fail by noise
ENOUGH_SMALL = 0.95
ENOUGH_CHANGED = 0.97
SHORTER = 0.4
# Budgets between them have one long trial first, instead of two shorter ones. In less, a long trial
# at depth leaves no time for the others.
SHORT_S = (45.0, 120.0)
FIRST_SHARE = 0.25  # of the budget
LAST_SHARE = 0.15  # of the budget, at least, for the trial at the end
FEW_S = 6.0
FEW = 10.0  # response times
CHANGING_S = 6.0  # around the instant of a change, known to a few blocks of 2 s
WITH_A_QUEUE = 4  # chunks, at two depths in turn, from which a collapsed rate is estimated
WATCH_S = 60.0  # slow noise and a change of the service are only seen in that time


@dataclass(frozen=True, slots=True)
class Lengths:
    """Seconds of each part."""

    first_s: float  # of metering, before anything is confirmed; 0: two chunks
    chunk_s: float
    below_s: float
    above_s: float
    watch_s: float  # of load, at least, even if the interval is narrow sooner
    enough_s: float  # maximum load for metering

    @staticmethod
    def within(budget_s: float) -> "Lengths":
        """Fit the parts into a budget."""
        small = min(1.0, budget_s / FULL_BUDGET_S)
        enough_s = max(min(ENOUGH_SMALL * budget_s, SMALL_BUDGET_S), ENOUGH * budget_s)
        return Lengths(
            first_s=FIRST_SHARE * budget_s if SHORT_S[0] <= budget_s < SHORT_S[1] else 0.0,
            chunk_s=max(8.0, 15.0 * small),
            below_s=max(5.0, 40.0 * small),
            above_s=max(4.0, 40.0 * small),
            watch_s=min(WATCH_S, enough_s),
            enough_s=enough_s,
        )

    def after_a_change(self, budget_s: float) -> "Lengths":
        """Return shorter confirming trials, to meter longer in case the service changes again."""
        enough_s = ENOUGH_CHANGED * budget_s
        return replace(
            self,
            below_s=SHORTER * self.below_s,
            above_s=SHORTER * self.above_s,
            watch_s=enough_s,
            enough_s=enough_s,
        )


def meter(settings: SearchSettings) -> Strategy:
    """Search by metering saturation, confirmed by a trial on either side."""
    session = Session(settings, doubts_errors=True)
    return with_curve(session, _without_errors(session, guarded(session, _search(session))))


def _without_errors(session: Session, body: Strategy) -> Strategy:
    """Withhold N if more errors than allowed come at any rate."""
    found = yield from body
    allowed = session.settings.error_share
    return checked(session.undisturbed, found, allowed, session.left_out)


def _search(session: Session) -> Strategy:
    knee = yield from ramp(session)
    if not knee.is_saturated:
        return at_least(session.settings.ceiling_rps)
    refused, metered = knee.refused, _Meter(session, knee)
    session.is_metered = True
    if refused is None or not is_refusal(refused, knee.response_s):
        try:
            return (yield from metered.run())
        except RequestsRefused as error:
            refused = error.trial
    if (yield from ask(session, refused)):
        tried = len(session.trials)
        found = yield from _whatever_fails(session, knee, metered)
        if found is not None:
            return found
        # The refusals of a full service say nothing of the errors at any rate.
        session.set_aside(session.trials[tried:])
    session.is_metered = False
    return (yield from Refusal(session, refused, knee).run())


def _whatever_fails(session: Session, knee: Knee, metered: "_Meter") -> Part[Capacity | None]:
    """Search without regard to errors; None: they depend on the load after all."""
    session.tolerates_errors = True
    if knee.refused is None:
        return (yield from metered.without_errors())
    # These errors ended the ramp before the service was full.
    full = yield from ramp(session)
    if not full.is_saturated:
        return at_least(session.settings.ceiling_rps)
    return (yield from _Meter(session, full).without_errors())


class SlowedByQueue(Exception):
    """The service is slower only while it has a queue."""


class _Meter:
    def __init__(self, session: Session, knee: Knee) -> None:
        self._session = session
        self._lengths = Lengths.within(session.settings.budget_s)
        # A single trial has a queue, in which a collapse and uneven servers show.
        begins = DEEP if self._lengths.first_s else SHALLOW
        self._depths = Depths(knee, knee.throughput_rps, knee.most_in_flight, begins=begins)
        self._bracket = Bracket(session, self._depths)
        session.so_far = self._state

    def run(self) -> Strategy:
        """Meter and confirm; start again when the service has changed."""
        has_changed = False
        while True:
            try:
                if has_changed:
                    yield from self._rest()
                yield from self._measure()
                return self._state()
            except LevelChanged:
                self._session.evidence.forget()
                self._session.since_s = self._depths.steps[-1].first_s + CHANGING_S
                self._bracket = Bracket(self._session, self._depths)
                has_changed = True
            except SlowedByQueue:
                return (yield from self._with_a_queue())

    def without_errors(self) -> Part[Capacity | None]:
        """Meter on where errors do not depend on the load: there is nothing to confirm.

        None: they do, as the metering shows.
        """
        session = self._session
        session.evidence.forget()  # trials that failed by these errors say nothing of N without
        self._bracket = Bracket(session, self._depths)
        while session.left_s > self._lengths.chunk_s + session.drain_s and (
            session.spent_s < self._lengths.watch_s or not self._is_narrow
        ):
            with contextlib.suppress(LevelChanged, RequestsRefused):
                yield from self._depths.meter(session, self._lengths.chunk_s)
            if depend_on_load(session.undisturbed):
                session.tolerates_errors = False
                return None
        return self._state()

    def _rest(self) -> Part[None]:
        """Determine why the service is slower; raises SlowedByQueue if its own queue is why."""
        depths = self._depths
        steps = depths.steps or [step for step in (depths.fell(),) if step]
        self._session.changes = changes(steps)
        if len(steps) != 1:
            return
        why = yield from why_slower(self._session, depths.knee, steps[0])
        if why is Slowing.CHANGE:
            return
        depths.steps, self._session.changes = [], ()
        if why is Slowing.BUCKET:
            depths.bucket = steps[0]
            self._session.since_s = self._session.spent_s
            return
        raise SlowedByQueue

    def _with_a_queue(self) -> Strategy:
        """Meter what is left with a queue; what it does without one is known."""
        session, depths = self._session, self._depths
        session.since_s, session.is_slowed_by_queue = 0.0, True
        depths.knee = replace(depths.knee, completed=0.0)  # its rate was no earlier capacity
        with contextlib.suppress(LevelChanged):
            few = ClosedLoad(depths.knee.in_flight, max(FEW_S, FEW * depths.knee.response_s))
            yield from session.run_trial(few, "few inside")
            while (
                depths.count < WITH_A_QUEUE
                and session.left_s > self._lengths.chunk_s + session.drain_s
            ):
                yield from depths.meter(session, self._lengths.chunk_s)
        depths.steps = []
        return self._state()

    def _measure(self) -> Part[None]:
        session, lengths = self._session, self._lengths
        depths, bracket = self._depths, self._bracket
        if depths.steps:  # less time is left, and all of it is needed
            lengths = lengths.after_a_change(session.settings.budget_s)
        if lengths.first_s and not depths.count:
            yield from depths.meter(session, lengths.first_s)
        else:
            while depths.count < 2 or depths.is_unconfirmed:
                yield from depths.meter(session, lengths.chunk_s)
        if depths.fell() is not None:
            yield from self._rest()
        yield from bracket.confirm_below(lengths.below_s, lengths.above_s, lengths.chunk_s)
        unclear = doubted(session.undisturbed, session.settings.error_share)
        if unclear is not None:
            raise RequestsRefused(unclear)
        # What is left after the trial above is one long trial at least.
        reserve_s = max(LAST_SHARE * session.settings.budget_s, lengths.chunk_s)
        reserve_s += lengths.above_s + 4 * session.drain_s
        while session.left_s > reserve_s and self._wants_more(lengths):
            yield from depths.meter(session, lengths.chunk_s)
        if bracket.high is None:
            yield from bracket.confirm_above(lengths.above_s, lengths.chunk_s)
        while self._wants_more(lengths):
            yield from depths.meter(session, _fitting_s(session, lengths))

    def _wants_more(self, lengths: Lengths) -> bool:
        session = self._session
        is_spent = session.spent_s > lengths.enough_s - LEAST_CHUNK_S - session.drain_s
        if self._bracket.is_limited or is_spent:
            return False
        return session.spent_s < lengths.watch_s or not self._is_narrow

    @property
    def _is_narrow(self) -> bool:
        """Whether the interval that would be stated is as narrow as requested, on both sides."""
        found = self._state()
        most_rps = self._session.settings.width * (found.rate_rps or 0.0)
        return found.reach_rps is not None and found.reach_rps <= most_rps

    def _state(self) -> Capacity:
        session = self._session
        # What a full bucket let pass is left out of the depths' pools only.
        has_bucket = self._depths.bucket is not None
        likely = None if has_bucket else posterior(blocks(session.trials, session.since_s))
        return state(self._depths, self._bracket, likely)


def _fitting_s(session: Session, lengths: Lengths) -> float:
    left_s = lengths.enough_s - session.spent_s - session.drain_s
    return left_s if left_s < lengths.chunk_s + LEAST_CHUNK_S else lengths.chunk_s
