"""Brackets, then bisects, with the help of capacity estimates from overloaded trials."""

import math
from dataclasses import replace

from loadstone.analysis.model import Cause, Trial, TrialState
from loadstone.plan.load import OpenLoad
from loadstone.search.confirmation import ROOM, SIGMAS, height_s, least_height_s
from loadstone.search.curve import with_curve
from loadstone.search.guard import at_least, guarded, no_more_than
from loadstone.search.model import Capacity, CapacityKind, Part, Strategy
from loadstone.search.pool import Pool, ThroughputEstimate, estimate, overloaded
from loadstone.search.ramp import Knee, ramp
from loadstone.search.session import Session
from loadstone.search.settings import SearchSettings

FIRST_DISTANCE = 0.08
SHORTEST_S = 8.0
LONGEST_S = 60.0
RESERVE_S = 4.0  # for outstanding requests
DISPERSION = 0.3  # assumed before a measurement
NEAR = 0.25  # of the bracket: estimates closer to its ends are moved to this distance
LEAST_POOL_S = 10.0  # saturated seconds from which an estimate is better than the middle
BLUR = 3.0  # sigmas; with fewer the coverage is below the stated confidence
KINDS: dict[Cause | None, CapacityKind] = {
    Cause.OBJECTIVE: CapacityKind.OBJECTIVE,
    Cause.ERRORS: CapacityKind.REFUSAL,
}
CONFIDENCE = 0.8  # 76 to 100 % over families of simulated services, docs/methodology.md


def bisect(settings: SearchSettings) -> Strategy:
    """Search by bisection on the verdicts of trials."""
    session = Session(settings, doubts_errors=True)
    return with_curve(session, guarded(session, _search(session)))


def _search(session: Session) -> Strategy:
    knee = yield from ramp(session)
    if not knee.is_saturated:
        return at_least(session.settings.ceiling_rps)
    return (yield from _Bisection(session, knee).run())


class _Bisection:
    def __init__(self, session: Session, knee: Knee) -> None:
        self._session = session
        self._knee = knee
        reached_rps = knee.throughput_rps
        self._known = ThroughputEstimate(reached_rps, 0.1 * reached_rps, DISPERSION)
        self._pool = Pool()
        self._low: float | None = None
        self._high: float | None = None
        self._reasons: tuple[str, ...] = ()
        self._cause: Cause | None = None  # of the last failure
        self._is_undecided = False
        self._unnoticed = 0.0
        session.so_far = self._state

    def run(self) -> Strategy:
        """Try rates until the bracket is narrow or the budget spent."""
        while not self._is_done():
            rate_rps = self._next_rps()
            if rate_rps >= self._session.settings.ceiling_rps and self._low == rate_rps:
                return at_least(rate_rps)
            yield from self._try(rate_rps)
        return self._state()

    def _is_done(self) -> bool:
        if self._is_undecided or self._session.left_s < SHORTEST_S + RESERVE_S:
            return True
        if self._low is None or self._high is None:
            return False
        return self._high - self._low <= self._session.settings.width * self._high

    def _next_rps(self) -> float:
        guess = self._known.rate_rps
        if self._low is not None and self._high is not None:
            width = self._high - self._low
            return min(max(guess, self._low + NEAR * width), self._high - NEAR * width)
        if self._high is not None:
            return min(guess, self._high) * (1 - FIRST_DISTANCE)
        above = max(guess, self._low or 0.0) * (1 + FIRST_DISTANCE)
        return min(above, self._session.settings.ceiling_rps)

    def _try(self, rate_rps: float) -> Part[None]:
        distance = FIRST_DISTANCE
        if self._low is not None and self._high is not None:
            distance = (self._high - self._low) / self._high / 2
        # Long enough for the backlog to move by much more than six requests and its random walk.
        noise = self._known.dispersion + self._session.settings.arrival_dispersion
        walk_s = noise / self._known.rate_rps * (SIGMAS / distance) ** 2
        least_s = least_height_s(self._known.rate_rps)
        wanted_s = max(ROOM * least_s / distance, walk_s)
        most_s = min(LONGEST_S, self._session.left_s - RESERVE_S)
        seconds = min(most_s, max(SHORTEST_S, wanted_s))
        height = height_s(self._known.rate_rps, distance, seconds)
        trial = yield from self._session.run_trial(
            OpenLoad(rate_rps, seconds), "bisect", alarm_s=height, rise_s=height
        )
        if trial.verdict.state is TrialState.SUSTAINED:
            # A trial of this length does not detect overload of less than this share.
            self._unnoticed = height / seconds
        self._learn(trial, rate_rps)

    def _learn(self, trial: Trial, rate_rps: float) -> None:
        match trial.verdict.state:
            case TrialState.SUSTAINED:
                self._low = rate_rps
            case TrialState.DEGRADED:
                self._high = rate_rps
                self._reasons, self._cause = trial.verdict.reasons, trial.verdict.cause
            case TrialState.UNDECIDED | TrialState.INVALID:
                self._is_undecided = True
        self._pool += overloaded(trial.timeline, self._knee.in_flight, self._session.settle_s)
        found = estimate(self._pool)
        if found is not None:
            self._known = replace(found, dispersion=max(found.dispersion, 0.02))

    def _state(self) -> Capacity:
        if self._low is None and self._high is None:
            notes = ("no rate was tried for long enough to be judged: a longer budget would tell",)
            return Capacity(None, None, None, 0.0, notes)
        if self._low is None:
            high = self._high or self._knee.throughput_rps
            if self._cause in (Cause.OVERLOAD, Cause.DRIFT):
                # Noise may have caused the failures, and this rate completed in saturation.
                high = max(high, self._known.rate_rps + self._known.half_width_rps)
            return no_more_than(high, self._reasons)
        if self._high is None:
            notes = (f"at least {self._low:.4g}/s: no rate above it was tried long enough",)
            return Capacity(self._low, self._low, None, CONFIDENCE, notes)
        low, high = sorted((self._low * (1 - self._unnoticed), self._high))
        kind = KINDS.get(self._cause, CapacityKind.SATURATION)
        middle = min(max(self._known.rate_rps, low), high)
        # What a full service completes says nothing of an objective or of refusals.
        if self._pool.seconds < LEAST_POOL_S or kind is not CapacityKind.SATURATION:
            middle = (low + high) / 2
        low, high = low - self._blur(low), high + self._blur(high)
        found = Capacity(middle, low, high, CONFIDENCE, kind=kind)
        if not self._is_undecided:
            return found
        return replace(found, words=("too near to the capacity to tell in the time given",))

    def _blur(self, rate_rps: float) -> float:
        """Return the distance at which one trial may put a rate on the wrong side of N."""
        noise = self._known.dispersion + self._session.settings.arrival_dispersion
        return BLUR * rate_rps * math.sqrt(noise / (self._known.rate_rps * LONGEST_S))
