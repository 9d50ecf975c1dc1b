"""Results of constant-rate trials of a service that refuses requests."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from loadstone.analysis.model import TICK_S, Cause, Trial, TrialState

LEAST_FILLS = 4
ERROR = 1.0  # requests, because a request may come just before or after a token
GRID = 400  # number of bucket sizes that are tried
LEAST_RATIO = 3.0  # of the longest to the shortest time that a bucket took to empty
WINDOWS = 2.0  # times its limit that a window may accept: haproxy weights the previous window
FEW = 0.05  # of the requests of a trial fail: the queue is what shows there
LEAST_FLOW = 0.4  # of the accepted requests: with less, the rest came from a full bucket or window


@dataclass(frozen=True, slots=True)
class Tried:
    """Counts of a constant-rate trial from its first accepted request on.

    Refusals before it are caused by an earlier trial, which the limiter still counts.
    """

    rate_rps: float
    requests: int
    refused: int
    is_hopeless: bool = False  # the trial was stopped because of refusals
    is_saturated: bool = False  # none was refused, but the backlog grew
    is_slow: bool = False  # a latency objective was missed
    # Requests up to the first accepted one, which are not counted above, and those refused of them.
    left_out: int = 0
    early: int = 0
    in_flight: int = 0  # at the end of the load

    @property
    def is_overloaded(self) -> bool:
        """Whether the rate is too high, however few requests were refused."""
        return self.is_saturated or self.is_slow


@dataclass(frozen=True, slots=True)
class Fill:
    """Requests that a limiter accepted from rest before its first refusal.

    Of `mixed` requests around the first refusal, `refused` were refused.
    """

    rate_rps: float
    before: float  # accepted before these
    mixed: float
    refused: float
    is_full: bool = True  # the limiter was at rest, not partly used by an earlier trial

    @property
    def most(self) -> float:
        """Requests accepted before the first refusal, if none was accepted after it."""
        return self.before + max(0.0, self.mixed - self.refused)

    def least(self, flow_rps: float) -> float:
        """Requests accepted before the first refusal, if `flow_rps` were accepted after it."""
        share = 1 - flow_rps / self.rate_rps
        after = self.refused / share if share > 0 else self.mixed
        return self.before + max(0.0, self.mixed - after)


def tried(trial: Trial, rate_rps: float, *, is_rested: bool, is_full: bool = False) -> Tried:
    """Count accepted and refused requests; all 0 if nothing was accepted.

    With `is_full`, count from the first refusal on: until then a bucket or a queue has room.
    """
    stats, ticks = trial.stats, trial.timeline
    is_few = stats.failed <= FEW * stats.ended
    has_grown = trial.verdict.cause in (Cause.OVERLOAD, Cause.DRIFT)
    is_degraded = trial.verdict.state is TrialState.DEGRADED
    if is_degraded and trial.verdict.cause is Cause.OBJECTIVE:
        return Tried(rate_rps, stats.ended, stats.failed, is_slow=True)
    if is_degraded and (not stats.failed or (is_few and has_grown)):
        return Tried(rate_rps, stats.ended, stats.failed, is_saturated=True)
    if not stats.ok:
        return Tried(rate_rps, 0, 0)
    seconds = len(trial.timeline.due) * TICK_S
    is_stopped = trial.verdict.cause is Cause.ERRORS and seconds < trial.planned_s - TICK_S
    left_out = 0 if is_rested else leading(trial)
    if is_full and ticks.failed.any():
        left_out = max(left_out, int((ticks.failed > 0).argmax()) + 1)
    failed = int(ticks.failed[:left_out].sum())
    if is_stopped and failed == stats.failed:  # it was stopped because of these
        left_out = failed = 0
    ok = int(ticks.ok[:left_out].sum())
    refused = stats.failed - failed
    is_hopeless = is_stopped and refused > 0
    return Tried(
        rate_rps,
        stats.ok - ok + refused,
        refused,
        is_hopeless,
        left_out=ok + failed,
        early=failed,
        in_flight=int(ticks.in_flight[-1]) if len(ticks.in_flight) else 0,
    )


def refusals(trials: Sequence[Tried]) -> str:
    """Say how many requests of these trials were refused, counted as in their statistics."""
    refused, early = sum(one.refused for one in trials), sum(one.early for one in trials)
    requests = sum(one.requests + one.left_out for one in trials)
    if not early:
        return f"{refused or 'none'} of {requests:,} {'were' if refused > 1 else 'was'} refused"
    after = f"{refused} after it" if refused else "none after it"
    return (
        f"{refused + early} of {requests:,} were refused: {early} at its beginning, because of "
        f"the load before, and {after}"
    )


def fill(trial: Trial, rate_rps: float) -> Fill | None:
    """Return the requests accepted before the first refusal; None: none was refused."""
    ticks, stats = trial.timeline, trial.stats
    if not stats.failed or not stats.ok:
        return None
    if not ticks.failed.any():  # the trial was stopped within the tick of the first refusal
        return Fill(rate_rps, 0.0, float(stats.ended), float(stats.failed))
    first = int((ticks.failed > 0).argmax())
    before = float(ticks.due[:first].sum())
    return Fill(rate_rps, before, float(ticks.due[first]), float(ticks.failed[first]))


@dataclass(frozen=True, slots=True)
class Bucket:
    """A token bucket from rest: a full bucket is accepted at once, then the flow rate."""

    rate_rps: float
    half_width_rps: float
    tokens: float

    def filled_by(self, seconds: float) -> float:
        """Return the rate at which the first request is refused after so many seconds."""
        return self.rate_rps + self.tokens / seconds


def bucket(fills: Sequence[Fill], held: Sequence[Tried], bad_rps: float) -> Bucket | None:
    """Return the bucket that explains all trials; None: there is no such bucket.

    Its rate is below `bad_rps`, which was refused. With B tokens and rate r, a trial that emptied
    it in s seconds accepted B + r s, and a trial without refusals at most that. A window, which
    accepts the same number at any rate, is not such a bucket.
    """
    fills = [one for one in fills if one.most > 0]
    full = [one for one in fills if one.is_full]
    if len(full) < LEAST_FILLS:
        return None
    first = min(full, key=lambda one: one.most / one.rate_rps)
    last = max(full, key=lambda one: one.most / one.rate_rps)
    longest = last.most / last.rate_rps
    by_windows = WINDOWS * first.most + ERROR
    if longest < LEAST_RATIO * first.most / first.rate_rps or last.least(bad_rps) <= by_windows:
        return None  # a window would also explain the trials
    tokens = np.linspace(0.0, first.most + ERROR, GRID)[:, None]
    least = np.array([one.least(bad_rps) for one in fills]) - ERROR
    most = np.array([one.most for one in fills]) + ERROR
    seconds = np.array([one.most / one.rate_rps for one in fills])
    least_tokens = np.where([one.is_full for one in fills], tokens, 0.0)
    high = ((most - least_tokens) / seconds).min(axis=1)
    high = np.minimum(high, bad_rps)
    low = ((least - tokens) / seconds).max(axis=1)
    for one in held:
        low = np.maximum(low, one.rate_rps * (1 - (1 + tokens[:, 0]) / max(1, one.requests)))
    fits = low <= high
    if not fits.any():
        return None
    lowest, highest = float(low[fits].min()), float(high[fits].max())
    if (lowest + highest) / 2 < LEAST_FLOW * last.rate_rps:
        return None
    return Bucket((lowest + highest) / 2, (highest - lowest) / 2, float(tokens[fits].mean()))


def leading(trial: Trial) -> int:
    """Return the number of ticks until requests are accepted, if the first are refused."""
    ticks = trial.timeline
    if not len(ticks.ok):  # it was stopped before its first tick ended
        return 0
    first = int((ticks.ok > 0).argmax())
    return first + 1 if ticks.failed[: first + 1].any() else 0
