"""Errors that do not depend on the load: as many at half the load as at all of it."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf
from statistics import NormalDist

from loadstone.analysis.interval import CONFIDENCE
from loadstone.analysis.judge import percent
from loadstone.analysis.model import Cause, Trial, TrialState
from loadstone.plan.load import OpenLoad
from loadstone.search.blocks import blocks
from loadstone.search.fit import MISFIT, chi_square, contradictions, fit
from loadstone.search.guard import CHANGED
from loadstone.search.model import Capacity, Part
from loadstone.search.outage import has_overflowed
from loadstone.search.posterior import posterior
from loadstone.search.session import Refusals, Session
from loadstone.search.statement import ALLOWANCE, UNSEEN

CALM = 0.6  # of the highest throughput: no queue explains errors at so little load
CONTROL = 0.55  # of it, in a trial that asks for errors at little load
LEAST_FAILED = 3  # at little load
WANTED = 8.0  # failures in that trial: with fewer, it hardly tells
MOST_LEFT = 0.6  # of the time that is left, for that trial
MOST_SHARE = 0.2  # of requests that fail: with more, the service is down or refuses
LEAST_RPS = 1.0
LEAST_TRIAL_S = 4.0
REST_S = 10.0  # before that trial: what a limiter counts of the load before would refuse in it
VARYING = 0.001  # chance at which shares of trials count as different
DIFFERENT = 0.01  # chance at which the shares of two loads count as different


@dataclass(frozen=True, slots=True)
class Errors:
    """Failed requests of some trials."""

    failed: int
    requests: int

    @property
    def share(self) -> float:
        """Share of the requests."""
        return self.failed / self.requests if self.requests else 0.0

    @property
    def interval(self) -> tuple[float, float]:
        """95 % interval of the share (Wilson)."""
        z2, n, share = NormalDist().inv_cdf((1 + CONFIDENCE) / 2) ** 2, self.requests, self.share
        middle = (share + z2 / (2 * n)) / (1 + z2 / n)
        half = math.sqrt(z2 * share * (1 - share) / n + (z2 / (2 * n)) ** 2) / (1 + z2 / n)
        return middle - half, middle + half

    def differs(self, other: "Errors") -> bool:
        """Whether chance hardly explains two shares: given their sum, one of them is binomial."""
        count = self.failed + other.failed
        share = self.requests / max(1, self.requests + other.requests)
        if not 0 < share < 1:
            return False
        chances = [_chance(some, count, share) for some in range(self.failed + 1)]
        at_most = sum(chances)
        return min(at_most, 1 - at_most + chances[-1]) < DIFFERENT / 2


def _chance(some: int, count: int, share: float) -> float:
    """Return the chance of `some` of `count` (binomial)."""
    ways = math.lgamma(count + 1) - math.lgamma(some + 1) - math.lgamma(count - some + 1)
    return math.exp(ways + some * math.log(share) + (count - some) * math.log1p(-share))


@dataclass(frozen=True, slots=True)
class ConstantErrors:
    """About the same share of errors in each trial, which may be more than is allowed."""

    calm: Errors
    busy: Errors
    calm_rps: float  # at most, of the trials at little load
    held: Errors  # in sustained trials
    allowed: float

    @property
    def every(self) -> Errors:
        """Errors of all trials."""
        return Errors(self.calm.failed + self.busy.failed, self.calm.requests + self.busy.requests)

    @property
    def is_seen(self) -> bool:
        """Whether requests failed at little load, too."""
        return self.calm.failed >= LEAST_FAILED

    @property
    def is_too_much(self) -> bool:
        """Whether more than the allowed share fails, at little load too, so that there is no N."""
        is_more = self.every.interval[0] > self.allowed and self.calm.share > self.allowed
        return self.is_seen and is_more

    @property
    def is_kept(self) -> bool:
        """Whether no more than the allowed share failed, or clearly so at sustained rates."""
        is_clear = bool(self.held.requests) and self.held.interval[1] <= self.allowed
        return is_clear or self.every.share <= self.allowed

    @property
    def note(self) -> str:
        """Sentence beside N if the share may be above the allowed one; else empty."""
        low, high = self.every.interval
        if high <= self.allowed:
            return ""
        return (
            f"{percent(self.every.share)} of requests failed ({percent(low)} to {percent(high)}), "
            f"about as many at any rate, and {percent(self.allowed)} are allowed: if it is more, "
            "there is no N"
        )

    def __str__(self) -> str:
        low, high = self.every.interval
        what = "do not depend on the load" if self.is_seen else "may not depend on the load"
        return (
            f"errors that {what}: {percent(self.every.share)} of requests ({percent(low)} to "
            f"{percent(high)}), {self.calm.failed} of {self.calm.requests:,} where up to "
            f"{self.calm_rps:.4g}/s completed, {self.busy.failed} of {self.busy.requests:,} where "
            f"more did; {self._conclusion}"
        )

    @property
    def _conclusion(self) -> str:
        if self.is_too_much:
            return f"no N exists for the allowed share of {percent(self.allowed)}"
        return (
            f"these are too few to tell whether an N exists for the allowed share of "
            f"{percent(self.allowed)}; a longer --budget tells more"
        )


def counted(trials: Sequence[Trial]) -> Errors:
    """Return the failed requests of trials."""
    requests = sum(trial.stats.ended for trial in trials)
    return Errors(sum(trial.stats.failed for trial in trials), requests)


def constant_errors(
    trials: Sequence[Trial], allowed: float, most_rps: float = inf
) -> ConstantErrors | None:
    """Return the errors, unless trials at little and at high load differ in their share.

    No more than `most_rps` completes, even if a bucket let more pass at first.
    """
    valid = [trial for trial in trials if trial.verdict.state is not TrialState.INVALID]
    highest_rps = max((trial.stats.throughput_rps for trial in valid), default=0.0)
    valid = [trial for trial in valid if not has_overflowed(trial, highest_rps)]
    calm_rps = CALM * min(highest_rps, most_rps)
    calm = counted([trial for trial in valid if trial.stats.throughput_rps <= calm_rps])
    busy = counted([trial for trial in valid if trial.stats.throughput_rps > calm_rps])
    held = counted([trial for trial in valid if trial.verdict.state is TrialState.SUSTAINED])
    found = ConstantErrors(calm, busy, calm_rps, held, allowed)
    is_few = found.every.failed < LEAST_FAILED
    # More errors at little load are no sign of a limit.
    has_more = busy.share > calm.share and calm.differs(busy)
    return None if is_few or has_more or depend_on_load(valid) else found


def _unbiased(trial: Trial) -> Errors:
    """Return the errors of a trial, without the one that stopped it: it came too early."""
    failed, requests = trial.stats.failed, trial.stats.ended
    is_stopped = trial.verdict.cause is Cause.ERRORS and failed > 0
    return Errors(failed - is_stopped, requests - is_stopped)


def _vary(trials: Sequence[Trial]) -> bool:
    """Whether chance hardly explains how much the shares of trials differ (Pearson)."""
    share = counted(trials).share
    each = [one for one in map(_unbiased, trials) if one.requests]
    if not 0 < share < 1 or len(each) < 2:
        return False
    squares = sum(
        (one.failed - share * one.requests) ** 2 / (share * (1 - share) * one.requests)
        for one in each
    )
    return squares > chi_square(len(each) - 1, VARYING)


def depend_on_load(trials: Sequence[Trial]) -> bool:
    """Whether the share of errors differs between trials, or is that of a service that refuses."""
    valid = [trial for trial in trials if trial.verdict.state is not TrialState.INVALID]
    return counted(valid).share > MOST_SHARE or _vary(valid)


def ask(session: Session, refused: Trial) -> Part[bool]:
    """Say whether errors come at little load, too; where it may be, a trial there tells."""
    allowed = session.settings.error_share
    errors = constant_errors(session.undisturbed, allowed)
    if errors is not None and errors.is_too_much:
        return True
    others = counted([trial for trial in session.undisturbed if trial is not refused])
    last, every = counted([refused]), counted(session.undisturbed)
    rate_rps = CONTROL * max(trial.stats.throughput_rps for trial in session.trials)
    if last.differs(others) or not 0 < every.share < MOST_SHARE:
        return False
    each_s = 1 / every.share / max(rate_rps, LEAST_RPS)
    seconds = min(WANTED * each_s, MOST_LEFT * session.left_s)
    if seconds < LEAST_FAILED * each_s:
        return True  # nothing shows that they depend on it, and no trial can
    load = OpenLoad(rate_rps, max(LEAST_TRIAL_S, seconds))
    names = [name for name, _ in refused.stats.errors]
    refusals = Refusals(names[0] if names else "an error", tolerates_errors=True)
    purpose = "as many errors at half the load?"
    yield from session.run_trial(load, purpose, pause_s=REST_S, refusals=refusals)
    return constant_errors(session.undisturbed, allowed) is not None


def checked(
    trials: Sequence[Trial], found: Capacity, allowed: float, refused: Sequence[Trial] = ()
) -> Capacity:
    """Return the capacity; without N if more errors than allowed come at any rate, or may come.

    At the rate that completes in `refused`, the service or a limiter before it refuses requests: a
    load near it is not little.
    """
    least_rps = min((one.stats.throughput_rps for one in refused if one.stats.failed), default=inf)
    errors = constant_errors(trials, allowed, least_rps)
    if errors is None:
        return found
    if errors.is_kept:
        note = (errors.note,) if errors.note and found.rate_rps is not None else ()
        return replace(found, words=(*found.words, *note))
    facts = contradictions(fit(blocks(trials)))
    if facts:
        more: tuple[str, ...] = (f"{MISFIT}: {'; '.join(facts)}",)
    else:
        more = _without(trials, errors.every.share)
    # What the search said of rates was said of rates that failed by these errors.
    more += tuple(one for one in found.words if one.startswith(CHANGED))
    cause = Cause.ERRORS if errors.is_too_much else Cause.INCONSISTENT
    return Capacity(None, None, None, 0.0, (str(errors), *more), causes=(cause,))


def _without(trials: Sequence[Trial], share: float) -> tuple[str, ...]:
    """Say what N is by the saturated seconds of all trials, whatever failed."""
    likely = posterior(blocks(trials))
    if likely is None:
        return ()
    # Failed requests are served, too, and blocks count the others.
    rate, low, high = (
        rps / (1 - share) for rps in (likely.rate_rps, likely.low_rps, likely.high_rps)
    )
    within = f"{low - UNSEEN * rate:.4g} to {high + ALLOWANCE * rate:.4g}"
    return (f"without these errors, N is {rate:.4g}/s ({within})",)


def doubted(trials: Sequence[Trial], allowed: float) -> Trial | None:
    """Return the trial with most errors, if nothing tells whether they depend on the load."""
    errors = constant_errors(trials, allowed)
    if errors is None or errors.is_kept:
        return None
    return max(trials, key=lambda one: one.stats.failed)
