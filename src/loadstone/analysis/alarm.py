"""Detects, during or after a trial, that it is hopeless."""

import math
from dataclasses import dataclass

from loadstone.analysis.model import TICK_S, Cause, Ticks
from loadstone.engine.progress import Progress

# A verdict depends on at least this many requests (verification/search: with fewer, tails of 50 %).
LEAST_REQUESTS = 6
SETTLED_S = 1.0  # time until the workers are filled
FIRST_ALARM_S = 2.0
LEAST_ERRORS = 5
# Checked several times a second, so the level is far below that of a single test.
ERROR_CHANCE = 1e-4


@dataclass(frozen=True, slots=True)
class TimeLeft:
    """Time in which a load and the answers to it must end."""

    seconds: float  # the load stops early if its answers would come later than this
    most_s: float  # whatever is not answered by then is abandoned
    ended_rps: float = 0.0  # rate at which requests ended before this load

    def is_used_up(self, progress: Progress) -> bool:
        """Return whether what is in flight needs all the time that is left."""
        ended = progress.ok + progress.failed
        rate_rps = max(self.ended_rps, ended / progress.elapsed_s)
        return rate_rps > 0 and progress.elapsed_s + progress.in_flight / rate_rps > self.seconds


class Alarm:
    """An `OnProgress` callback that stops a hopeless trial.

    A trial is hopeless if the backlog, in seconds of offered work, stays `height_s` (and at least
    six requests) above its minimum for a whole tick, if there are more errors than the allowed
    share can explain, or if there are only errors. It is also stopped, without a cause, when the
    answers to what is in flight would take longer than the time that is left.
    """

    def __init__(
        self,
        rate_rps: float | None,
        height_s: float | None,
        error_share: float = 0.0,
        settle_s: float = SETTLED_S,
        time_left: TimeLeft | None = None,
    ) -> None:
        self._rate_rps = rate_rps
        self._height_s = height_s
        self._error_share = error_share
        self._settle_s = settle_s
        self._time_left = time_left
        self._least_s = math.inf
        self._above_since_s: float | None = None
        self.cause: Cause | None = None
        self.at_s: float | None = None

    def __call__(self, progress: Progress) -> bool:
        """Return whether the trial may go on."""
        if self.cause is None:
            self.cause = self._errors(progress) or self._backlog(progress)
            self.at_s = progress.elapsed_s if self.cause else None
        return self.cause is None and not self._is_late(progress)

    def _is_late(self, progress: Progress) -> bool:
        # Before the first answers, what is in flight says nothing of how fast it is answered.
        if self._time_left is None or progress.elapsed_s < self._settle_s:
            return False
        return self._time_left.is_used_up(progress)

    def _errors(self, progress: Progress) -> Cause | None:
        if progress.failed < LEAST_ERRORS:
            return None
        ended = progress.ok + progress.failed
        # Even if errors are tolerated: no request was accepted, and none will be.
        if not progress.ok and not progress.in_flight and progress.elapsed_s >= SETTLED_S:
            return Cause.ERRORS
        hopeless = chance_of(progress.failed, ended * self._error_share) < ERROR_CHANCE
        return Cause.ERRORS if hopeless else None

    def _backlog(self, progress: Progress) -> Cause | None:
        if self._rate_rps is None or self._height_s is None or progress.elapsed_s < self._settle_s:
            return None
        backlog_s = progress.in_flight / self._rate_rps
        self._least_s = min(self._least_s, backlog_s)
        height_s = max(self._height_s, LEAST_REQUESTS / self._rate_rps)
        first_s = self._settle_s + FIRST_ALARM_S - SETTLED_S
        if progress.elapsed_s < first_s or backlog_s - self._least_s < height_s:
            self._above_since_s = None
            return None
        if self._above_since_s is None:
            self._above_since_s = progress.elapsed_s
        # Confirm one tick later, independent of how often progress is reported.
        held = progress.elapsed_s - self._above_since_s >= TICK_S - 1e-6
        return Cause.OVERLOAD if held else None


def replay(alarm: Alarm, ticks: Ticks) -> Alarm:
    """Replay a trial to the alarm, tick by tick."""
    due, ok, failed = ticks.due.cumsum(), ticks.ok.cumsum(), ticks.failed.cumsum()
    for tick, counts in enumerate(zip(due.tolist(), ok.tolist(), failed.tolist(), strict=True)):
        elapsed_s = (tick + 1) * TICK_S
        if not alarm(Progress(elapsed_s, counts[0], counts[0], counts[1], counts[2], 0.0)):
            break
    return alarm


def chance_of(count: int, expected: float) -> float:
    """Return the probability of at least `count` events if `expected` are expected (Poisson)."""
    if count <= expected:
        return 1.0  # the true value is at least 0.5, which is enough for a test of "too many"
    if expected <= 0:
        return 0.0 if count > 0 else 1.0
    # Summed from the top down so that a tiny chance is not lost in 1 - (nearly 1).
    term = math.exp(count * math.log(expected) - expected - math.lgamma(count + 1))
    total = 0.0
    for k in range(count, count + 1000):
        total += term
        term *= expected / (k + 1)
    return min(1.0, total)
