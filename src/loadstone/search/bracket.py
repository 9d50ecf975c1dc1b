"""Confirms N by constant rates: one slightly below must be sustained, one slightly above not."""

import math
from enum import StrEnum

import numpy as np

from loadstone.analysis.backlog import NEARLY
from loadstone.analysis.model import Cause, Trial, TrialState
from loadstone.plan.load import OpenLoad
from loadstone.search.confirmation import (
    PATIENCE_S,
    height_s,
    plan_confirmation,
    power,
)
from loadstone.search.depth import DEEP, Depths, RequestsRefused
from loadstone.search.model import Part
from loadstone.search.pool import ThroughputEstimate, estimate
from loadstone.search.session import Session

ATTEMPTS = 3  # below N, because a noise burst may fail one
LEAST_FAILURES = 2  # failures below N that contradict the meter
PATIENCE = 3.0  # times the height, and seconds, before a trial below N is stopped
RESERVE_S = 8.0  # for outstanding requests
RESERVE_SHARE = 0.06  # of a small budget
METERED_RESERVE_S = 4.0
SHORTEST_S = 4.0
LEAST_METERED_S = 6.0
STEP = 0.03  # first step down if no rate below N is sustained
FAR_STEP = 0.15  # the same if latency is the limit
STEP_GROWTH = 1.6
LONGEST_STEP = 0.3
DESCENT_S = 30.0
BRACKET = 0.03  # of the rate: narrow enough
SURE = 2.0  # least power in sigmas for a sustained trial above the estimate to count
UNKNOWN_DISPERSION = 0.3
LEAST_DISPERSION = 0.02
WIDEST = 0.25


class Flag(StrEnum):
    """Qualifications of N."""

    NOISY = "noisy"  # a trial below N failed, another one held
    ERRORS_BELOW = "errors-below-saturation"
    LESS_SUSTAINED = "sustained-below-saturation"
    MORE_SUSTAINED = "sustained-above-saturation"
    ABOVE_UNDECIDED = "above-undecided"
    BELOW_UNDECIDED = "below-undecided"
    OBJECTIVE = "objective"  # steady, but too slow for the user's objective


class Bracket:
    """The highest rate that was sustained, the lowest that was not, and the reasons."""

    def __init__(self, session: Session, depths: Depths) -> None:
        self._session = session
        self._depths = depths
        self.low: float | None = None
        self.high: float | None = None
        self.steady: float | None = None  # the highest rate above the meter's, sustained twice
        self.passed: float | None = None  # the highest rate above the meter's, sustained once
        # Throughput of the only trial below, if it was not sustained.
        self.spoiled: float | None = None
        # A few failures in the sustained trial below, or too many in the trial above.
        self.has_failures = False
        self.flags: set[Flag] = set()
        self.reasons: tuple[str, ...] = ()
        self.noise: tuple[str, ...] = ()  # why a trial below N failed before another held

    @property
    def known(self) -> ThroughputEstimate:
        """The meter's estimate, with the noise that open-loop trials add."""
        found = estimate(self._depths.pool)
        extra = self._session.settings.arrival_dispersion
        if found is None:
            rate = self._depths.rate_rps
            return ThroughputEstimate(rate, 0.1 * rate, UNKNOWN_DISPERSION + extra)
        half_width = min(found.half_width_rps, WIDEST * found.rate_rps)
        noise = max(found.dispersion, LEAST_DISPERSION) + extra
        return ThroughputEstimate(found.rate_rps, half_width, noise)

    @property
    def estimate(self) -> tuple[str, ...]:
        """The note on N from before any trial at a constant rate."""
        return self._session.estimate

    @property
    def _reserve_s(self) -> float:
        reserve_s = min(RESERVE_S, RESERVE_SHARE * self._session.settings.budget_s)
        return reserve_s + self._session.wait_s

    @property
    def is_limited(self) -> bool:
        """Whether something other than saturation limits the rate, so more metering is useless."""
        return bool(self.flags & {Flag.ERRORS_BELOW, Flag.OBJECTIVE})

    @property
    def held_rps(self) -> float | None:
        """The highest rate that was sustained, above the meter's twice."""
        return max((one for one in (self.low, self.steady) if one is not None), default=None)

    @property
    def is_at_ceiling(self) -> bool:
        """Whether the highest rate that may be offered was sustained twice."""
        return self.steady == self._session.settings.ceiling_rps

    def confirm_below(self, longest_s: float, above_s: float, chunk_s: float) -> Part[None]:
        """Find a sustained rate slightly below N; only several failures contradict the meter."""
        rate_rps = math.inf
        failed = 0
        for attempt in range(ATTEMPTS):
            known = self.known
            if self._session.left_s < SHORTEST_S + self._reserve_s:
                self.flags.add(Flag.BELOW_UNDECIDED)
                return
            most_s = min(longest_s, self._session.left_s - self._reserve_s)
            terms = plan_confirmation(known, most_s, may_be_short=False)
            if terms.distance >= 1:  # too few requests fit in what time is left to tell any rate
                self.flags.add(Flag.BELOW_UNDECIDED)
                return
            rate_rps = min(rate_rps, known.rate_rps * (1 - terms.distance))
            purpose = "must hold: a little below"
            trial = yield from self._patient(rate_rps, purpose, terms.seconds, terms.height_s)
            begin_s = self._session.spent_s - trial.spent_s  # of the last attempt
            if self._record_below(trial, rate_rps):
                return
            if trial.verdict.cause is Cause.ERRORS:
                raise RequestsRefused(trial)
            failed += trial.verdict.state is TrialState.DEGRADED
            needed_s = longest_s + above_s + 2 * chunk_s
            is_last = attempt == ATTEMPTS - 1 or self._session.left_s < needed_s
            if is_last or trial.verdict.cause is Cause.OBJECTIVE:
                break
            self._require_level(trial, begin_s)
            for _ in range(2):
                yield from self._depths.meter(self._session, chunk_s)
        if failed < LEAST_FAILURES and self._record_spoiled(trial, begin_s):
            return
        if not self.is_limited:
            self.flags.add(Flag.LESS_SUSTAINED)
        self._require_level(trial, begin_s)
        yield from self._descend(rate_rps)

    def _require_level(self, trial: Trial, begin_s: float) -> None:
        """Raise LevelChanged if a failed trial shows that the service became slower."""
        if trial.verdict.cause in (Cause.OVERLOAD, Cause.DRIFT):
            self._depths.add(trial, begin_s, self._session.settle_s, is_counted=False)

    def _record_spoiled(self, trial: Trial, begin_s: float) -> bool:
        """Record the last trial below, if at most one failed; return whether it is inconclusive.

        Noise may have failed it, so its completions are metered; an undecided trial contradicts
        nothing.
        """
        is_overloaded = trial.verdict.cause in (Cause.OVERLOAD, Cause.DRIFT)
        if not is_overloaded and trial.verdict.state is not TrialState.UNDECIDED:
            return False
        self.flags.add(Flag.BELOW_UNDECIDED)
        self.high, self.reasons = None, ()
        if is_overloaded:
            self.spoiled = trial.stats.throughput_rps
            self._depths.add(trial, begin_s, self._session.settle_s)
        return True

    def confirm_above(self, longest_s: float, chunk_s: float) -> Part[None]:
        """Find a rate slightly above N that is not sustained; two sustained trials contradict N.

        After a sustained one the service is metered again, because it may have become faster.
        """
        if self.high is not None:
            return
        known = self.known
        terms = plan_confirmation(known, longest_s)
        step, passes = terms.distance, 0
        while self._session.left_s > SHORTEST_S + self._reserve_s:
            rate_rps = min(known.rate_rps * (1 + step), self._session.settings.ceiling_rps)
            seconds = min(terms.seconds, self._session.left_s - self._reserve_s)
            height = height_s(self.known.rate_rps, step, seconds)
            load = OpenLoad(rate_rps, seconds)
            purpose = "must fail: a little above"
            trial = yield from self._session.run_trial(load, purpose, height, height)
            begin_s = self._session.spent_s - trial.spent_s  # of the last attempt
            if trial.verdict.state is TrialState.DEGRADED:
                is_clear = passes == 0 and self.steady is None
                self._record_above(trial, rate_rps, begin_s, is_clear=is_clear)
                break
            is_steady = trial.verdict.state is TrialState.SUSTAINED
            if not is_steady or power(known, step, seconds) < SURE:
                break
            passes += 1
            self.passed = rate_rps
            if passes == 2:
                self.steady, passes, step = rate_rps, 0, 1.5 * step + 0.005
                if self.is_at_ceiling:
                    break
                continue
            # With little time left, metering is more informative than the same rate once more.
            most_s = self._session.left_s - METERED_RESERVE_S - self._session.wait_s
            if most_s >= LEAST_METERED_S:
                yield from self._depths.meter(self._session, min(chunk_s, most_s))
        self._weigh()

    def _record_above(
        self, trial: Trial, rate_rps: float, begin_s: float, *, is_clear: bool
    ) -> None:
        self.high = rate_rps
        self.reasons = trial.verdict.reasons
        self.has_failures |= trial.stats.failed > 0
        # Completions of an overloaded trial count as metered.
        if is_clear and self._depths.top == DEEP and trial.verdict.cause is not Cause.ERRORS:
            self._depths.add(trial, begin_s, self._session.settle_s)

    def _weigh(self) -> None:
        if self.high is None:
            self.flags.add(Flag.ABOVE_UNDECIDED)
        # A bucket that fills while the service drains lets more pass than it sustains.
        is_lasting = self._depths.bucket is None
        if is_lasting and self.steady is not None and self.steady > self._highest_plausible():
            self.flags.add(Flag.MORE_SUSTAINED)
            self.low = self.steady

    def _record_below(self, trial: Trial, rate_rps: float) -> bool:
        """Record a trial below; return whether it settles that side."""
        if trial.verdict.state is TrialState.SUSTAINED:
            if self.high is not None:
                self.flags = {Flag.NOISY}
                self.noise, self.reasons = self.reasons, ()
            self.low, self.high = rate_rps, None
            self.has_failures = trial.stats.failed > 0
            return True
        if trial.verdict.state is TrialState.DEGRADED:
            self.high = rate_rps
            self.reasons = trial.verdict.reasons
        if trial.verdict.cause is Cause.ERRORS:
            self.flags.add(Flag.ERRORS_BELOW)
        elif trial.verdict.cause is Cause.OBJECTIVE:
            self.flags.add(Flag.OBJECTIVE)
        return False

    def _patient(self, rate_rps: float, purpose: str, seconds: float, height: float) -> Part[Trial]:
        # Below capacity a backlog by noise may drain again, so the trial is judged at its end.
        patience_s = max(PATIENCE * height, PATIENCE_S)
        load = OpenLoad(rate_rps, seconds)
        return (yield from self._session.run_trial(load, purpose, patience_s, height / NEARLY))

    def _descend(self, rate_rps: float) -> Part[None]:
        """Step down to a sustained rate, then bisect the bracket while there is time."""
        step = FAR_STEP if Flag.OBJECTIVE in self.flags else STEP
        while self._session.left_s > DESCENT_S / 2 + RESERVE_S and not self._is_bracketed:
            if self.low is None or self.high is None:
                rate_rps *= 1 - step
                step = min(LONGEST_STEP, step * STEP_GROWTH)
            else:
                rate_rps = (self.low + self.high) / 2
            seconds = min(DESCENT_S, self._session.left_s - RESERVE_S)
            height = height_s(self.known.rate_rps, STEP, seconds)
            trial = yield from self._patient(rate_rps, "step down", seconds, height)
            begin_s = self._session.spent_s - trial.spent_s  # of the last attempt
            if trial.verdict.state is TrialState.SUSTAINED:
                self.low = rate_rps
            elif trial.verdict.state is TrialState.DEGRADED:
                self.high = rate_rps
                self.reasons = trial.verdict.reasons
                self._require_level(trial, begin_s)
            elif self.low is not None:
                return

    @property
    def _is_bracketed(self) -> bool:
        if self.low is None or self.high is None:
            return False
        return self.high - self.low <= BRACKET * self.high

    def _highest_plausible(self) -> float:
        """The upper end of the meter's interval, or the rate without disturbances."""
        known = self.known
        blocks = self._depths.pool.blocks(1.0)
        quiet = float(np.median(np.concatenate(blocks))) if blocks else 0.0
        return max(known.rate_rps + 2 * known.half_width_rps, 1.005 * quiet)
