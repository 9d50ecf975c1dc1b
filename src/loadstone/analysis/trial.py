"""One trial from what the engine measured."""

from math import isinf

from loadstone.analysis.alarm import Alarm
from loadstone.analysis.goal import Goal
from loadstone.analysis.iterations import iterations
from loadstone.analysis.judge import Offer, judge
from loadstone.analysis.model import TICK_S, Trial
from loadstone.analysis.summary import summary_of
from loadstone.analysis.ticks import ticks_of
from loadstone.engine.health import Health
from loadstone.engine.samples import Samples
from loadstone.plan.load import BandLoad, ClosedLoad, Load, OpenLoad, ReplayLoad, StagedLoad


def alarm(load: Load, alarm_s: float | None, goal: Goal) -> Alarm:
    """Give the watch that stops a trial which is hopeless."""
    return Alarm(rate_rps(load), alarm_s, goal.error_share)


def assess(offer: Offer, samples: Samples, health: Health, goal: Goal) -> Trial:
    """Sum up and judge what was measured while `offer` was made."""
    seconds = offered_s(samples, offer)
    rows = iterations(samples)
    counts = ticks_of(rows, seconds)
    summary = summary_of(rows, counts, offer.rate_rps)
    return Trial(
        number=offer.number,
        rate_rps=offer.rate_rps,
        purpose=offer.purpose,
        planned_s=seconds if isinf(offer.planned_s) else offer.planned_s,
        summary=summary,
        ticks=counts,
        health=health,
        verdict=judge(offer, summary, counts, health, goal),
    )


def rate_rps(load: Load) -> float | None:
    """Give the constant rate that is offered, where there is one."""
    match load:
        case OpenLoad():
            return load.rate_rps
        case StagedLoad() | ReplayLoad() | ClosedLoad() | BandLoad():
            return None


def offered_s(samples: Samples, offer: Offer) -> float:
    """Give for how long load was offered: less than planned when the trial was stopped."""
    if not len(samples):
        return 0.0
    # The next arrival would have come a gap later; without a rate, within a tick.
    gap_s = TICK_S if offer.rate_rps is None else 1 / offer.rate_rps
    return min(offer.planned_s, float(samples.due_ns.max()) / 1e9 + gap_s)
