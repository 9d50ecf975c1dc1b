"""The binary search of ISP RAS 2015 over whole numbers of requests per second.

"A performance testing and stress testing of cloud platform central identity: OpenStack Keystone
case study", Proceedings of ISP RAS 27(5). A rate is degraded on any error, or when the slope a of
y = ax + b (response time over start time) is at least 0.01. The paper gives no unit, and its text
says 360 s a trial. The authors' script (ispras/keystone_full_deployment) takes seconds per second
and 120 s a trial, and then runs N - 1, N + 1, N + 3, N + 5 and 2 N.
"""

import math
from dataclasses import dataclass

from loadstone.analysis.model import Trial
from loadstone.plan.load import OpenLoad
from loadstone.search.guard import guarded
from loadstone.search.model import Capacity, CapacityKind, Part, Strategy
from loadstone.search.session import Session
from loadstone.search.settings import SearchSettings

SLOPE_LIMIT = 0.01  # s per s
HIGHEST_RPS = 200
LOWEST_CEILING_RPS = 2  # the first whole number between 0 and it is 1


@dataclass(frozen=True, slots=True)
class Procedure:
    """Length of a trial, and the rates that are run again once N is found."""

    trial_s: float
    offsets: tuple[int, ...]  # from N
    runs_double: bool  # 2 N, too
    # Share of simulated services whose capacity lies within [N, N + 1] (docs/methodology.md).
    confidence: float

    @property
    def most_trials(self) -> int:
        """Trials of a whole search: those that halve the range of rates, and those at the end."""
        return math.ceil(math.log2(HIGHEST_RPS)) + len(self.offsets) + self.runs_double


SCRIPT = Procedure(trial_s=120.0, offsets=(-1, 1, 3, 5), runs_double=True, confidence=0.46)
TEXT = Procedure(trial_s=360.0, offsets=(-1, 1), runs_double=False, confidence=0.43)


def isp_ras_2015(settings: SearchSettings, procedure: Procedure) -> Strategy:
    """Search as the authors did, whatever time it takes."""
    session = Session(settings)
    return guarded(session, _search(session, procedure))


def _search(session: Session, procedure: Procedure) -> Strategy:
    good, bad = 0, int(min(HIGHEST_RPS, session.settings.ceiling_rps))
    slopes: dict[int, str] = {}
    while bad - good > 1 and session.left_s >= procedure.trial_s:
        rate = (good + bad) // 2
        trial = yield from _measure(session, procedure, rate)
        slopes[rate] = f"{rate}/s: slope {trial.stats.latency_slope:.2g} s per s"
        if _is_degraded(trial):
            bad = rate
        else:
            good = rate
    notes = tuple(slopes[rate] for rate in (good, bad) if rate in slopes)
    if not slopes:
        return Capacity(None, None, None, 0.0, (_untried(session, procedure),))
    if bad - good > 1:
        low = float(good) if good in slopes else None
        high = float(bad) if bad in slopes else None
        spent = f"the budget ended the search: each trial takes {procedure.trial_s:.0f} s"
        return Capacity(None, low, high, 0.0, (spent, *notes))
    outcomes, more = yield from _confirm(session, procedure, good)
    notes += more
    if bad not in slopes and not outcomes.get(bad, False):
        # The search begins below the highest rate without having run it.
        held = float(max((good, *(rate for rate, failed in outcomes.items() if not failed))))
        bound = f"at least {held:g}/s: no higher rate was degraded"
        return Capacity(held, held, None, 0.0, (bound, *notes), CapacityKind.CEILING)
    if good == 0:
        return Capacity(None, None, 1.0, 0.0, ("no more than 1/s", *notes))
    return Capacity(float(good), float(good), float(good + 1), procedure.confidence, notes)


def _untried(session: Session, procedure: Procedure) -> str:
    ceiling_rps = session.settings.ceiling_rps
    if ceiling_rps < LOWEST_CEILING_RPS:
        return (
            f"no rate was tried: the method tries whole numbers below the highest rate allowed, "
            f"which is {ceiling_rps:.4g}/s"
        )
    return f"no rate was tried: each trial takes {procedure.trial_s:.0f} s"


def _measure(session: Session, procedure: Procedure, rate: int) -> Part[Trial]:
    load = OpenLoad(float(rate), procedure.trial_s)
    return (yield from session.run_trial(load, "binary search of ISP RAS 2015"))


def _confirm(
    session: Session, procedure: Procedure, found: int
) -> Part[tuple[dict[int, bool], tuple[str, ...]]]:
    """Return whether each of these rates was degraded, and notes on those that contradict N."""
    outcomes: dict[int, bool] = {}
    notes: tuple[str, ...] = ()
    rates = {found + offset for offset in procedure.offsets}
    if procedure.runs_double:
        rates.add(2 * found)
    for rate in sorted(rates - {found}):
        if not 1 <= rate <= session.settings.ceiling_rps:
            continue
        if session.left_s < procedure.trial_s:
            return outcomes, (*notes, f"not confirmed at {rate}/s: the budget ended")
        trial = yield from _measure(session, procedure, rate)
        outcomes[rate] = _is_degraded(trial)
        if outcomes[rate] is not (rate > found):
            verdict = "not degraded" if rate > found else "degraded"
            notes += (f"its own confirmation contradicts it: {rate}/s was {verdict}",)
    return outcomes, notes


def _is_degraded(trial: Trial) -> bool:
    return trial.stats.failed > 0 or trial.stats.latency_slope >= SLOPE_LIMIT
