"""Minimum rate that N must reach: `capacity --fail-below`."""

from enum import StrEnum

from loadstone.search.model import Capacity


class FloorOutcome(StrEnum):
    """Position of the interval of N relative to the required rate."""

    REACHED = "reached"
    MISSED = "missed"
    UNDECIDED = "undecided"


def judge_floor(capacity: Capacity | None, least_rps: float) -> FloorOutcome:
    """Return whether the whole interval of N is at or above `least_rps`, or below it."""
    low = capacity.low_rps if capacity else None
    high = capacity.high_rps if capacity else None
    if low is not None and low >= least_rps:
        return FloorOutcome.REACHED
    if high is not None and high < least_rps:
        return FloorOutcome.MISSED
    return FloorOutcome.UNDECIDED
