"""Runs a strategy with a function that runs trials."""

from dataclasses import replace

from loadstone.analysis.model import Trial
from loadstone.errors import LoadTimeUsed
from loadstone.search.model import Capacity, Measure, Strategy


def search(strategy: Strategy, measure: Measure) -> tuple[Capacity, tuple[Trial, ...]]:
    """Return the capacity and all trials of a strategy, numbered from 1."""
    trials: list[Trial] = []
    try:
        request = next(strategy)
        while True:
            trials.append(replace(measure(request), number=len(trials) + 1))
            request = strategy.send(trials[-1])
    except LoadTimeUsed as used:
        return _ended(strategy, used), tuple(trials)
    except StopIteration as end:
        capacity: Capacity = end.value
        return capacity, tuple(trials)


def _ended(strategy: Strategy, used: LoadTimeUsed) -> Capacity:
    """Let a strategy end with what it knows."""
    try:
        while True:  # after the search itself, it may ask for trials of the curve or the profiler
            strategy.throw(used)
    except StopIteration as end:
        capacity: Capacity = end.value
        return capacity
    except LoadTimeUsed:
        return Capacity(None, None, None, 0.0, (str(used),))
