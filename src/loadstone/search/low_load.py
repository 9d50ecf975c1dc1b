"""A phase at low load, from which capacity is predicted."""

from collections.abc import Generator, Iterable

from loadstone.analysis.model import Trial
from loadstone.plan.load import ClosedLoad, OpenLoad
from loadstone.search.model import Strategy, TrialRequest

ALONE_S = 4.0
LOW_S = 30.0
SHARE = 0.3  # of what one request after the other makes
PURPOSE = "low load"  # of the trial that capacity is predicted from
LOAD_S = ALONE_S + LOW_S


def of_low_load(trials: Iterable[Trial]) -> Trial | None:
    """Return the trial that capacity is predicted from, or None if it was not made."""
    return next((trial for trial in trials if trial.purpose == PURPOSE), None)


def low_load(ceiling_rps: float) -> Generator[TrialRequest, Trial, None]:
    """Measure what one request after the other makes, then load with a share of that."""
    trial = yield TrialRequest(ClosedLoad(1, ALONE_S), "one request after the other")
    if trial.stats.ok:
        rate_rps = SHARE / trial.stats.service.mean_s
        yield TrialRequest(OpenLoad(min(rate_rps, ceiling_rps), LOW_S), PURPOSE)


def after_low_load(ceiling_rps: float, search: Strategy) -> Strategy:
    """Load little, then search."""
    yield from low_load(ceiling_rps)
    return (yield from search)
