"""Says whether a trial was sustained, or why not, or why that cannot be said."""

from dataclasses import dataclass

from loadstone.analysis import backlog
from loadstone.analysis.alarm import LEAST_REQUESTS, Alarm, chance_of, replay
from loadstone.analysis.goal import Goal, Objective
from loadstone.analysis.model import TICK_S, Cause, State, Summary, Ticks, Verdict
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
MOST_KINDS = 3  # of errors that are named


@dataclass(frozen=True, slots=True)
class Offer:
    """What was offered and why, and how high a backlog is too high (None: the judge's own)."""

    number: int
    purpose: str
    rate_rps: float | None  # None: closed loop or band
    planned_s: float
    alarm_s: float | None = None
    rise_s: float | None = None


def judge(offer: Offer, summary: Summary, counts: Ticks, health: Health, goal: Goal) -> Verdict:
    """Say what the trial shows of the service, with the figures that it rests on."""
    if not health.is_valid:
        return Verdict(State.INVALID, health.limits, Cause.GENERATOR)
    errors = _errors(summary, goal)
    if offer.rate_rps is None:
        return errors or _unpaced(summary)
    return (
        _growth(offer, offer.rate_rps, summary, counts)
        or errors
        or _too_short(offer, counts)
        or _nearly_grew(offer, offer.rate_rps, counts)
        or _missed(summary, goal)
        or Verdict(State.SUSTAINED, _steady(offer, offer.rate_rps, summary, counts))
    )


def _unpaced(summary: Summary) -> Verdict:
    reason = f"no constant rate was offered; {summary.throughput_rps:.4g}/s completed"
    return Verdict(State.UNDECIDED, (reason,))


def _errors(summary: Summary, goal: Goal) -> Verdict | None:
    failed = summary.failed
    if not failed or chance_of(failed, summary.due * goal.error_share) >= ERROR_CHANCE:
        return None
    allowed = f"allowed {goal.error_share:.2%}"
    kinds = ", ".join(f"{count} x {name}" for name, count in summary.errors[:MOST_KINDS])
    share = failed / summary.due
    return Verdict(
        State.DEGRADED,
        (f"{failed} of {summary.due} failed ({share:.2%}, {allowed}): {kinds}",),
        Cause.ERRORS,
    )


def _growth(offer: Offer, rate_rps: float, summary: Summary, counts: Ticks) -> Verdict | None:
    levels = backlog.backlog_s(counts, rate_rps)
    seconds = len(counts.due) * TICK_S
    over = len(levels) >= 4 and backlog.rise_s(levels) >= _rise_s(offer, rate_rps)
    if not _was_alarmed(offer, rate_rps, counts) and (not over or seconds < LEAST_TRIAL_S):
        return None
    rise_s = float(levels[-1] - levels.min())
    onset_s = backlog.onset_s(levels)
    rates = f"{rate_rps:.4g}/s offered, {summary.throughput_rps:.4g}/s completed"
    if not _is_late(onset_s, seconds, rise_s):
        words = f"backlog grew by {rise_s:.1f} s of work in {seconds:.0f} s; {rates}"
        return Verdict(State.DEGRADED, (words,), Cause.OVERLOAD)
    words = (
        f"backlog stood still for {onset_s:.0f} s, then grew by {rise_s:.1f} s of work in "
        f"{seconds - onset_s:.0f} s; {rates}: the service became slower"
    )
    return Verdict(State.DEGRADED, (words,), Cause.DRIFT)


def _was_alarmed(offer: Offer, rate_rps: float, counts: Ticks) -> bool:
    if offer.alarm_s is None:
        return False
    if replay(Alarm(rate_rps, offer.alarm_s, error_share=1.0), counts).cause:
        return True
    # The live alarm looks between ticks as well. Where it stopped the trial, the last whole tick
    # shows nearly all of the height.
    levels = backlog.backlog_s(counts, rate_rps)
    if len(counts.due) * TICK_S >= offer.planned_s - TICK_S or not len(levels):
        return False
    height_s = max(offer.alarm_s, LEAST_REQUESTS / rate_rps)
    return float(levels[-1] - levels.min()) >= backlog.NEARLY * height_s


def _is_late(onset_s: float, seconds: float, rise_s: float) -> bool:
    # At the pace of its end the backlog would have grown visibly before the onset as well.
    would_be_s = rise_s * onset_s / max(seconds - onset_s, TICK_S)
    return onset_s >= max(LEAST_ONSET_S, LATE * seconds) and would_be_s >= rise_s


def _too_short(offer: Offer, counts: Ticks) -> Verdict | None:
    seconds = len(counts.due) * TICK_S
    if offer.planned_s < LEAST_TRIAL_S:
        words = f"{seconds:.1f} s show whether it answers, not whether it keeps up"
        return Verdict(State.UNDECIDED, (words,))
    if (
        seconds >= max(LEAST_TRIAL_S, WHOLE * offer.planned_s)
        or seconds >= offer.planned_s - TICK_S
    ):
        return None
    words = f"stopped after {seconds:.0f} s of {offer.planned_s:.0f} s, before it could show growth"
    return Verdict(State.UNDECIDED, (words,))


def _nearly_grew(offer: Offer, rate_rps: float, counts: Ticks) -> Verdict | None:
    rise_s = backlog.rise_s(backlog.backlog_s(counts, rate_rps))  # 0 where there are too few ticks
    limit_s = _rise_s(offer, rate_rps)
    if rise_s < backlog.NEARLY * limit_s:
        return None
    words = f"backlog rose by {rise_s:.2f} s of work: not steady, and {limit_s:.2f} s is growth"
    return Verdict(State.UNDECIDED, (words,))


def _missed(summary: Summary, goal: Goal) -> Verdict | None:
    missed = [o for o in goal.objectives if not _figure_ms(summary, o) < o.limit_ms]
    if not missed:
        return None
    words = tuple(f"{o.figure} was {_figure_ms(summary, o):.0f} ms, wanted {o}" for o in missed)
    return Verdict(State.DEGRADED, words, Cause.OBJECTIVE)


def _figure_ms(summary: Summary, objective: Objective) -> float:
    latency = summary.latency
    return {
        "mean": latency.mean_ms,
        "p50": latency.p50_ms,
        "p90": latency.p90_ms,
        "p95": latency.p95_ms,
        "p99": latency.p99_ms,
        "max": latency.max_ms,
    }[objective.figure]


def _steady(offer: Offer, rate_rps: float, summary: Summary, counts: Ticks) -> tuple[str, ...]:
    levels = backlog.backlog_s(counts, rate_rps)
    if not len(levels):
        return (f"{summary.ok} ended well in less than a second",)
    words = (
        f"backlog steady at {float(levels[-1]):.2f} s of work; {rate_rps:.4g}/s offered, "
        f"{summary.throughput_rps:.4g}/s completed, p99 {summary.latency.p99_ms:.0f} ms"
    )
    peak_s = float(levels.max() - levels.min())
    if peak_s < BURST * _rise_s(offer, rate_rps):
        return (words,)
    return (
        words,
        f"in between it rose by {peak_s:.1f} s and drained again: a burst of noise",
    )


def _rise_s(offer: Offer, rate_rps: float) -> float:
    if offer.rise_s is not None:
        return offer.rise_s
    return backlog.least_rise_s(rate_rps, offer.planned_s)
