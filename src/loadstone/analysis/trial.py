"""One trial from what the engine measured."""

from collections.abc import Sequence
from dataclasses import replace
from math import isinf

from loadstone.analysis.alarm import SETTLED_S, Alarm
from loadstone.analysis.connections import starved
from loadstone.analysis.criteria import Criterion
from loadstone.analysis.goal import Goal
from loadstone.analysis.judge import TrialSpec, judge
from loadstone.analysis.model import NOT_JUDGED, TICK_S, Trial
from loadstone.analysis.sla import judge_criteria
from loadstone.analysis.stats import compute_stats
from loadstone.engine.health import Health
from loadstone.engine.parquet import SampleFile
from loadstone.engine.samples import Samples
from loadstone.plan.load import BandLoad, ClosedLoad, Load, OpenLoad, ReplayLoad, StagedLoad


def alarm(
    load: Load,
    alarm_s: float | None,
    goal: Goal,
    settle_s: float = SETTLED_S,
    *,
    tolerates_errors: bool = False,
) -> Alarm:
    """Return the watch that stops a trial which is hopeless."""
    error_share = 1.0 if tolerates_errors else goal.error_share
    return Alarm(rate_rps(load), alarm_s, error_share, settle_s)


def assess(
    offer: TrialSpec, samples: Samples, health: Health, goal: Goal, actions: Sequence[str] = ("",)
) -> Trial:
    """Sum up and judge what was measured while `offer` was made."""
    seconds = offered_s(samples, offer)
    criteria = goal.objectives
    computed = compute_stats(samples, actions, criteria, offer.rate_rps, seconds)
    stats, timeline = computed.stats, computed.timeline
    if offer.rate_rps is None and isinf(offer.planned_s):
        # The whole ticks of so many iterations miss the last of them.
        stats = replace(stats, throughput_rps=stats.completed_rps)
    verdict = starved(samples, offer.max_connections) if health.is_valid else None
    return Trial(
        number=offer.number,
        rate_rps=offer.rate_rps,
        purpose=offer.purpose,
        planned_s=seconds if isinf(offer.planned_s) else offer.planned_s,
        stats=stats,
        timeline=timeline,
        health=health,
        verdict=verdict or judge(offer, stats, timeline, health, goal),
        checks=judge_criteria(criteria, computed.sums),
        actions=tuple(actions),
    )


def checked(
    offer: TrialSpec,
    samples: Samples | SampleFile,
    health: Health,
    criteria: Sequence[Criterion],
    actions: Sequence[str],
) -> Trial:
    """Sum up what was measured; the criteria say what held, and there is no verdict."""
    computed = compute_stats(samples, actions, criteria, offer.rate_rps)
    return Trial(
        number=offer.number,
        rate_rps=offer.rate_rps,
        purpose=offer.purpose,
        planned_s=offer.planned_s,
        stats=computed.stats,
        timeline=computed.timeline,
        verdict=NOT_JUDGED,
        health=health,
        checks=judge_criteria(criteria, computed.sums),
        actions=tuple(actions),
    )


def rate_rps(load: Load) -> float | None:
    """Return the constant offered rate, if there is one."""
    match load:
        case OpenLoad():
            return load.rate_rps
        case StagedLoad() | ReplayLoad() | ClosedLoad() | BandLoad():
            return None


def offered_s(samples: Samples, offer: TrialSpec) -> float:
    """Return for how long load was offered: less than planned when the trial was stopped."""
    if not len(samples):
        return 0.0
    # The next arrival would have come a gap later; without a rate, within a tick.
    gap_s = TICK_S if offer.rate_rps is None else 1 / offer.rate_rps
    return min(offer.planned_s, float(samples.due_ns.max()) / 1e9 + gap_s)
