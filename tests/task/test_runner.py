"""Runners as loads of the engine."""

import math

import pytest

from loadstone.plan.load import ClosedLoad, OpenLoad
from loadstone.plan.runner import NotYet, Pacing, pacing
from loadstone.task.model import Constant, ConstantForDuration, Ramp, Rps, Serial


@pytest.mark.parametrize(
    ("runner", "load"),
    [
        (Constant(100, 4), ClosedLoad(4, iterations=100)),
        (Serial(5), ClosedLoad(1, iterations=5)),
        (ConstantForDuration(30, 4, None), ClosedLoad(4, duration_s=30)),
        (ConstantForDuration(0, 4, None), ClosedLoad(4, iterations=4)),
    ],
)
def test_closed_runners_are_closed_loads(runner, load):
    assert pacing(runner) == Pacing(load)


@pytest.mark.parametrize(("times", "rate"), [(1, 10.0), (7, 0.3), (1000, 333.3), (99999, 777.7)])
def test_a_rate_makes_exactly_times_iterations(times, rate):
    made = pacing(Rps(times, rate))
    assert isinstance(made.load, OpenLoad)
    due = [i for i in range(times - 2, times + 2) if 0 <= i / rate < made.load.duration_s]
    assert max(due) == times - 1


def test_limits_are_handed_on():
    assert pacing(Rps(10, 5.0, 3.0, 2)) == Pacing(OpenLoad(5.0, 1.9), 3.0, 2)
    assert math.isclose(pacing(Constant(1, 1, 2.5)).timeout_s, 2.5)


def test_a_rising_rate_is_refused_in_words():
    refused = pacing(Rps(100, Ramp(1, 10, 1)))
    assert isinstance(refused, NotYet)
    assert "rises from 1 to 10" in refused.words
