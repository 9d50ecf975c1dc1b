"""What one constant rate showed of a service that refuses."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from loadstone.analysis.model import TICK_S, Cause, Trial, TrialState

LEAST_FILLS = 4
ERROR = 1.0  # requests, for a request may come just before or after a token
GRID = 400  # sizes of a bucket that are tried
LEAST_RATIO = 3.0  # of the longest to the shortest time that a bucket took to empty
WINDOWS = 2.0  # that a window may accept: haproxy weighs the one before by its share
LEAST_FLOW = 0.4  # of what was accepted: less came from a full bucket or window


@dataclass(frozen=True, slots=True)
class Tried:
    """How many requests at a constant rate were refused, from the first accepted one on.

    Refusals before it come from the load of an earlier trial: a limiter still counts that.
    """

    rate_rps: float
    requests: int
    refused: int
    is_hopeless: bool = False  # so many were refused that the trial was stopped
    is_saturated: bool = False  # none was refused, and the backlog grew


@dataclass(frozen=True, slots=True)
class Fill:
    """Requests that a limiter accepted from rest before it refused the first one.

    Of `mixed` requests, among which the first refusal came, `refused` were refused.
    """

    rate_rps: float
    before: float  # accepted before these
    mixed: float
    refused: float
    is_full: bool = True  # it began at rest, and not after a trial that had emptied it in part

    @property
    def most(self) -> float:
        """Requests accepted before the first refusal, if none was after it."""
        return self.before + max(0.0, self.mixed - self.refused)

    def least(self, flow_rps: float) -> float:
        """Requests accepted before the first refusal, if `flow_rps` were accepted after it."""
        share = 1 - flow_rps / self.rate_rps
        after = self.refused / share if share > 0 else self.mixed
        return self.before + max(0.0, self.mixed - after)


def tried(trial: Trial, rate_rps: float, *, is_rested: bool) -> Tried:
    """Count what was refused; a trial in which nothing was accepted counts nothing."""
    stats, ticks = trial.stats, trial.timeline
    if not stats.failed and trial.verdict.state is TrialState.DEGRADED:
        return Tried(rate_rps, stats.ok, 0, is_saturated=True)
    if not stats.ok:
        return Tried(rate_rps, 0, 0)
    seconds = len(trial.timeline.due) * TICK_S
    is_stopped = trial.verdict.cause is Cause.ERRORS and seconds < trial.planned_s - TICK_S
    left_out = 0 if is_rested else leading(trial)
    failed = int(ticks.failed[:left_out].sum())
    if is_stopped and failed == stats.failed:  # it was stopped for these
        left_out = failed = 0
    ok = int(ticks.ok[:left_out].sum())
    refused = stats.failed - failed
    is_hopeless = is_stopped and refused > 0
    return Tried(rate_rps, stats.ok - ok + refused, refused, is_hopeless)


def fill(trial: Trial, rate_rps: float) -> Fill | None:
    """Return how many were accepted in a row before the first refusal; None: none was refused."""
    ticks, stats = trial.timeline, trial.stats
    if not stats.failed or not stats.ok:
        return None
    if not ticks.failed.any():  # it was stopped within the tick of the first refusal
        return Fill(rate_rps, 0.0, float(stats.ok + stats.failed), float(stats.failed))
    first = int((ticks.failed > 0).argmax())
    before = float(ticks.due[:first].sum())
    return Fill(rate_rps, before, float(ticks.due[first]), float(ticks.failed[first]))


@dataclass(frozen=True, slots=True)
class Bucket:
    """A token bucket from rest: a full one is accepted at once, then what flows in."""

    rate_rps: float
    half_width_rps: float
    tokens: float

    def filled_by(self, seconds: float) -> float:
        """Return the rate at which the first request is refused after so many seconds."""
        return self.rate_rps + self.tokens / seconds


def bucket(fills: Sequence[Fill], held: Sequence[Tried], bad_rps: float) -> Bucket | None:
    """Return the bucket that explains all trials; None: something else fills up.

    Its rate is below `bad_rps`, which was refused.
    B tokens and what flows in at rate r: a trial that filled it in s seconds accepted B + r s, and
    one of which nothing was refused no more than that. A window, which accepts as many however fast
    they come, is no such bucket.
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
        return None  # a window would explain them, too
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
    """Return how many ticks pass until requests are accepted, where the first are refused."""
    ticks = trial.timeline
    first = int((ticks.ok > 0).argmax())
    return first + 1 if ticks.failed[: first + 1].any() else 0
