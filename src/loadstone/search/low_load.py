"""A phase at low load, from which capacity is predicted.

Requests come in bursts of as many as the service can work on side by side. What a request costs
beside others is what it costs under full load: on the processors of most clouds a request that has
the machine to itself takes more CPU time.
"""

from collections.abc import Generator, Iterable

from loadstone.analysis.model import Trial
from loadstone.monitor.prediction import side_by_side
from loadstone.plan.load import ClosedLoad, OpenLoad, ReplayLoad
from loadstone.search.model import Strategy, TrialRequest

ALONE_S = 4.0
LOW_S = 30.0
SHARE = 0.3  # of what one request after the other makes
LARGEST_BURST = 16
PURPOSE = "low load"  # of the trial that capacity is predicted from
LOAD_S = ALONE_S + LOW_S


def of_low_load(trials: Iterable[Trial]) -> Trial | None:
    """Return the trial that capacity is predicted from, or None if it was not made."""
    return next((trial for trial in trials if trial.purpose == PURPOSE), None)


def low_load(ceiling_rps: float) -> Generator[TrialRequest, Trial, None]:
    """Measure what one request after the other makes, then load with a share of that."""
    trial = yield TrialRequest(ClosedLoad(1, ALONE_S), "one request after the other")
    if trial.stats.ok:
        rate_rps = min(SHARE / trial.stats.service.mean_s, ceiling_rps)
        seen = trial.resources.observation if trial.resources else None
        size = min(side_by_side(seen), LARGEST_BURST) if seen else 1
        yield TrialRequest(_bursts(size, rate_rps, ceiling_rps), PURPOSE)


def after_low_load(ceiling_rps: float, search: Strategy) -> Strategy:
    """Load little, then search."""
    yield from low_load(ceiling_rps)
    return (yield from search)


def _bursts(size: int, rate_rps: float, ceiling_rps: float) -> OpenLoad | ReplayLoad:
    """Return bursts of so many, evenly spaced; within one the highest rate allowed is kept."""
    if size == 1:
        return OpenLoad(rate_rps, LOW_S)
    count = max(int(LOW_S * rate_rps / size), 1)
    begins_s = (number * size / rate_rps for number in range(count))
    return ReplayLoad(
        tuple(begin_s + place / ceiling_rps for begin_s in begins_s for place in range(size))
    )
