"""Bounds on N from the trials of an interrupted search."""

from collections.abc import Sequence

from loadstone.analysis.model import Trial, TrialState
from loadstone.report import figures
from loadstone.search.blocks import METERED
from loadstone.search.low_load import is_low_load
from loadstone.search.model import Capacity
from loadstone.search.per_user import is_of_fewer_users

SLOWER = 1.1  # times what the full service completes: more than noise


def capacity_so_far(trials: Sequence[Trial]) -> Capacity | None:
    """Return the bounds that the trials of an interrupted search show; None if they show nothing.

    It has no N and no confidence: the search did not confirm what it saw.
    """
    valid = [
        trial
        for trial in trials
        if trial.is_valid and trial.status == "finished" and not is_of_fewer_users(trial)
    ]
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
    seen = full[-1:] or closed
    most_rps = max((trial.stats.throughput_rps for trial in seen), default=0.0)
    most = figures.rate(most_rps)
    if full and low is not None and low > SLOWER * most_rps:
        low = None  # from before the service became slower
    words = ["the search was interrupted, so nothing is confirmed"]
    if seen and high is not None and most_rps > high:  # it misses an objective, or refuses requests
        failed = figures.rate(high)
        words.append(f"{most}/s completed with several at a time, but {failed}/s failed")
    elif full:
        words.append(f"N so far: about {most}/s, which the full service completed")
    elif closed:
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
