"""No plan reaches an engine without the limits that the user permits."""

from dataclasses import replace

import pytest
from simulator.engine import VirtualEngine
from simulator.loads import SimulatedService
from simulator.service import Service
from simulator.time import VirtualTime

from loadstone.engine import gate
from loadstone.engine.gate import Allowance
from loadstone.errors import InvalidInput, LoadTimeUsed
from loadstone.plan.load import OpenLoad
from loadstone.plan.model import Origin, Plan
from loadstone.plan.script import Step, text

ELSEWHERE = Plan(
    Origin("http", "198.51.100.7", 5000),  # TEST-NET-2: nobody's
    (Step("get", "GET", text("/"), expect_status=(200,)),),
    OpenLoad(1.0, 1.0),
)


def test_a_target_elsewhere_is_refused_before_the_engine() -> None:
    engine = VirtualEngine({}, VirtualTime())
    with pytest.raises(InvalidInput, match="--yes-load-this-target"):
        gate.run(ELSEWHERE, Allowance(5000.0, 60.0), engine=engine)
    assert not engine.plans


def test_each_plan_has_the_limits_that_are_permitted() -> None:
    engine = VirtualEngine({5000: SimulatedService(Service(), 1)}, VirtualTime())
    here = replace(ELSEWHERE, origin=Origin("http", "127.0.0.1", 5000))
    gate.run(here, Allowance(40.0, 7.5), engine=engine)
    (plan,) = engine.plans
    assert (plan.limits.max_rate_rps, plan.limits.load_s) == (40.0, 7.5)
    assert plan.limits.loopback_only
    gate.run(here, Allowance(40.0, 7.5, beyond_loopback=True), engine=engine)
    assert not engine.plans[-1].limits.loopback_only


def test_nothing_is_sent_when_the_load_time_is_used_up() -> None:
    engine = VirtualEngine({}, VirtualTime())
    with pytest.raises(LoadTimeUsed):
        gate.run(ELSEWHERE, Allowance(40.0, 0.0), engine=engine)
    assert not engine.plans
