"""Minimum rate that N must reach: `capacity --fail-below`."""

from enum import StrEnum
from typing import assert_never

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


def floor_message(capacity: Capacity | None, least_rps: float) -> str:
    """Return the outcome as a sentence."""
    outcome = judge_floor(capacity, least_rps)
    floor = f"the {least_rps:g}/s of --fail-below"
    match outcome:
        case FloorOutcome.REACHED:
            return f"the service sustains {floor}: the lower bound of N is not below it"
        case FloorOutcome.MISSED:
            return f"the service does not bear {floor}: the upper bound of N is below it"
        case FloorOutcome.UNDECIDED:
            return (
                f"whether the service sustains {floor} is undecided: the interval of N contains "
                "it, or has no bound on that side; a longer --budget narrows the interval, and a "
                "higher --max-rate lifts the bound of the load that is allowed"
            )
        case _:
            assert_never(outcome)
