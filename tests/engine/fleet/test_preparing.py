"""A host that cannot prepare its part: it is named, and the others give up theirs."""

import time
from dataclasses import dataclass, field
from typing import Any

import pytest

from loadstone.engine.fleet import fleet as fleets
from loadstone.engine.fleet.fleet import Fleet, FleetHost
from loadstone.engine.fleet.member import MemberFacts, network
from loadstone.engine.version import version
from loadstone.errors import EnvironmentUnusable
from loadstone.plan.load import ClosedLoad
from loadstone.plan.model import Origin, Plan

pytestmark = pytest.mark.pure

PLAN = Plan(Origin("http", "127.0.0.1", 1), (), ClosedLoad(2, 1.0))


@dataclass
class Host:
    """A member whose calls are counted; those in `fails` raise what is given."""

    fails: dict[str, Exception] = field(default_factory=dict)
    called: list[str] = field(default_factory=list)

    def __getattr__(self, name: str) -> Any:
        def call(*_: object) -> Any:
            self.called.append(name)
            return Answer(self.fails.get(name))

        return call


@dataclass
class Answer:
    """The future result of a remote call, a `RemoteAnswer`: a time, or an error."""

    error: Exception | None

    def result(self, timeout: float | None = None) -> int:
        assert timeout is not None
        if self.error is not None:
            raise self.error
        return time.time_ns()


def fleet_of(*members: Host) -> Fleet:
    facts = MemberFacts("host", 1, version(), 1, network())
    return Fleet(
        tuple(FleetHost(one, facts, f"host {number}") for number, one in enumerate(members))
    )


@pytest.mark.parametrize(
    ("call", "error", "said"),
    [
        ("prepare", TimeoutError(), f"no answer within {fleets.PREPARE_S:g} s"),
        ("now_ns", TimeoutError(), f"no answer within {fleets.ANSWER_S:g} s"),
        ("prepare", EnvironmentUnusable("the connection was refused"), "connection was refused"),
    ],
)
def test_the_others_give_up_what_they_have_prepared(call: str, error: Exception, said: str) -> None:
    good, bad = Host(), Host({call: error})
    with pytest.raises(EnvironmentUnusable, match="host 1") as raised:
        fleet_of(good, bad).run(PLAN)
    assert said in str(raised.value)
    assert good.called[-1] == "abandon"
    assert "start" not in good.called + bad.called
