"""Minimum rate that N must reach: `capacity --fail-below`."""

from enum import StrEnum

from loadstone.search.model import Capacity


class FloorOutcome(StrEnum):
    """Position of the interval of N relative to the required rate."""

    REACHED = "reached"
    MISSED = "missed"
    UNDECIDED = "undecided"


def judge_floor(capacity: Capacity | None, least_rps: float) -> FloorOutcome:
    """Return whether the whole interval of N is at or above `least_rps`, or below it.

    A single bound without N is a rate that was tried, perhaps only once: it decides nothing.
    """
    if capacity is None or (capacity.rate_rps is None and not capacity.is_range):
        return FloorOutcome.UNDECIDED
    low, high = capacity.low_rps, capacity.high_rps
    if low is not None and low >= least_rps:
        return FloorOutcome.REACHED
    if high is not None and high < least_rps:
        return FloorOutcome.MISSED
    return FloorOutcome.UNDECIDED
