"""Finds saturation: raises the workers of a closed loop until throughput stops rising."""

import math
from dataclasses import dataclass, replace

from loadstone.analysis.alarm import SETTLED_S, chance_of
from loadstone.analysis.judge import ERROR_CHANCE, JUDGED_SHARE, MOST_UNNOTICED
from loadstone.analysis.model import TICK_S, Stats, Trial, TrialState
from loadstone.engine.samples import Outcome
from loadstone.plan.load import ClosedLoad, OpenLoad
from loadstone.search.confirmation import NEAREST, PATIENCE_S, height_s, least_height_s
from loadstone.search.model import Part
from loadstone.search.outage import TIMEOUT_S, is_deliberate
from loadstone.search.session import (
    LONGEST_WAIT_S,
    NOT_MET,
    SLOW_S,
    BudgetSpent,
    ConnectionsWereLimit,
    OnlyErrors,
    Session,
    WaitWasLimit,
)
from loadstone.search.settings import FIRST_CONNECTIONS

FIRST_RPS = 4.0
FIRST_S = 1.5
STEP = 4
REQUESTS = 40  # target per step, within its shortest and longest length
SHORTEST_S = 2.0
LONGEST_S = 4.0
RESPONSES = 3.0  # response times that a step lasts at least
SLOW_RESPONSES = 2.0  # the same if responses are slow
# Unloaded, so a step with one worker would show nothing new.
ALONE_S = 0.2
ALIKE = 1.3  # ratio of the slowest to the median response below which nothing queued
GROWTH = 1.10  # less than this for four times the workers: saturated
QUEUEING = 4.0  # response time over the unloaded one that only a queue explains
# The same if responses are slow: even a short queue of them takes long to drain.
SLOW_QUEUEING = 2.0
NOT_QUEUEING = 1.5  # response time over the unloaded one up to which nothing queued
MOST_UNEVEN = 1.25  # ratio of the throughput within a step to that of the step and its last answers
LEAST_GROWTH = 1.5  # of the workers: a smaller step shows no growth of the throughput
REFUSALS = 0.1  # share of errors that indicates a full queue, not a few bad requests
NEAR_CEILING = 0.9  # of the highest rate allowed
CEILING_S = 12.0
CEILING_SHARE = 0.2  # of the budget, for the trial that confirms the ceiling
RAMP_SHARE = 0.3  # of the budget
USABLE = 0.75  # of the number in flight up to which no error was seen


@dataclass(frozen=True, slots=True)
class Knee:
    """Where throughput stops rising."""

    throughput_rps: float
    response_s: float  # unloaded
    most_in_flight: float  # more brings errors
    is_saturated: bool  # False: the ceiling was sustained
    completed: float = 0.0  # requests that the throughput was computed from
    at_s: float = 0.0  # time of the search's load
    refused: Trial | None = None  # the step in which requests were refused

    @property
    def in_flight(self) -> int:
        """Number in flight that keeps every worker busy (Little's law, with a quarter to spare)."""
        return max(2, math.ceil(1.25 * self.throughput_rps * self.response_s))


@dataclass(frozen=True, slots=True, order=True)
class Throughput:
    """Completions per second, and their number."""

    rate_rps: float
    completed: float


def ramp(session: Session) -> Part[Knee]:
    """Return the knee; ends early at the ceiling."""
    response_s, workers, refused = yield from _first_look(session)
    workers = min(workers, session.settings.max_connections)
    if refused is not None:
        reached = throughput(refused, response_s)
        rate_rps = max(reached.rate_rps, _least_rps(refused))
        return Knee(rate_rps, response_s, math.inf, True, refused=refused)
    ceiling_rps = session.settings.ceiling_rps
    best = Throughput(0.0, 0.0)
    before = 0
    while True:
        # The most that so many workers may complete.
        upper_rps = min(workers / response_s, STEP * best.rate_rps or math.inf)
        if upper_rps > ceiling_rps:
            return (yield from _at_ceiling(session, response_s))
        load = ClosedLoad(workers, _step_s(session, workers, response_s))
        trial = yield from session.run_trial(load, f"ramp: {workers} at a time")
        if workers == 1 and trial.stats.ok:
            response_s = trial.stats.service.mean_s
        reached = throughput(trial, response_s)
        if session.response_s:
            reached = _of_slow(trial, reached)
        rate_rps = reached.rate_rps
        refuses = _refuses(session, trial)
        # The load could not or must not be faster; fast refusals do not count as the ceiling.
        if not refuses and (trial.ceiling or rate_rps > NEAR_CEILING * ceiling_rps):
            return (yield from _at_ceiling(session, response_s))
        more = _next_workers(session, workers, response_s)
        queued = workers / max(rate_rps * response_s, 1e-9)  # response time over the unloaded one
        is_flat = rate_rps < GROWTH * best.rate_rps and workers >= LEAST_GROWTH * before
        stops = is_flat or _is_queueing(session, workers, queued, None if more == workers else more)
        best = max(reached, best)
        session.estimate = _estimate(session, best, workers, before, is_rising=not stops)
        if stops or refuses:
            most = USABLE * workers / STEP if refuses else math.inf
            refused = trial if refuses else None
            at_s = session.spent_s
            rate_rps = max(best.rate_rps, _least_rps(trial))
            return Knee(rate_rps, response_s, most, True, best.completed, at_s, refused)
        if more is None:
            # A longer budget does not shorten the wait.
            step_s = _step_s(session, STEP * workers, response_s)
            raise BudgetSpent if session.left_s < step_s + LONGEST_WAIT_S else WaitWasLimit
        if more == workers:
            raise ConnectionsWereLimit(trial, workers)
        before, workers = workers, more


def _refuses(session: Session, trial: Trial) -> bool:
    """Return whether more fails than errors that are allowed, or come at any load, explain."""
    stats = trial.stats
    if session.tolerates_errors or stats.failed <= REFUSALS * stats.due:
        return False
    return chance_of(stats.failed, session.settings.error_share * stats.due) < ERROR_CHANCE


def _least_rps(trial: Trial) -> float:
    """Return the rate of one request per trial, for a trial without a success."""
    return 1 / trial.stats.load_s


def _is_queueing(session: Session, workers: int, queued: float, more: int | None) -> bool:
    """Return whether requests queue, so that more of them would not complete faster.

    A short queue is enough if more requests are not allowed, or would not be answered in the time
    that is left (`more` is None), or if the ramp has used enough of the budget.
    """
    if queued > (SLOW_QUEUEING if session.response_s else QUEUEING):
        return True
    # Where responses are slow, but nothing queues, the service is not saturated yet.
    is_fast = not session.response_s and workers > STEP
    is_long = is_fast and session.spent_s > RAMP_SHARE * session.settings.budget_s
    return queued > NOT_QUEUEING and (more is None or is_long)


def _estimate(
    session: Session, best: Throughput, workers: int, before: int, *, is_rising: bool
) -> tuple[str, ...]:
    """Return the note on N if the search ends here; `before`: workers of the step before, or 0."""
    rate_rps = min(best.rate_rps, session.ended_rps)
    source = f"this is the throughput with {workers} requests in flight"
    if not rate_rps:
        return ()
    if session.settings.has_objectives:  # this rate need not meet them
        return (f"{NOT_MET}; throughput with {workers} requests in flight is {rate_rps:.3g}/s",)
    if is_rising:
        rising = ", and it was still rising" if before else ""  # one step shows no growth
        return (f"N is about {rate_rps:.3g}/s or more: {source}{rising}",)
    return (f"N is about {rate_rps:.3g}/s, not confirmed: {source}",)


def _next_workers(session: Session, workers: int, response_s: float) -> int | None:
    """Return the next number of workers; None: more would not be answered in the time left.

    The same number again: no more connections are allowed.
    """
    most = session.settings.max_connections
    # Try the default number before opening more connections.
    more = STEP * workers
    is_enough = LEAST_GROWTH * workers <= FIRST_CONNECTIONS
    more = min(FIRST_CONNECTIONS if is_enough and more > FIRST_CONNECTIONS else more, most)
    answered = math.floor(session.most_in_flight(_step_s(session, more, response_s)))
    if answered < min(more, LEAST_GROWTH * workers):
        return None
    return min(more, answered)


def _first_look(
    session: Session,
) -> Part[tuple[float, int, Trial | None]]:
    """Return the unloaded response time, the first number of workers, and the trial if refused.

    It is refused if a limiter allows even fewer requests than the first rate.
    """
    ceiling_rps = session.settings.ceiling_rps
    first = OpenLoad(min(FIRST_RPS, ceiling_rps), session.pace * FIRST_S)
    trial = yield from session.run_trial(first, "does it answer")
    stats = trial.stats
    if stats.ok and is_deliberate(trial):
        return stats.service.mean_s, 1, trial
    if stats.due and stats.ok <= stats.due // 2:
        if not _have_waited(stats):
            raise OnlyErrors(*stats.error_texts)
        session.estimate = (
            f"the service answered {stats.ok} of the first {stats.due} requests in "
            f"{TIMEOUT_S:.0f} s: the others may have waited for these",
        )
        raise WaitWasLimit
    response_s = stats.service.mean_s if stats.ok else 1 / FIRST_RPS
    if response_s < ALONE_S:
        return response_s, 1, None
    if response_s < SLOW_S or stats.service.max_s > ALIKE * stats.service.median_s:
        return response_s, STEP, None
    # Responses are slow and nothing queued: the first rate was far below the capacity.
    session.response_s = response_s
    at_once = min(stats.due, first.rate_rps * response_s)
    session.ended_rps = max(session.ended_rps, at_once / response_s)  # all at the same time
    wanted = max(STEP, math.ceil(STEP * at_once))
    answered = session.most_in_flight(SLOW_RESPONSES * response_s)
    return response_s, max(1, min(wanted, math.floor(answered))), None


def _have_waited(stats: Stats) -> bool:
    """Return whether requests timed out that may just have waited for those before them."""
    late = all(one.outcome == Outcome.FIRST_BYTE_TIMEOUT for one in stats.failures)
    return late and stats.ok > 0 and stats.due * stats.service.max_s > TIMEOUT_S


def throughput(trial: Trial, response_s: float) -> Throughput:
    """Return the completions after the first quarter, and after the first possible end."""
    slow = math.floor if response_s >= SLOW_S else lambda ticks: math.ceil(ticks) - 1
    skip = max(len(trial.timeline.ok) // 4, slow(response_s / TICK_S))
    ok = trial.timeline.ok[skip:]
    completed = float(ok.sum())
    return Throughput(completed / (len(ok) * TICK_S) if len(ok) else 0.0, completed)


def _of_slow(trial: Trial, seen: Throughput) -> Throughput:
    """Return a throughput that the whole trial, with its last answers, agrees with.

    A step lasts few response times. Requests that begin together also end together, and one such
    group more or less within the step would be mistaken for another throughput.
    """
    ended_rps = trial.stats.ended_rps
    return replace(seen, rate_rps=min(max(seen.rate_rps, ended_rps), MOST_UNEVEN * ended_rps))


def _step_s(session: Session, workers: int, response_s: float) -> float:
    wanted_s = min(LONGEST_S, max(SHORTEST_S, REQUESTS * response_s / workers))
    responses = SLOW_RESPONSES if session.response_s else RESPONSES
    return max(session.pace * wanted_s, responses * response_s)


def _at_ceiling(session: Session, response_s: float) -> Part[Knee]:
    rate_rps = session.settings.ceiling_rps
    # At a low rate, even a trial without any backlog must be this long to be judged.
    judged_s = least_height_s(rate_rps) / MOST_UNNOTICED / JUDGED_SHARE
    least_s = max(CEILING_S, SETTLED_S + TICK_S + judged_s)
    for longest_s in (least_s, max(least_s, CEILING_SHARE * session.settings.budget_s)):
        height = height_s(rate_rps, NEAREST, longest_s)
        trial = yield from session.run_trial(
            OpenLoad(rate_rps, longest_s), "the ceiling", alarm_s=PATIENCE_S, rise_s=height
        )
        if trial.verdict.state is TrialState.UNDECIDED and trial.planned_s < longest_s:
            raise BudgetSpent  # the time that was left is too short for a verdict
        if trial.verdict.state is not TrialState.SUSTAINED:
            reached = throughput(trial, response_s)
            at_s = session.spent_s
            rate_rps = max(reached.rate_rps, _least_rps(trial))
            refused = trial if _refuses(session, trial) else None
            return Knee(rate_rps, response_s, math.inf, True, reached.completed, at_s, refused)
    return Knee(rate_rps, response_s, math.inf, is_saturated=False)
