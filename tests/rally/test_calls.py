"""Python functions as a workload."""

import pytest

from loadstone.engine.callables.model import DRAIN_S, Function
from loadstone.workload.functions import Calls


@pytest.mark.parametrize(("timeout_s", "drain_s"), [(None, DRAIN_S), (5, DRAIN_S), (3600, 3600)])
def test_the_last_iteration_may_take_its_whole_time_out(
    timeout_s: float | None, drain_s: float
) -> None:
    calls = Calls("mine", "", Function("a", "scenario"), timeout_s=timeout_s)
    assert calls.drain_s == drain_s
