"""Finds saturation: more and more workers in a closed loop until no more gets done."""

import math
from collections.abc import Generator
from dataclasses import dataclass

from loadstone.analysis.model import TICK_S, State, Trial
from loadstone.plan.load import ClosedLoad, OpenLoad
from loadstone.search.model import Ask
from loadstone.search.proof import NEAREST, PATIENCE_S, SHARE, Known
from loadstone.search.session import OnlyErrors, Session

FIRST_RPS = 4.0
FIRST_S = 1.5
STEP = 4
MOST_WORKERS = 256
REQUESTS = 40  # wanted per step, within its shortest and longest length
SHORTEST_S = 2.0
LONGEST_S = 4.0
RESPONSES = 3.0  # response times that a step lasts at least
SLOW_S = 0.2  # unloaded: a step with one worker would show nothing that is not known
GROWTH = 1.10  # less than this for four times the workers: saturated
QUEUEING = 4.0  # response time over the unloaded one that only a queue explains
REFUSALS = 0.1  # share of errors that tells of a full queue rather than of a few bad requests
CEILING_S = 12.0
CEILING_SHARE = 0.2  # of the budget, for the trial that confirms the ceiling
USABLE = 0.75  # of the number in flight up to which no error was seen


@dataclass(frozen=True, slots=True)
class Knee:
    """Where throughput stops rising."""

    throughput_rps: float
    response_s: float  # unloaded
    most_in_flight: float  # more brings errors
    is_saturated: bool  # False: the ceiling held
    completed: float = 0.0  # requests that the throughput was counted from

    @property
    def in_flight(self) -> int:
        """So many keep every worker busy (Little's law, with a quarter to spare)."""
        return max(2, math.ceil(1.25 * self.throughput_rps * self.response_s))


def ramp(session: Session) -> Generator[Ask, Trial, Knee]:
    """Give the knee; ends early at the ceiling."""
    ceiling_rps = session.settings.ceiling_rps
    first = OpenLoad(min(FIRST_RPS, ceiling_rps), session.pace * FIRST_S)
    trial = yield from session.ask(first, "does it answer")
    if trial.summary.due and trial.summary.ok <= trial.summary.due // 2:
        raise OnlyErrors(*(f"{count} x {name}" for name, count in trial.summary.errors))
    response_s = trial.summary.service_time.mean_ms / 1000 if trial.summary.ok else 1 / FIRST_RPS
    best, workers = Throughput(0.0, 0.0), 1 if response_s < SLOW_S else STEP
    while True:
        if _upper_rps(workers, response_s, best.rate_rps) > ceiling_rps:
            return (yield from _at_ceiling(session, response_s))
        load = ClosedLoad(workers, _step_s(workers, response_s, session.pace))
        trial = yield from session.ask(load, f"ramp: {workers} at a time")
        if workers == 1 and trial.summary.ok:
            response_s = trial.summary.service_time.mean_ms / 1000
        reached = throughput(trial, response_s)
        rate_rps = reached.rate_rps
        stops = rate_rps < GROWTH * best.rate_rps or workers > QUEUEING * rate_rps * response_s
        best = max(reached, best)
        refuses = trial.summary.failed > REFUSALS * trial.summary.due
        most_workers = min(MOST_WORKERS, session.settings.max_connections)
        if stops or refuses or workers >= most_workers:
            most = USABLE * workers / STEP if refuses else math.inf
            return Knee(best.rate_rps, response_s, most, True, best.completed)
        workers = min(STEP * workers, most_workers)


@dataclass(frozen=True, slots=True, order=True)
class Throughput:
    """Completions per second, and how many they were."""

    rate_rps: float
    completed: float


def throughput(trial: Trial, response_s: float) -> Throughput:
    """Give the completions after the first quarter, and after the first can end."""
    skip = max(len(trial.ticks.ok) // 4, math.ceil(response_s / TICK_S) - 1)
    ok = trial.ticks.ok[skip:]
    completed = float(ok.sum())
    return Throughput(completed / (len(ok) * TICK_S) if len(ok) else 0.0, completed)


def _step_s(workers: int, response_s: float, pace: float) -> float:
    wanted_s = min(LONGEST_S, max(SHORTEST_S, REQUESTS * response_s / workers))
    return max(pace * wanted_s, RESPONSES * response_s)


def _upper_rps(workers: int, response_s: float, before_rps: float) -> float:
    """Give what so many workers can reach at most: no answer comes sooner than unloaded."""
    alone = workers / response_s
    return min(alone, STEP * before_rps) if before_rps else alone


def _at_ceiling(session: Session, response_s: float) -> Generator[Ask, Trial, Knee]:
    rate_rps = session.settings.ceiling_rps
    known = Known(rate_rps, 0.0, 1.0)
    for longest_s in (CEILING_S, max(CEILING_S, CEILING_SHARE * session.settings.budget_s)):
        height_s = max(known.least_height_s, SHARE * NEAREST * longest_s)
        trial = yield from session.ask(
            OpenLoad(rate_rps, longest_s), "the ceiling", alarm_s=PATIENCE_S, rise_s=height_s
        )
        if trial.verdict.state is not State.SUSTAINED:
            reached = throughput(trial, response_s)
            return Knee(reached.rate_rps, response_s, math.inf, True, reached.completed)
    return Knee(rate_rps, response_s, math.inf, is_saturated=False)
