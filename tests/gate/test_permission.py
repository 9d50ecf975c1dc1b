"""A plan for a host elsewhere reaches no engine without the user's word."""

import pytest
from simulator.engine import VirtualEngine
from simulator.time import VirtualTime

from loadstone.engine import gate
from loadstone.engine.gate import Allowance
from loadstone.errors import InvalidInput
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
