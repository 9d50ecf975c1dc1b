"""Runners as loads of the engine."""

import math

import numpy as np
import pytest

from loadstone.plan.arrivals import due_s
from loadstone.plan.load import ClosedLoad, OpenLoad, Stage
from loadstone.rally.runner import Pacing, pacing
from loadstone.rally.task.model import Constant, ConstantForDuration, Ramp, Rps, Serial


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


def test_a_rising_rate_is_stairs_that_make_exactly_times_iterations():
    made = pacing(Rps(100, Ramp(10, 30, 10, 2)))
    # 20 and 40 in two stages of 2 s, the rest at the top.
    top_s = pytest.approx(40 / 30)
    assert made.load.stages == (Stage(2, 10, 10), Stage(2, 20, 20), Stage(top_s, 30, 30))
    due = list(due_s(made.load))
    assert len(due) == made.load.iterations == 100
    assert due[:3] == pytest.approx([0, 0.1, 0.2])
    assert due[20:22] == pytest.approx([2, 2.05])
    assert due[60:62] == pytest.approx([4, 4 + 1 / 30])


@pytest.mark.parametrize("times", [1, 7, 60, 61, 999])
def test_stairs_end_with_their_iterations_wherever_that_is(times):
    assert len(list(due_s(pacing(Rps(times, Ramp(3.3, 71, 0.7, 1.1))).load))) == times


def test_rally_keeps_a_rate_by_its_average_in_each_process():
    offsets_s = pacing(Rps(6, 10.0), rally_processes=2).load.offsets_s
    # Process 2 begins half an interval later, not a whole one.
    assert offsets_s == pytest.approx([0, 0.05, 0.2, 0.25, 0.4, 0.45])


def test_rallys_ramp_is_as_steep_as_rallys():
    """Rally 5.1.1 with {start: 10, end: 30, step: 10, duration: 5} and one process."""
    offsets_s = pacing(Rps(900, Ramp(10, 30, 10, 5)), rally_processes=1).load.offsets_s
    per_second = np.histogram(offsets_s, np.arange(31))[0]
    assert np.abs(per_second[:5] - [2, 7, 11, 15, 18]).max() <= 1
    # As measured: it overshoots to 55 and more, then keeps 30.
    assert per_second[14] == pytest.approx(58, abs=1)
    assert set(per_second[16:30].tolist()) == {30}


def test_rallys_ramp_ends_at_its_top_in_each_process():
    offsets_s = pacing(Rps(3000, Ramp(10, 30, 10, 5)), rally_processes=2).load.offsets_s
    per_second = np.histogram(offsets_s, np.arange(35))[0]
    # Measured before its top: 97, then 101.
    assert per_second[24:26].tolist() == pytest.approx([98, 102], abs=2)
    assert per_second[32] == pytest.approx(2 * 30, abs=2)
