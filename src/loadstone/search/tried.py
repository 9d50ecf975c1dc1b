"""What one constant rate showed of a service that refuses."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from loadstone.analysis.model import TICK_S, Cause, Trial, TrialState

LEAST_FILLS = 4
GRID = 400  # sizes of a bucket that are tried
LEAST_RATIO = 3.0  # of the longest to the shortest time that a bucket took to empty
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
    """How a limiter that was at rest filled up: requests accepted before it refused the first."""

    rate_rps: float
    accepted: float
    seconds: float
    is_full: bool = True  # it began at rest, and not after a trial that had emptied it in part

    @property
    def error(self) -> float:
        """Requests by which `accepted` may be wrong: it is known to a tick."""
        return 1.0 + TICK_S * self.rate_rps / 2


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
        return Fill(rate_rps, float(stats.ok), stats.ok / rate_rps)
    first = int((ticks.failed > 0).argmax())
    # All that were due before it were accepted; within the tick, accepted and refused ones mix.
    least = float(ticks.due[:first].sum())
    accepted = least + max(0.0, float(ticks.due[first] - ticks.failed[first])) / 2
    return Fill(rate_rps, accepted, accepted / rate_rps)


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
    full = [one for one in fills if one.is_full]
    if len(full) < LEAST_FILLS:
        return None
    first = min(full, key=lambda one: one.seconds)
    last = max(full, key=lambda one: one.seconds)
    most = min(one.accepted + one.error for one in full)
    if last.seconds < LEAST_RATIO * first.seconds or last.accepted - last.error <= most:
        return None  # a window would explain them, too
    tokens = np.linspace(0.0, first.accepted + first.error, GRID)[:, None]
    seconds = np.array([one.seconds for one in fills])
    accepted = np.array([one.accepted for one in fills])
    error = np.array([one.error for one in fills])
    least_tokens = np.where([one.is_full for one in fills], tokens, 0.0)
    high = ((accepted + error - least_tokens) / seconds).min(axis=1)
    high = np.minimum(high, bad_rps)
    low = ((accepted - error - tokens) / seconds).max(axis=1)
    for one in held:
        low = np.maximum(low, one.rate_rps * (1 - (1 + tokens[:, 0]) / max(1, one.requests)))
    fits = low <= high
    if not fits.any():
        return None
    lowest, highest = float(low[fits].min()), float(high[fits].max())
    if (lowest + highest) / 2 < LEAST_FLOW * last.accepted / last.seconds:
        return None
    return Bucket((lowest + highest) / 2, (highest - lowest) / 2, float(tokens[fits].mean()))


def leading(trial: Trial) -> int:
    """Return how many ticks pass until requests are accepted, where the first are refused."""
    ticks = trial.timeline
    first = int((ticks.ok > 0).argmax())
    return first + 1 if ticks.failed[: first + 1].any() else 0
