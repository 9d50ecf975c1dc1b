"""The limits that the engine keeps whatever a load asks for; counted at the target."""

import time

import numpy as np
import pytest
from loopback import Connection, Serve

from loadstone.engine.local import run
from loadstone.errors import InvalidInput
from loadstone.plan.load import (
    BandLoad,
    ClosedLoad,
    Load,
    OpenLoad,
    ReplayLoad,
    Stage,
    StagedLoad,
)
from loadstone.plan.model import Limits, Origin, Placement, Plan
from loadstone.plan.script import Step, text

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
GET = Step("get", "GET", text("/"))
# What two requests may come closer together at the target than they were begun: a busy machine.
JITTER_S = 0.1
LOADS: dict[str, Load] = {
    "open": OpenLoad(400, 0.3),
    "poisson": OpenLoad(400, 0.3, "poisson", seed=1),
    "stages": StagedLoad((Stage(0.3, 0.0, 400.0), Stage(0.3, 400.0, 0.0))),
    "replay": ReplayLoad((0.5,) * 120),
    "closed": ClosedLoad(20, duration_s=2.5),
    "closed, so many": ClosedLoad(20, iterations=120),
    "band": BandLoad(4, 40, fill_rps=1000.0, ebb_rps=200.0, duration_s=2.5),
}


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("kind", LOADS)
def test_the_target_is_never_sent_more_than_the_ceiling_in_any_second(
    serve: Serve, kind: str, threads: int
) -> None:
    seen: list[float] = []

    def behave(connection: Connection) -> None:
        while connection.request() is not None:
            seen.append(time.monotonic())
            connection.send(OK)

    limits = Limits(max_rate_rps=50.0)
    plan = Plan(
        serve(behave).origin, (GET,), LOADS[kind], limits=limits, placement=Placement(threads)
    )
    began_s = time.monotonic()
    measured = run(plan)
    health = measured.health
    seen.sort()
    # A second, and one more for each thread that begins with it.
    most = 50 + threads
    assert len(seen) > most
    # A server on a busy machine sees a request later than it was sent, and never earlier.
    assert all(at_s - began_s > (k - threads) / 50.0 - JITTER_S for k, at_s in enumerate(seen))
    sent_s = np.sort(measured.samples.sent_ns[measured.samples.sent_ns >= 0]) / 1e9
    fastest_s = (sent_s[most:] - sent_s[:-most]).min()
    assert fastest_s > 1 - JITTER_S, f"{most + 1} requests in {fastest_s:.3f} s"
    assert health.throttled > 0
    assert health.ceiling.startswith("the highest rate allowed, 50/s, held back ")


def test_a_load_below_the_ceiling_is_not_said_to_be_held_back(serve: Serve) -> None:
    def slow(connection: Connection) -> None:
        while connection.request() is not None:
            serve_slowly.wait(0.05)
            connection.send(OK)

    server = serve(slow)
    serve_slowly = server.stopping
    for load in (OpenLoad(100, 1.0), ClosedLoad(5, duration_s=1.0)):
        plan = Plan(server.origin, (GET,), load, limits=Limits(max_rate_rps=2000.0))
        measured = run(plan)
        assert measured.health.ceiling == ""
        assert not measured.health.is_cut_short


@pytest.mark.parametrize("kind", ["open", "closed", "band"])
def test_the_load_ends_when_it_may_last_no_longer(serve: Serve, kind: str) -> None:
    def behave(connection: Connection) -> None:
        while connection.request() is not None:
            connection.send(OK)

    plan = Plan(serve(behave).origin, (GET,), LOADS[kind], limits=Limits(load_s=0.2))
    measured = run(plan)
    sent = measured.samples.sent_ns[measured.samples.sent_ns >= 0]
    assert len(sent) > 0
    assert measured.samples.due_ns.max() < 0.2e9
    assert measured.health.is_cut_short


def test_what_waits_for_a_connection_when_the_load_ends_is_not_sent(serve: Serve) -> None:
    reached: list[int] = []

    def behave(connection: Connection) -> None:
        while connection.request() is not None:
            reached.append(1)
            server.stopping.wait(1.0)
            connection.send(OK)

    server = serve(behave)
    # Due within half a second, all but two of them wait when the load ends.
    plan = Plan(server.origin, (GET,), OpenLoad(100, 0.5), limits=Limits(2, load_s=0.6))
    measured = run(plan)
    assert len(reached) == 2
    assert len(measured.samples) == 50
    assert measured.health.is_cut_short


@pytest.mark.parametrize("host", ["192.0.2.1", "2001:db8::1", "0.0.0.0"])
def test_an_address_beyond_loopback_is_not_dialled_unless_permitted(host: str) -> None:
    plan = Plan(Origin("http", host, 9), (GET,), OpenLoad(1, 1.0))
    with pytest.raises(InvalidInput, match=r"origin\.host .* is not loopback"):
        run(plan)
