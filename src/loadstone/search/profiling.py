"""Runs trials near N after a search: one with a profiler, one without."""

import contextlib
from collections.abc import Iterable

from loadstone.analysis.model import Trial
from loadstone.errors import LoadTimeUsed
from loadstone.plan.load import OpenLoad
from loadstone.search.model import Strategy, TrialRequest

SECONDS = 12.0
SHARE = 0.95  # of N: the knee
LOAD_S = 2 * SECONDS
PURPOSE = "profile"
WITHOUT = "the same without the profiler"


def with_profile(ceiling_rps: float, search: Strategy) -> Strategy:
    """Search, then run two trials at nearly N: without and with the profiler."""
    found = yield from search
    n_rps = found.rate_rps or found.low_rps
    if n_rps:
        load = OpenLoad(min(SHARE * n_rps, ceiling_rps), SECONDS)
        with contextlib.suppress(LoadTimeUsed):  # late responses took it: N is known all the same
            yield TrialRequest(load, WITHOUT, found=found)
            yield TrialRequest(load, PURPOSE, found=found)
    return found


def without_profiler(trials: Iterable[Trial]) -> Trial | None:
    """Return the trial to compare the profiled one with, or None."""
    return next((trial for trial in trials if trial.purpose == WITHOUT), None)
