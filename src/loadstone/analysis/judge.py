"""Judges whether a trial was sustained, degraded or undecided, with reasons."""

from dataclasses import dataclass

from loadstone.analysis import backlog
from loadstone.analysis.alarm import LEAST_REQUESTS, SETTLED_S, Alarm, chance_of, replay
from loadstone.analysis.goal import Goal
from loadstone.analysis.model import TICK_S, Cause, Stats, Ticks, TrialState, Verdict
from loadstone.analysis.sla import judge_criteria
from loadstone.analysis.stats import sums_of
from loadstone.engine.health import Health

LEAST_TRIAL_S = 3.0
# Share of the planned length: a trial that was stopped earlier, not by its alarm, is undecided.
WHOLE = 0.9
# Growth that begins later than this, in seconds and as a share of the trial, is drift and not
# overload; sooner, a random walk under overload looks the same.
LEAST_ONSET_S = 15.0
LATE = 0.4
ERROR_CHANCE = 0.05
BURST = 2.0  # times the rise that counts as growth: a temporary rise that is mentioned
# Share of the settled seconds between the middles of the first third and of the last fifth.
JUDGED_SHARE = 0.7
MOST_UNNOTICED = 0.3  # overload that a trial must be able to show before it can be sustained
# Share of the offered load by which completions may fall behind in a sustained trial. Only trials
# of a few seconds can fall behind by more without growth.
MOST_BEHIND = 0.1
MOST_AFTERWARDS = 0.05  # share of answers after the load's end above which they are mentioned
MOST_KINDS = 3  # kinds of errors in a message


@dataclass(frozen=True, slots=True)
class TrialSpec:
    """The load of a trial, and its limits on the backlog (None: the judge's defaults)."""

    number: int
    purpose: str
    rate_rps: float | None  # None: closed loop or band
    planned_s: float
    alarm_s: float | None = None
    rise_s: float | None = None
    settle_s: float = SETTLED_S  # time until the first responses
    max_connections: int | None = None  # of the load generator
    alarmed: Cause | None = None  # why the alarm stopped the load; None: it did not
    is_unloaded: bool = False  # one request at a time: responses cannot be faster at any rate


def judge(spec: TrialSpec, stats: Stats, counts: Ticks, health: Health, goal: Goal) -> Verdict:
    """Return the verdict on a trial, with reasons that state the figures."""
    if not health.is_valid:
        return Verdict(TrialState.INVALID, health.limits, Cause.GENERATOR)
    errors = _errors(stats, goal)
    if spec.rate_rps is None:
        missed = _clearly_missed(stats, goal) if spec.is_unloaded else None
        return errors or missed or _unpaced(stats)
    return (
        _growth(spec, spec.rate_rps, stats, counts)
        or errors
        or _clearly_missed(stats, goal)
        or _too_short(spec, counts)
        or _nearly_grew(spec, spec.rate_rps, counts)
        or _missed(stats, goal)
        or _insensitive(spec, spec.rate_rps, counts)
        or _fell_behind(spec, spec.rate_rps, counts)
        or Verdict(TrialState.SUSTAINED, _steady(spec, spec.rate_rps, stats, counts))
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


def _growth(spec: TrialSpec, rate_rps: float, stats: Stats, counts: Ticks) -> Verdict | None:
    levels = backlog.backlog_s(counts, rate_rps, spec.settle_s)
    seconds = len(counts.due) * TICK_S
    over = len(levels) >= 4 and backlog.rise_s(levels) >= _rise_s(spec, rate_rps)
    if not _was_alarmed(spec, rate_rps, counts) and (not over or seconds < LEAST_TRIAL_S):
        return None
    rise_s = float(levels[-1] - levels.min())
    onset_s = backlog.onset_s(levels, spec.settle_s)
    rates = f"{rate_rps:.4g}/s offered, {stats.throughput_rps:.4g}/s completed"
    if not _is_late(onset_s, seconds, rise_s):
        reason = f"backlog grew by {rise_s:.1f} s of work in {seconds:.0f} s; {rates}"
        return Verdict(TrialState.DEGRADED, (reason,), Cause.OVERLOAD)
    reason = (
        f"backlog stood still for {onset_s:.0f} s, then grew by {rise_s:.1f} s of work in "
        f"{seconds - onset_s:.0f} s; {rates}: the service became slower"
    )
    return Verdict(TrialState.DEGRADED, (reason,), Cause.DRIFT)


def _was_alarmed(spec: TrialSpec, rate_rps: float, counts: Ticks) -> bool:
    if spec.alarm_s is None:
        return False
    # Another cause, that no request succeeds, says nothing of the backlog.
    if replay(Alarm(rate_rps, spec.alarm_s, 1.0, spec.settle_s), counts).cause is Cause.OVERLOAD:
        return True
    # The live alarm also checks between ticks.
    levels = backlog.backlog_s(counts, rate_rps, spec.settle_s)
    if spec.alarmed is Cause.OVERLOAD:
        return len(levels) > 0
    # Where its cause is not known: the last whole tick has nearly the full height.
    if len(counts.due) * TICK_S >= spec.planned_s - TICK_S or not len(levels):
        return False
    height_s = max(spec.alarm_s, LEAST_REQUESTS / rate_rps)
    return float(levels[-1] - levels.min()) >= backlog.NEARLY * height_s


def _is_late(onset_s: float, seconds: float, rise_s: float) -> bool:
    # At its final growth rate, the backlog would have grown visibly before the onset as well.
    would_be_s = rise_s * onset_s / max(seconds - onset_s, TICK_S)
    return onset_s >= max(LEAST_ONSET_S, LATE * seconds) and would_be_s >= rise_s


def _too_short(spec: TrialSpec, counts: Ticks) -> Verdict | None:
    seconds = len(counts.due) * TICK_S
    if spec.planned_s < LEAST_TRIAL_S:
        reason = f"{seconds:.1f} s are too short to judge"
        return Verdict(TrialState.UNDECIDED, (reason,))
    if seconds >= max(LEAST_TRIAL_S, WHOLE * spec.planned_s) or seconds >= spec.planned_s - TICK_S:
        return None
    reason = f"stopped after {seconds:.0f} s of {spec.planned_s:.0f} s, before it could show growth"
    return Verdict(TrialState.UNDECIDED, (reason,))


def _nearly_grew(spec: TrialSpec, rate_rps: float, counts: Ticks) -> Verdict | None:
    rise_s = backlog.rise_s(
        backlog.backlog_s(counts, rate_rps, spec.settle_s)
    )  # 0 where there are too few ticks
    limit_s = _rise_s(spec, rate_rps)
    if rise_s < backlog.NEARLY * limit_s:
        return None
    reason = f"backlog rose by {rise_s:.2f} s of work: not steady, and {limit_s:.2f} s is growth"
    return Verdict(TrialState.UNDECIDED, (reason,))


def _insensitive(spec: TrialSpec, rate_rps: float, counts: Ticks) -> Verdict | None:
    """Return undecided if the trial could not have detected overload of MOST_UNNOTICED."""
    judged_s = JUDGED_SHARE * (len(counts.due) * TICK_S - spec.settle_s)
    limit_s = _rise_s(spec, rate_rps)
    if judged_s > 0 and limit_s <= MOST_UNNOTICED * judged_s:
        return None
    seconds = len(counts.due) * TICK_S
    reason = f"{seconds:.1f} s are too short: overload of {MOST_UNNOTICED:.0%} could pass unnoticed"
    return Verdict(TrialState.UNDECIDED, (reason,))


def _fell_behind(spec: TrialSpec, rate_rps: float, counts: Ticks) -> Verdict | None:
    """Return undecided if clearly less was completed than offered, in a trial too short to judge.

    The time until the first answers does not count: what is then on its way stays constant.
    """
    levels = backlog.backlog_s(counts, rate_rps, spec.settle_s)
    judged_s = JUDGED_SHARE * len(levels) * TICK_S
    behind = backlog.rise_s(levels) / judged_s if judged_s > 0 else 0.0
    if behind < MOST_BEHIND:
        return None
    reason = (
        f"{(1 - behind) * rate_rps:.4g}/s of the offered {rate_rps:.4g}/s were completed in "
        f"{len(counts.due) * TICK_S:.1f} s, which are too short to show growth"
    )
    return Verdict(TrialState.UNDECIDED, (reason,))


def _clearly_missed(stats: Stats, goal: Goal) -> Verdict | None:
    """Return degraded if half of the responses exceed an objective, however short the trial."""
    slow = tuple(o for o in goal.objectives if stats.total.median_s > o.limit_s)
    return _missed(stats, Goal(objectives=slow)) if stats.ok >= LEAST_REQUESTS else None


def _missed(stats: Stats, goal: Goal) -> Verdict | None:
    checks = judge_criteria(goal.objectives, sums_of(stats))
    missed = tuple(one.detail for one in checks if not one.success)
    return Verdict(TrialState.DEGRADED, missed, Cause.OBJECTIVE) if missed else None


def _steady(spec: TrialSpec, rate_rps: float, stats: Stats, counts: Ticks) -> tuple[str, ...]:
    levels = backlog.backlog_s(counts, rate_rps, spec.settle_s)
    if not len(levels):
        return (f"{stats.ok} succeeded in less than a second",)
    reason = (
        f"backlog steady at {float(levels[-1]):.2f} s of work; {rate_rps:.4g}/s offered, "
        f"{stats.throughput_rps:.4g}/s completed, p99 {1000 * stats.total.p99_s:.0f} ms"
    )
    later = int(counts.in_flight[-1])
    if later > MOST_AFTERWARDS * stats.due:
        reason = f"{reason}; {later} of {stats.due} answers came after the load's end"
    peak_s = float(levels.max() - levels.min())
    if peak_s < BURST * _rise_s(spec, rate_rps):
        return (reason,)
    return (
        reason,
        f"in between it rose by {peak_s:.1f} s and drained again: a burst of noise",
    )


def _rise_s(spec: TrialSpec, rate_rps: float) -> float:
    if spec.rise_s is not None:
        return spec.rise_s
    return backlog.least_rise_s(rate_rps, spec.planned_s)
