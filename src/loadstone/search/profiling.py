"""Trials at N after a search: one with a profiler beside it, one without."""

from collections.abc import Iterable

from loadstone.analysis.model import Trial
from loadstone.plan.load import OpenLoad
from loadstone.search.model import Strategy, TrialRequest

SECONDS = 12.0
SHARE = 0.95  # of N: the knee
LOAD_S = 2 * SECONDS
PURPOSE = "profile"
WITHOUT = "the same without the profiler"


def with_profile(ceiling_rps: float, search: Strategy) -> Strategy:
    """Search, then load with nearly N twice: without and with the profiler."""
    found = yield from search
    n_rps = found.rate_rps or found.low_rps
    if n_rps:
        load = OpenLoad(min(SHARE * n_rps, ceiling_rps), SECONDS)
        yield TrialRequest(load, WITHOUT)
        yield TrialRequest(load, PURPOSE)
    return found


def without_profiler(trials: Iterable[Trial]) -> Trial | None:
    """Return the trial that the profiled one is compared with, or None if there is none."""
    return next((trial for trial in trials if trial.purpose == WITHOUT), None)
