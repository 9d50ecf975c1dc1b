"""Builds a trial from the engine's results."""

from collections.abc import Sequence
from dataclasses import replace
from math import isinf

from loadstone.analysis.alarm import SETTLED_S, Alarm, TimeLeft
from loadstone.analysis.connections import starved
from loadstone.analysis.criteria import Criterion
from loadstone.analysis.goal import Goal
from loadstone.analysis.iterations import iterations
from loadstone.analysis.judge import TrialSpec, judge
from loadstone.analysis.model import NOT_JUDGED, TICK_S, Trial
from loadstone.analysis.sla import judge_criteria
from loadstone.analysis.stats import Computed, compute_stats
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
    time_left: TimeLeft | None = None,
) -> Alarm:
    """Return the callback that stops a hopeless trial."""
    error_share = 1.0 if tolerates_errors else goal.error_share
    return Alarm(rate_rps(load), alarm_s, error_share, settle_s, time_left)


def assess(
    spec: TrialSpec, samples: Samples, health: Health, goal: Goal, actions: Sequence[str] = ("",)
) -> Trial:
    """Compute the statistics of a trial and judge it."""
    seconds = offered_s(samples, spec)
    computed = compute_stats(samples, actions, goal.objectives, spec.rate_rps, seconds)
    stats, timeline = computed.stats, computed.timeline
    if spec.rate_rps is None and isinf(spec.planned_s):
        # Whole ticks would not include the last iterations.
        stats = replace(stats, throughput_rps=stats.completed_rps)
    verdict = starved(samples, spec.max_connections) if health.is_valid else None
    return replace(
        _unjudged(spec, computed, health, goal.objectives, actions),
        planned_s=seconds if isinf(spec.planned_s) else spec.planned_s,
        stats=stats,
        verdict=verdict or judge(spec, stats, timeline, health, goal),
    )


def checked(
    spec: TrialSpec,
    samples: Samples | SampleFile,
    health: Health,
    criteria: Sequence[Criterion],
    actions: Sequence[str],
) -> Trial:
    """Compute the statistics of a trial and check its criteria; there is no verdict."""
    computed = compute_stats(samples, actions, criteria, spec.rate_rps)
    return _unjudged(spec, computed, health, criteria, actions)


def _unjudged(
    spec: TrialSpec,
    computed: Computed,
    health: Health,
    criteria: Sequence[Criterion],
    actions: Sequence[str],
) -> Trial:
    return Trial(
        number=spec.number,
        rate_rps=spec.rate_rps,
        purpose=spec.purpose,
        planned_s=spec.planned_s,
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


def offered_s(samples: Samples, spec: TrialSpec) -> float:
    """Return how long load was offered, which is less than planned if the trial was stopped."""
    if not len(samples):
        return 0.0
    # The next arrival would have been one gap later; without a rate, within a tick.
    gap_s = TICK_S if spec.rate_rps is None else 1 / spec.rate_rps
    # A later step is due when the one before has ended, which may be after the load's end.
    last_ns = iterations(samples).due_ns.max()
    return min(spec.planned_s, float(last_ns) / 1e9 + gap_s)
