"""Runs that are prepared first and started at an instant, as many machines need it."""

import re
import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import replace

import pytest
from known_service import ISSUE, NAME, serving
from loopback import OK, Connection, Serve, answering
from part_process import ALLOWED, parts_of

from loadstone.engine import gate
from loadstone.engine.limits import merged
from loadstone.engine.local import prepare, prepare_streamed
from loadstone.engine.samples import Outcome, Samples
from loadstone.errors import EnvironmentUnusable, InvalidInput
from loadstone.plan.load import ClosedLoad, Load, OpenLoad, ReplayLoad, Stage, StagedLoad
from loadstone.plan.model import Limits, Origin, Placement, Plan
from loadstone.plan.script import Column, Iteration

PARTS = 3
SECOND_NS = 1_000_000_000
# Further ahead than a busy machine takes to hand the instant to all processes.
AHEAD_NS = 3 * SECOND_NS
# Each request tells its iteration, and the row of the column that it was filled from.
STEP = replace(
    ISSUE,
    headers=(
        *ISSUE.headers,
        ("X-Request", (Iteration("request-"),)),
        ("User-Agent", (Column("agent"),)),
    ),
)
AGENTS = {"agent": tuple(f"agent-{number}" for number in range(7))}


@pytest.fixture(scope="module")
def service() -> Iterator[int]:
    with serving(f"--user={NAME}", f"--project={NAME}") as (port, _):
        yield port


@pytest.fixture
def recorded(serve: Serve, service: int) -> tuple[int, list[bytes]]:
    """A port behind which `loadstone serve` answers, and the requests that were sent to it."""
    seen: list[bytes] = []

    def forward(client: Connection) -> None:
        with socket.create_connection(("127.0.0.1", service)) as upstream:
            answers = Connection(upstream, client.number)
            while (request := client.request()) is not None:
                seen.append(request)
                upstream.sendall(request)
                answer = answers.request()
                assert answer is not None
                client.send(answer)

    return serve(forward).port, seen


def plan_of(port: int, load: Load, threads: int = 1) -> Plan:
    origin = Origin("http", "127.0.0.1", port)
    return Plan(origin, (STEP,), load, AGENTS, placement=Placement(threads))


def schedule(samples: Samples) -> list[tuple[int, int]]:
    return sorted(zip(samples.iteration.tolist(), samples.due_ns.tolist(), strict=True))


@pytest.mark.parametrize(
    ("load", "threads"),
    [
        (OpenLoad(300, 0.5), 1),
        (OpenLoad(300, 0.5, "poisson", seed=5), 2),
        (StagedLoad((Stage(0.3, 10, 300), Stage(0.2, 100, 0)), "poisson", 3, None), 1),
        (ReplayLoad((0.0, 0.0, 0.1, 0.25, 0.25, 0.3, 0.4)), 2),
    ],
)
def test_three_processes_send_byte_for_byte_what_one_process_sends(
    recorded: tuple[int, list[bytes]], load: Load, threads: int
) -> None:
    port, seen = recorded
    plan = plan_of(port, load, threads)
    alone = gate.run(plan, ALLOWED).samples
    sent_alone = seen.copy()
    seen.clear()
    with parts_of(plan, PARTS) as parts:
        at_ns = time.time_ns() + AHEAD_NS
        for part in parts:
            part.start(at_ns)
        measured = [part.finish() for part in parts]
    together = Samples.joined([part.samples for part in measured])
    assert set(together.outcome) == {Outcome.OK}
    assert schedule(together) == schedule(alone)
    assert sorted(seen) == sorted(sent_alone)
    # The rows of the parts can be told apart.
    connections = [set(part.samples.connection.tolist()) for part in measured]
    assert len(set.union(*connections)) == sum(map(len, connections))
    assert len(set(together.iteration.tolist())) == len(together)


def test_a_closed_loop_of_three_processes_shares_workers_and_iterations(
    recorded: tuple[int, list[bytes]],
) -> None:
    port, seen = recorded
    with parts_of(plan_of(port, ClosedLoad(5, iterations=200)), PARTS) as parts:
        at_ns = time.time_ns() + AHEAD_NS
        for part in parts:
            part.start(at_ns)
        measured = [part.finish() for part in parts]
    together = Samples.joined([part.samples for part in measured])
    assert sorted(together.iteration.tolist()) == list(range(200))
    assert len(seen) == 200
    # Each worker has a connection, opened before the start.
    assert [part.health.connections for part in measured] == [2, 2, 1]


def test_processes_that_are_stopped_at_an_instant_end_at_the_same_iteration(
    recorded: tuple[int, list[bytes]],
) -> None:
    port, _ = recorded
    rate_rps = 200
    with parts_of(plan_of(port, OpenLoad(rate_rps, 3600)), PARTS) as parts:
        at_ns = time.time_ns() + AHEAD_NS
        for part in parts:
            part.start(at_ns)
        due_ns = AHEAD_NS
        for part in parts:
            part.stop_at(due_ns)
        measured = [part.finish() for part in parts]
    together = Samples.joined([part.samples for part in measured])
    due_before = due_ns * rate_rps // SECOND_NS
    assert sorted(together.iteration.tolist()) == list(range(due_before))
    assert int(together.due_ns.max()) < due_ns


def test_the_lag_of_parts_is_merged_from_their_histograms(
    recorded: tuple[int, list[bytes]],
) -> None:
    port, _ = recorded
    load = OpenLoad(300, 0.5)
    with parts_of(plan_of(port, load), PARTS) as parts:
        at_ns = time.time_ns() + AHEAD_NS
        for part in parts:
            part.start(at_ns)
        healths = [part.finish().health for part in parts]
    whole = merged(healths, load)
    assert [health.lag.total for health in healths] == [50, 50, 50]
    assert whole.lag.total == whole.wait.total == 150
    assert whole.lag_max_ms == max(health.lag_max_ms for health in healths)
    low, high = sorted(health.lag_p50_ms for health in healths)[::2]
    assert low <= whole.lag_p50_ms <= high
    assert whole.connections == sum(health.connections for health in healths)
    assert whole.threads == PARTS


def test_the_load_waits_for_its_start(serve: Serve) -> None:
    seen: list[int] = []

    def behave(connection: Connection) -> None:
        while connection.request() is not None:
            seen.append(time.time_ns())
            connection.send(OK)

    server = serve(behave)
    with prepare(server.plan(OpenLoad(100, 0.1))) as prepared:
        assert seen == []
        at_ns = time.time_ns() + SECOND_NS // 2
        prepared.start(at_ns)
        measured = prepared.finish()
    assert len(seen) == len(measured.samples) == 10
    assert min(seen) >= at_ns
    # Rows stand in the order in which answers came.
    due_ns = sorted(measured.samples.due_ns.tolist())
    assert due_ns == [number * SECOND_NS // 100 for number in range(10)]


def test_a_start_in_the_past_is_refused(serve: Serve) -> None:
    server = serve(answering(OK))
    with prepare(server.plan(OpenLoad(100, 0.1))) as prepared:
        with pytest.raises(EnvironmentUnusable) as raised:
            prepared.start(time.time_ns() - SECOND_NS)
        assert re.search(r"the start is \d+\.\d+ s in the past", str(raised.value))
        assert "give one that is further ahead" in str(raised.value)
        prepared.start(time.time_ns() + 2 * SECOND_NS)
        with pytest.raises(EnvironmentUnusable, match="the run was started before"):
            prepared.start()
        assert len(prepared.finish().samples) == 10


def test_a_stop_at_an_instant_that_has_come_is_refused(serve: Serve) -> None:
    server = serve(answering(OK))
    with prepare(server.plan(OpenLoad(100, 0.5))) as prepared:
        with pytest.raises(EnvironmentUnusable, match="the run was not started yet"):
            prepared.stop_at(SECOND_NS)
        prepared.start()
        with pytest.raises(EnvironmentUnusable, match=r"the run cannot stop at 0\.000 s: it has"):
            prepared.stop_at(0)
        assert len(prepared.finish().samples) == 50


def test_a_closed_loop_begins_nothing_from_the_stop_on(serve: Serve) -> None:
    server = serve(answering(OK))
    with prepare(server.plan(ClosedLoad(4, duration_s=3600))) as prepared:
        prepared.start(time.time_ns() + SECOND_NS)
        prepared.stop_at(SECOND_NS // 2)
        samples = prepared.finish().samples
    assert len(samples) >= 4
    assert int(samples.due_ns.max()) < SECOND_NS // 2


def test_a_target_that_cannot_be_connected_to_is_refused_before_the_start() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
        with pytest.raises(EnvironmentUnusable) as raised:
            prepare(plan_of(port, OpenLoad(100, 0.1)))
    assert str(raised.value) == f"cannot connect to 127.0.0.1:{port}: connection refused"


def test_a_prepared_run_that_is_given_up_sends_nothing(serve: Serve) -> None:
    server = serve(answering(OK))
    with prepare(server.plan(OpenLoad(100, 0.1))) as never_started:
        pass
    with pytest.raises(EnvironmentUnusable, match="the run was given up before its start"):
        never_started.start()
    with prepare(server.plan(OpenLoad(100, 0.1))) as prepared:
        prepared.start(time.time_ns() + 3600 * SECOND_NS)
    assert len(prepared.finish().samples) == 0


def test_a_connection_that_the_server_closed_before_the_start_is_replaced(serve: Serve) -> None:
    closed = threading.Event()

    def behave(connection: Connection) -> None:
        if connection.number > 0:
            answering(OK)(connection)
        connection.socket.close()
        closed.set()

    server = serve(behave)
    with prepare(server.plan(OpenLoad(10, 0.1))) as prepared:
        assert closed.wait(10)
        prepared.start()
        measured = prepared.finish()
    assert [Outcome(code) for code in measured.samples.outcome] == [Outcome.OK]


def test_a_prepared_plan_is_kept_within_what_is_allowed(serve: Serve) -> None:
    seen: list[bytes] = []

    def behave(connection: Connection) -> None:
        while (request := connection.request()) is not None:
            seen.append(request)
            connection.send(OK)

    server = serve(behave)
    beyond = replace(server.plan(OpenLoad(1, 1)), origin=Origin("http", "198.51.100.1", 80))
    with pytest.raises(InvalidInput, match="yes-load-this-target"):
        gate.prepare(beyond, ALLOWED)
    slow = gate.Allowance(max_rate_rps=50.0, load_s=0.5)
    with gate.prepare(server.plan(ClosedLoad(20, duration_s=60)), slow) as prepared:
        prepared.start()
        health = prepared.finish().health
    assert health.is_cut_short
    assert len(seen) <= 50 * 0.5 + 2


def test_rows_do_not_wait_for_a_request_that_hangs(serve: Serve) -> None:
    ended = threading.Event()

    def answer_once(connection: Connection) -> None:
        connection.request()
        connection.send(OK)
        ended.wait()

    limits = Limits(request_timeout_s=30.0, stopped_drain_s=0.1)
    plan = serve(answer_once).plan(ClosedLoad(1, duration_s=60.0), limits=limits)
    seen: list[Samples] = []
    with prepare_streamed(plan, lambda rows, _: seen.append(rows)) as prepared:
        prepared.start()
        prepared.finish(lambda _: not any(map(len, seen)))
    ended.set()
    first = next(rows for rows in seen if len(rows))
    assert first.outcome.tolist() == [Outcome.OK]
