"""Judges whether a trial was sustained, degraded or undecided, with reasons."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

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
LEAST_SHARE = 0.0001  # with two decimals, a smaller percentage would be 0.00%


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


@dataclass(frozen=True, slots=True)
class _Paced:
    """A trial at a constant rate."""

    spec: TrialSpec
    rate_rps: float
    stats: Stats
    counts: Ticks
    levels: NDArray[np.float64]  # of the backlog in seconds of work, by settled tick
    rise_s: float  # of the backlog; 0 where there are too few ticks
    limit_s: float  # the rise that counts as growth

    @property
    def seconds(self) -> float:
        return len(self.counts.due) * TICK_S


def judge(spec: TrialSpec, stats: Stats, counts: Ticks, health: Health, goal: Goal) -> Verdict:
    """Return the verdict on a trial, with reasons that state the figures."""
    if not health.is_valid:
        return Verdict(TrialState.INVALID, health.limits, Cause.GENERATOR)
    errors = _errors(stats, goal)
    if spec.rate_rps is None:
        missed = _clearly_missed(stats, goal) if spec.is_unloaded else None
        completed = f"no constant rate was offered; {stats.throughput_rps:.4g}/s completed"
        return errors or missed or _undecided(completed)
    levels = backlog.backlog_s(counts, spec.rate_rps, spec.settle_s)
    usual_s = backlog.least_rise_s(spec.rate_rps, spec.planned_s)
    limit_s = usual_s if spec.rise_s is None else spec.rise_s
    paced = _Paced(spec, spec.rate_rps, stats, counts, levels, backlog.rise_s(levels), limit_s)
    return (
        _growth(paced)
        or errors
        or _clearly_missed(stats, goal)
        or _too_short(paced)
        or _nearly_grew(paced)
        or _missed(stats, goal)
        or _insensitive(paced)
        or _fell_behind(paced)
        or _ended_high(paced)
        or Verdict(TrialState.SUSTAINED, _steady(paced))
    )


def _undecided(reason: str) -> Verdict:
    return Verdict(TrialState.UNDECIDED, (reason,))


def _errors(stats: Stats, goal: Goal) -> Verdict | None:
    failed = stats.failed
    if not failed or chance_of(failed, stats.due * goal.error_share) >= ERROR_CHANCE:
        return None
    allowed = f"allowed {percent(goal.error_share)}"
    kinds = ", ".join(stats.error_texts[:MOST_KINDS])
    share = failed / stats.due
    return Verdict(
        TrialState.DEGRADED,
        (f"{failed} of {stats.due} failed ({percent(share)}, {allowed}): {kinds}",),
        Cause.ERRORS,
    )


def percent(share: float) -> str:
    """Return a share as a percentage with two decimals, or more where those would be zeros."""
    is_even = not share or share >= LEAST_SHARE
    return f"{100 * share:.2f} %" if is_even else f"{100 * share:.2g} %"


def _growth(trial: _Paced) -> Verdict | None:
    is_over = trial.rise_s >= trial.limit_s and trial.seconds >= LEAST_TRIAL_S
    if not is_over and not _was_alarmed(trial):
        return None
    levels, seconds = trial.levels, trial.seconds
    rise_s = float(levels[-1] - levels.min())
    onset_s = backlog.onset_s(levels, trial.spec.settle_s)
    rates = f"{trial.rate_rps:.4g}/s offered, {trial.stats.throughput_rps:.4g}/s completed"
    if not _is_late(onset_s, seconds, rise_s):
        reason = f"backlog grew by {rise_s:.1f} s of work in {seconds:.0f} s; {rates}"
        return Verdict(TrialState.DEGRADED, (reason,), Cause.OVERLOAD)
    reason = (
        f"backlog stood still for {onset_s:.0f} s, then grew by {rise_s:.1f} s of work in "
        f"{seconds - onset_s:.0f} s; {rates}: the service became slower"
    )
    return Verdict(TrialState.DEGRADED, (reason,), Cause.DRIFT)


def _was_alarmed(trial: _Paced) -> bool:
    spec, levels = trial.spec, trial.levels
    if spec.alarm_s is None:
        return False
    # Another cause, that no request succeeds, says nothing of the backlog.
    alarm = Alarm(trial.rate_rps, spec.alarm_s, 1.0, spec.settle_s)
    if replay(alarm, trial.counts).cause is Cause.OVERLOAD:
        return True
    # The live alarm also checks between ticks.
    if spec.alarmed is Cause.OVERLOAD:
        return len(levels) > 0
    # Where its cause is not known: the last whole tick has nearly the full height.
    if trial.seconds >= spec.planned_s - TICK_S or not len(levels):
        return False
    height_s = max(spec.alarm_s, LEAST_REQUESTS / trial.rate_rps)
    return float(levels[-1] - levels.min()) >= backlog.NEARLY * height_s


def _is_late(onset_s: float, seconds: float, rise_s: float) -> bool:
    # At its final growth rate, the backlog would have grown visibly before the onset as well.
    would_be_s = rise_s * onset_s / max(seconds - onset_s, TICK_S)
    return onset_s >= max(LEAST_ONSET_S, LATE * seconds) and would_be_s >= rise_s


def _too_short(trial: _Paced) -> Verdict | None:
    seconds, planned_s = trial.seconds, trial.spec.planned_s
    if planned_s < LEAST_TRIAL_S:
        return _undecided(f"{seconds:.1f} s are too short to judge")
    if seconds >= max(LEAST_TRIAL_S, WHOLE * planned_s) or seconds >= planned_s - TICK_S:
        return None
    return _undecided(
        f"stopped after {seconds:.0f} s of {planned_s:.0f} s, before it could show growth"
    )


def _nearly_grew(trial: _Paced) -> Verdict | None:
    if trial.rise_s < backlog.NEARLY * trial.limit_s:
        return None
    return _undecided(
        f"backlog rose by {trial.rise_s:.2f} s of work: not steady, and {trial.limit_s:.2f} s is "
        f"growth"
    )


def _insensitive(trial: _Paced) -> Verdict | None:
    """Return undecided if the trial could not have detected overload of MOST_UNNOTICED."""
    judged_s = JUDGED_SHARE * (trial.seconds - trial.spec.settle_s)
    if judged_s > 0 and trial.limit_s <= MOST_UNNOTICED * judged_s:
        return None
    reason = f"are too short: overload of {100 * MOST_UNNOTICED:.0f} % could pass unnoticed"
    return _undecided(f"{trial.seconds:.1f} s {reason}")


def _fell_behind(trial: _Paced) -> Verdict | None:
    """Return undecided if clearly less was completed than offered, in a trial too short to judge.

    The time until the first answers does not count: what is then on its way stays constant.
    """
    judged_s = JUDGED_SHARE * len(trial.levels) * TICK_S
    behind = trial.rise_s / judged_s if judged_s > 0 else 0.0
    if behind < MOST_BEHIND:
        return None
    return _undecided(
        f"{(1 - behind) * trial.rate_rps:.4g}/s of the offered {trial.rate_rps:.4g}/s were "
        f"completed in {trial.seconds:.1f} s, which are too short to show growth"
    )


def _ended_high(trial: _Paced) -> Verdict | None:
    """Return undecided if the backlog ended far above its least: it may have begun to grow again.

    The medians of two parts of the trial do not show that where it also was high in between.
    """
    levels = trial.levels
    if not len(levels):
        return None
    gained_s = float(levels[-1] - levels.min())
    if gained_s < max(trial.limit_s, MOST_BEHIND * JUDGED_SHARE * len(levels) * TICK_S):
        return None
    return _undecided(f"backlog ended {gained_s:.2f} s of work above its least: not steady")


def _clearly_missed(stats: Stats, goal: Goal) -> Verdict | None:
    """Return degraded if half of the responses exceed an objective, however short the trial."""
    slow = tuple(o for o in goal.objectives if stats.total.median_s > o.limit_s)
    return _missed(stats, Goal(objectives=slow)) if stats.ok >= LEAST_REQUESTS else None


def _missed(stats: Stats, goal: Goal) -> Verdict | None:
    checks = judge_criteria(goal.objectives, sums_of(stats))
    missed = tuple(one.detail for one in checks if not one.success)
    return Verdict(TrialState.DEGRADED, missed, Cause.OBJECTIVE) if missed else None


def _steady(trial: _Paced) -> tuple[str, ...]:
    levels, stats = trial.levels, trial.stats
    if not len(levels):
        return (f"{stats.ok} succeeded in less than a second",)
    reason = (
        f"backlog steady at {float(levels[-1]):.2f} s of work; {trial.rate_rps:.4g}/s offered, "
        f"{stats.throughput_rps:.4g}/s completed, p99 {1000 * stats.total.p99_s:.0f} ms"
    )
    later = int(trial.counts.in_flight[-1])
    if later > MOST_AFTERWARDS * stats.due:
        reason = f"{reason}; {later} of {stats.due} answers came after the load's end"
    peak_s = float(levels.max() - levels.min())
    if peak_s < BURST * trial.limit_s:
        return (reason,)
    return reason, f"in between it rose by {peak_s:.1f} s and drained again: a burst of noise"
