"""Says whether a trial was sustained, or why not, or why that cannot be said."""

from dataclasses import dataclass

from loadstone.analysis import backlog
from loadstone.analysis.alarm import LEAST_REQUESTS, SETTLED_S, Alarm, chance_of, replay
from loadstone.analysis.goal import Goal
from loadstone.analysis.model import TICK_S, Cause, Stats, Ticks, TrialState, Verdict
from loadstone.analysis.sla import judge_criteria
from loadstone.analysis.stats import sums_of
from loadstone.engine.health import Health

LEAST_TRIAL_S = 3.0
# Of the planned length: a trial that was stopped earlier, and not by its alarm, decides nothing.
WHOLE = 0.9
# Growth that begins later than this, in seconds and as a share of the trial, is drift and not
# overload; sooner, a random walk under overload looks the same.
LEAST_ONSET_S = 15.0
LATE = 0.4
ERROR_CHANCE = 0.05
BURST = 2.0  # times the rise that is growth: a hill worth a word
# Of the settled seconds: what lies between the middles of the first third and of the last fifth.
JUDGED_SHARE = 0.7
MOST_UNNOTICED = 0.3  # overload that a trial must be able to show before it can be sustained
MOST_KINDS = 3  # of errors that are named


@dataclass(frozen=True, slots=True)
class TrialSpec:
    """What was offered and why, and how high a backlog is too high (None: the judge's own)."""

    number: int
    purpose: str
    rate_rps: float | None  # None: closed loop or band
    planned_s: float
    alarm_s: float | None = None
    rise_s: float | None = None
    settle_s: float = SETTLED_S  # until the first answers come
    max_connections: int | None = None  # of the load generator
    is_unloaded: bool = False  # one request at a time: no rate is answered faster


def judge(offer: TrialSpec, stats: Stats, counts: Ticks, health: Health, goal: Goal) -> Verdict:
    """Say what the trial shows of the service, with the figures that it rests on."""
    if not health.is_valid:
        return Verdict(TrialState.INVALID, health.limits, Cause.GENERATOR)
    errors = _errors(stats, goal)
    if offer.rate_rps is None:
        missed = _clearly_missed(stats, goal) if offer.is_unloaded else None
        return errors or missed or _unpaced(stats)
    return (
        _growth(offer, offer.rate_rps, stats, counts)
        or errors
        or _clearly_missed(stats, goal)
        or _too_short(offer, counts)
        or _nearly_grew(offer, offer.rate_rps, counts)
        or _missed(stats, goal)
        or _insensitive(offer, offer.rate_rps, counts)
        or Verdict(TrialState.SUSTAINED, _steady(offer, offer.rate_rps, stats, counts))
    )


def _unpaced(stats: Stats) -> Verdict:
    reason = f"no constant rate was offered; {stats.throughput_rps:.4g}/s completed"
    return Verdict(TrialState.UNDECIDED, (reason,))


def _errors(stats: Stats, goal: Goal) -> Verdict | None:
    failed = stats.failed
    if not failed or chance_of(failed, stats.due * goal.error_share) >= ERROR_CHANCE:
        return None
    allowed = f"allowed {goal.error_share:.2%}"
    kinds = ", ".join(f"{count} x {name}" for name, count in stats.errors[:MOST_KINDS])
    share = failed / stats.due
    return Verdict(
        TrialState.DEGRADED,
        (f"{failed} of {stats.due} failed ({share:.2%}, {allowed}): {kinds}",),
        Cause.ERRORS,
    )


def _growth(offer: TrialSpec, rate_rps: float, stats: Stats, counts: Ticks) -> Verdict | None:
    levels = backlog.backlog_s(counts, rate_rps, offer.settle_s)
    seconds = len(counts.due) * TICK_S
    over = len(levels) >= 4 and backlog.rise_s(levels) >= _rise_s(offer, rate_rps)
    if not _was_alarmed(offer, rate_rps, counts) and (not over or seconds < LEAST_TRIAL_S):
        return None
    rise_s = float(levels[-1] - levels.min())
    onset_s = backlog.onset_s(levels, offer.settle_s)
    rates = f"{rate_rps:.4g}/s offered, {stats.throughput_rps:.4g}/s completed"
    if not _is_late(onset_s, seconds, rise_s):
        words = f"backlog grew by {rise_s:.1f} s of work in {seconds:.0f} s; {rates}"
        return Verdict(TrialState.DEGRADED, (words,), Cause.OVERLOAD)
    words = (
        f"backlog stood still for {onset_s:.0f} s, then grew by {rise_s:.1f} s of work in "
        f"{seconds - onset_s:.0f} s; {rates}: the service became slower"
    )
    return Verdict(TrialState.DEGRADED, (words,), Cause.DRIFT)


def _was_alarmed(offer: TrialSpec, rate_rps: float, counts: Ticks) -> bool:
    if offer.alarm_s is None:
        return False
    if replay(Alarm(rate_rps, offer.alarm_s, 1.0, offer.settle_s), counts).cause:
        return True
    # The live alarm looks between ticks as well. Where it stopped the trial, the last whole tick
    # shows nearly all of the height.
    levels = backlog.backlog_s(counts, rate_rps, offer.settle_s)
    if len(counts.due) * TICK_S >= offer.planned_s - TICK_S or not len(levels):
        return False
    height_s = max(offer.alarm_s, LEAST_REQUESTS / rate_rps)
    return float(levels[-1] - levels.min()) >= backlog.NEARLY * height_s


def _is_late(onset_s: float, seconds: float, rise_s: float) -> bool:
    # At the pace of its end the backlog would have grown visibly before the onset as well.
    would_be_s = rise_s * onset_s / max(seconds - onset_s, TICK_S)
    return onset_s >= max(LEAST_ONSET_S, LATE * seconds) and would_be_s >= rise_s


def _too_short(offer: TrialSpec, counts: Ticks) -> Verdict | None:
    seconds = len(counts.due) * TICK_S
    if offer.planned_s < LEAST_TRIAL_S:
        words = f"{seconds:.1f} s show whether it answers, not whether it keeps up"
        return Verdict(TrialState.UNDECIDED, (words,))
    if (
        seconds >= max(LEAST_TRIAL_S, WHOLE * offer.planned_s)
        or seconds >= offer.planned_s - TICK_S
    ):
        return None
    words = f"stopped after {seconds:.0f} s of {offer.planned_s:.0f} s, before it could show growth"
    return Verdict(TrialState.UNDECIDED, (words,))


def _nearly_grew(offer: TrialSpec, rate_rps: float, counts: Ticks) -> Verdict | None:
    rise_s = backlog.rise_s(
        backlog.backlog_s(counts, rate_rps, offer.settle_s)
    )  # 0 where there are too few ticks
    limit_s = _rise_s(offer, rate_rps)
    if rise_s < backlog.NEARLY * limit_s:
        return None
    words = f"backlog rose by {rise_s:.2f} s of work: not steady, and {limit_s:.2f} s is growth"
    return Verdict(TrialState.UNDECIDED, (words,))


def _insensitive(offer: TrialSpec, rate_rps: float, counts: Ticks) -> Verdict | None:
    """A trial that overload of this size would have passed too shows nothing."""
    judged_s = JUDGED_SHARE * (len(counts.due) * TICK_S - offer.settle_s)
    limit_s = _rise_s(offer, rate_rps)
    if judged_s > 0 and limit_s <= MOST_UNNOTICED * judged_s:
        return None
    seconds = len(counts.due) * TICK_S
    words = f"{seconds:.1f} s are too short: overload of {MOST_UNNOTICED:.0%} could pass unnoticed"
    return Verdict(TrialState.UNDECIDED, (words,))


def _clearly_missed(stats: Stats, goal: Goal) -> Verdict | None:
    """Half of the answers over the limit miss an objective, however short the trial."""
    slow = tuple(o for o in goal.objectives if stats.total.median_s > o.limit_s)
    return _missed(stats, Goal(objectives=slow)) if stats.ok >= LEAST_REQUESTS else None


def _missed(stats: Stats, goal: Goal) -> Verdict | None:
    checks = judge_criteria(goal.objectives, sums_of(stats))
    missed = tuple(one.detail for one in checks if not one.success)
    return Verdict(TrialState.DEGRADED, missed, Cause.OBJECTIVE) if missed else None


def _steady(offer: TrialSpec, rate_rps: float, stats: Stats, counts: Ticks) -> tuple[str, ...]:
    levels = backlog.backlog_s(counts, rate_rps, offer.settle_s)
    if not len(levels):
        return (f"{stats.ok} ended well in less than a second",)
    words = (
        f"backlog steady at {float(levels[-1]):.2f} s of work; {rate_rps:.4g}/s offered, "
        f"{stats.throughput_rps:.4g}/s completed, p99 {1000 * stats.total.p99_s:.0f} ms"
    )
    peak_s = float(levels.max() - levels.min())
    if peak_s < BURST * _rise_s(offer, rate_rps):
        return (words,)
    return (
        words,
        f"in between it rose by {peak_s:.1f} s and drained again: a burst of noise",
    )


def _rise_s(offer: TrialSpec, rate_rps: float) -> float:
    if offer.rise_s is not None:
        return offer.rise_s
    return backlog.least_rise_s(rate_rps, offer.planned_s)
