"""Says while a trial runs, or afterwards, that it is hopeless."""

import math

from loadstone.analysis.model import TICK_S, Cause, Ticks
from loadstone.engine.progress import Progress

# A verdict never hangs on fewer requests than this (bench/capacity: with fewer, tails of 50 %).
LEAST_REQUESTS = 6
SETTLED_S = 1.0  # until then the workers are being filled
FIRST_ALARM_S = 2.0
LEAST_ERRORS = 5
# Looked at several times a second, so the level is far below that of one look.
ERROR_CHANCE = 1e-4


class Alarm:
    """Is fed the counts of a running trial; as a Watch it stops a trial that is hopeless.

    Hopeless is: the backlog, in seconds of offered work, stays `height_s` (and at least six
    requests) above the least seen for a whole tick; or errors that the allowed share cannot
    explain, or nothing but errors.
    """

    def __init__(
        self,
        rate_rps: float | None,
        height_s: float | None,
        error_share: float = 0.0,
        settle_s: float = SETTLED_S,
    ) -> None:
        self._rate_rps = rate_rps
        self._height_s = height_s
        self._error_share = error_share
        self._settle_s = settle_s
        self._least_s = math.inf
        self._above_since_s: float | None = None
        self.cause: Cause | None = None
        self.at_s: float | None = None

    def __call__(self, progress: Progress) -> bool:
        """Return whether the trial may go on."""
        if self.cause is None:
            self.cause = self._errors(progress) or self._backlog(progress)
            self.at_s = progress.elapsed_s if self.cause else None
        return self.cause is None

    def _errors(self, progress: Progress) -> Cause | None:
        if progress.failed < LEAST_ERRORS:
            return None
        ended = progress.ok + progress.failed
        # However many errors are tolerated: nothing was accepted, nor is about to be.
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
        # The look that found it and one a tick later, however often we are shown the counts.
        held = progress.elapsed_s - self._above_since_s >= TICK_S - 1e-6
        return Cause.OVERLOAD if held else None


def replay(alarm: Alarm, ticks: Ticks) -> Alarm:
    """Show the alarm a whole trial, tick by tick, as if it ran."""
    due, ok, failed = ticks.due.cumsum(), ticks.ok.cumsum(), ticks.failed.cumsum()
    for tick, counts in enumerate(zip(due.tolist(), ok.tolist(), failed.tolist(), strict=True)):
        elapsed_s = (tick + 1) * TICK_S
        if not alarm(Progress(elapsed_s, counts[0], counts[0], counts[1], counts[2], 0.0)):
            break
    return alarm


def chance_of(count: int, expected: float) -> float:
    """Chance of seeing at least `count` events where `expected` are to be expected (Poisson)."""
    if count <= expected:
        return 1.0  # a half at least, which is all that a test of "too many" needs
    if expected <= 0:
        return 0.0 if count > 0 else 1.0
    # Summed from the top down so that a tiny chance is not lost in 1 - (nearly 1).
    term = math.exp(count * math.log(expected) - expected - math.lgamma(count + 1))
    total = 0.0
    for k in range(count, count + 1000):
        total += term
        term *= expected / (k + 1)
    return min(1.0, total)
