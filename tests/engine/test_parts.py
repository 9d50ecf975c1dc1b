"""Several engines send the parts of one load: together what one of them would send alone."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from loopback import OK, Connection, Serve, Server

from loadstone.engine.local import run
from loadstone.engine.samples import Outcome, Samples
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
from loadstone.plan.model import Placement, Plan
from loadstone.plan.script import Column, Iteration, Step, Text

PARTS = 3
STEP = Step("post", "POST", (Text("/"), Column("user")), body=(Iteration("n-"),))
USERS = {"user": tuple(f"u{number}" for number in range(7))}


def recording(serve: Serve, seen: list[bytes]) -> Server:
    def behave(connection: Connection) -> None:
        while (request := connection.request()) is not None:
            seen.append(request)
            connection.send(OK)

    return serve(behave)


def parts_of(plan: Plan) -> list[Samples]:
    plans = [
        replace(plan, placement=replace(plan.placement, part=part, parts=PARTS))
        for part in range(PARTS)
    ]
    with ThreadPoolExecutor(PARTS) as pool:
        return [measured.samples for measured in pool.map(run, plans)]


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(
    "load",
    [
        OpenLoad(200, 0.5),
        OpenLoad(200, 0.5, "poisson", seed=5),
        OpenLoad(200, 0.5, iterations=50),
        StagedLoad((Stage(0.3, 10, 300), Stage(0.2, 100, 0)), "constant", 0, None),
        ReplayLoad((0.0, 0.0, 0.1, 0.25, 0.25, 0.3, 0.4)),
    ],
)
def test_the_parts_together_send_what_one_engine_sends(
    serve: Serve, load: Load, threads: int
) -> None:
    seen_alone: list[bytes] = []
    alone = recording(serve, seen_alone)
    placement = Placement(threads)
    plan = Plan(alone.origin, (STEP,), load, USERS, placement=placement)
    whole = run(plan).samples
    seen: list[bytes] = []
    parts = parts_of(replace(plan, origin=recording(serve, seen).origin))
    schedule = [
        pair
        for part in parts
        for pair in zip(part.iteration.tolist(), part.due_ns.tolist(), strict=True)
    ]
    expected = zip(whole.iteration.tolist(), whole.due_ns.tolist(), strict=True)
    assert sorted(schedule) == sorted(expected)
    assert sorted(_without_host(seen)) == sorted(_without_host(seen_alone))
    for number, part in enumerate(parts):
        assert {iteration % PARTS for iteration in part.iteration} <= {number}


def _without_host(requests: list[bytes]) -> list[list[bytes]]:
    """The requests' lines; the two servers have different ports."""
    return [
        [line for line in request.split(b"\r\n") if not line.startswith(b"Host:")]
        for request in requests
    ]


def test_connections_of_different_parts_have_different_numbers(serve: Serve) -> None:
    plan = Plan(recording(serve, []).origin, (STEP,), OpenLoad(200, 0.5), USERS)
    numbers = [set(part.connection.tolist()) for part in parts_of(plan)]
    assert sum(map(len, numbers)) == len(set.union(*numbers))


def test_the_parts_of_a_closed_loop_share_workers_and_iterations(serve: Serve) -> None:
    server = recording(serve, [])
    load = ClosedLoad(4, iterations=100)
    parts = parts_of(Plan(server.origin, (STEP,), load, USERS, placement=Placement(2)))
    iterations = [number for part in parts for number in part.iteration.tolist()]
    assert sorted(iterations) == list(range(100))
    assert {Outcome(code) for part in parts for code in part.outcome} == {Outcome.OK}
    first, *others = (len(set(part.connection)) for part in parts)
    assert others == [1, 1]
    assert first <= 2  # a worker that wakes late finds no iteration left


@pytest.mark.parametrize(
    ("load", "placement", "words"),
    [
        (
            OpenLoad(1, 1),
            Placement(part=2, parts=2),
            "placement.part must be below placement.parts",
        ),
        (OpenLoad(1, 1), Placement(parts=0), "placement.parts must be at least 1"),
        (BandLoad(1, 2, 1, 1, 1), Placement(parts=2), "placement.parts must be at most 1 for this"),
        (ClosedLoad(2, 1), Placement(parts=3), "placement.parts must be at most 2 for this load"),
        (
            OpenLoad(1, 1),
            Placement(256, parts=256),
            "placement.parts times placement.threads must be at most 65535",
        ),
    ],
)
def test_a_load_that_cannot_be_divided_so_is_refused(
    serve: Serve, load: Load, placement: Placement, words: str
) -> None:
    plan = Plan(recording(serve, []).origin, (STEP,), load, USERS, placement=placement)
    with pytest.raises(InvalidInput) as raised:
        run(plan)
    assert words in str(raised.value)
