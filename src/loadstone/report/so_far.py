"""Bounds on N from the trials of an interrupted search."""

from collections.abc import Sequence

from loadstone.analysis.model import Trial, TrialState
from loadstone.report import figures
from loadstone.search.blocks import METERED
from loadstone.search.low_load import is_low_load
from loadstone.search.model import Capacity


def capacity_so_far(trials: Sequence[Trial]) -> Capacity | None:
    """Return the bounds that the trials of an interrupted search show; None if they show nothing.

    It has no N and no confidence: the search did not confirm what it saw.
    """
    valid = [trial for trial in trials if trial.is_valid and trial.status == "finished"]
    low = max(_rates(valid, TrialState.SUSTAINED), default=None)
    high = min(_rates(valid, TrialState.DEGRADED), default=None)
    if low is not None and high is not None and low >= high:
        low = high = None  # they contradict each other
    closed = [
        trial
        for trial in valid
        if trial.rate_rps is None and not is_low_load(trial) and trial.stats.ok
    ]
    full = [trial for trial in closed if trial.purpose.startswith(METERED)]
    words = ["the search was interrupted, so nothing is confirmed"]
    if full:
        completed = figures.rate(full[-1].stats.throughput_rps)
        words.append(f"N so far: about {completed}/s, which the full service completed")
    elif closed:
        most = figures.rate(max(trial.stats.throughput_rps for trial in closed))
        words.append(f"N so far: at least about {most}/s, which completed with several at a time")
    elif low is None and high is None:
        return None
    return Capacity(None, low, high, 0.0, tuple(words))


def _rates(trials: Sequence[Trial], state: TrialState) -> list[float]:
    return [
        trial.rate_rps
        for trial in trials
        if trial.rate_rps is not None and trial.verdict.state is state
    ]
