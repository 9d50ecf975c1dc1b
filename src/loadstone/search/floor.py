"""The least rate that N is asked to reach: `capacity --fail-below`."""

from enum import StrEnum
from typing import assert_never

from loadstone.search.model import Capacity


class FloorOutcome(StrEnum):
    """What the interval of N says about the rate that was asked for."""

    REACHED = "reached"
    MISSED = "missed"
    UNDECIDED = "undecided"


def judge_floor(capacity: Capacity | None, least_rps: float) -> FloorOutcome:
    """Return whether all of the interval of N lies at or above `least_rps`, or below it."""
    low = capacity.low_rps if capacity else None
    high = capacity.high_rps if capacity else None
    if low is not None and low >= least_rps:
        return FloorOutcome.REACHED
    if high is not None and high < least_rps:
        return FloorOutcome.MISSED
    return FloorOutcome.UNDECIDED


def floor_words(capacity: Capacity | None, least_rps: float) -> str:
    """Return the outcome as a sentence."""
    outcome = judge_floor(capacity, least_rps)
    asked = f"the {least_rps:g}/s of --fail-below"
    match outcome:
        case FloorOutcome.REACHED:
            return f"the service bears {asked}: the lower bound of N is not below it"
        case FloorOutcome.MISSED:
            return f"the service does not bear {asked}: the upper bound of N is below it"
        case FloorOutcome.UNDECIDED:
            return (
                f"whether the service bears {asked} cannot be told: the interval of N contains it, "
                "or has no bound on that side; a longer --budget narrows the interval, and a "
                "higher --max-rate lifts the bound of the load that is allowed"
            )
        case _:
            assert_never(outcome)
