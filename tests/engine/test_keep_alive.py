import contextlib
import socket
import threading
from collections import Counter
from dataclasses import replace
from typing import Literal

import pytest
from loopback import GET, OK, POST, Behaviour, Connection, Serve, answering

from loadstone.engine.local import run
from loadstone.engine.samples import Outcome
from loadstone.plan.load import ClosedLoad, OpenLoad
from loadstone.plan.model import Limits, Origin, Plan
from loadstone.plan.script import Step

CLOSE = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok"


def answering_once(answer: bytes) -> Behaviour:
    def behave(connection: Connection) -> None:
        if connection.request() is not None:
            # In one segment: on a busy machine the end would come after the next request had left.
            connection.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_CORK, 1)
            connection.send(answer)

    return behave


def answering_one_at_a_time() -> Behaviour:
    """Answer, and serve the next connection when the client has closed, as gunicorn's worker."""
    worker = threading.Lock()

    def behave(connection: Connection) -> None:
        with worker:
            connection.request()
            connection.send(CLOSE)
            connection.request()

    return behave


def test_one_connection_carries_many_requests(serve: Serve) -> None:
    server = serve(answering(OK))
    measured = run(server.plan(ClosedLoad(1, iterations=50)))
    assert len(server.accepted) == measured.health.connections == 1


def test_a_connection_is_closed_at_once_if_the_server_announces_it(serve: Serve) -> None:
    """RFC 9112, section 9.6: also if no other iteration follows that would need a new one."""
    server = serve(answering_one_at_a_time())
    measured = run(server.plan(ClosedLoad(3, iterations=3), POST))
    assert Counter(measured.samples.outcome) == {Outcome.OK: 3}


def test_a_server_that_announces_the_close_is_met_with_a_new_connection(serve: Serve) -> None:
    server = serve(answering_once(CLOSE))
    measured = run(server.plan(ClosedLoad(2, iterations=20), POST))
    assert Counter(measured.samples.outcome) == {Outcome.OK: 20}
    assert measured.health.retries == 0
    assert len(server.accepted) == 20


def test_a_server_that_closes_without_a_word_causes_no_error(serve: Serve) -> None:
    """As uwsgi's http-socket does, which announces nothing and closes after each answer."""
    server = serve(answering_once(OK))
    measured = run(server.plan(ClosedLoad(1, iterations=20), POST))
    assert Counter(measured.samples.outcome) == {Outcome.OK: 20}


def test_an_idle_connection_that_was_closed_is_replaced(serve: Serve) -> None:
    server = serve(answering_once(OK))
    measured = run(server.plan(OpenLoad(20, 0.5), POST))
    assert Counter(measured.samples.outcome) == {Outcome.OK: 10}


def closing_at_every_second_request(connection: Connection) -> None:
    """Answer one request, read the next one, and close instead of answering."""
    if connection.request() is not None:
        connection.send(OK)
        connection.request()


@pytest.mark.parametrize("step", [GET, POST])
def test_a_request_that_crossed_the_close_is_sent_once_more_and_says_so(
    serve: Serve, step: Step
) -> None:
    measured = run(serve(closing_at_every_second_request).plan(ClosedLoad(1, iterations=40), step))
    samples = measured.samples
    # On a busy machine some closes come too late to have crossed the request: those are failures.
    assert {Outcome(code) for code in samples.outcome} <= {Outcome.OK, Outcome.CLOSED_EARLY}
    assert 0 < samples.retried.sum() == measured.health.retries
    assert set(samples.outcome[samples.retried > 0]) == {Outcome.OK}


def test_with_retries_switched_off_each_close_is_a_failure(serve: Serve) -> None:
    plan = serve(closing_at_every_second_request).plan(ClosedLoad(1, iterations=10), GET)
    measured = run(replace(plan, retries="never"))
    assert list(measured.samples.outcome) == [Outcome.OK, Outcome.CLOSED_EARLY] * 5
    assert measured.health.retries == measured.samples.retried.sum() == 0


def test_a_server_that_always_closes_is_not_asked_for_ever(serve: Serve) -> None:
    def behave(connection: Connection) -> None:
        if connection.request() is not None and connection.number == 0:
            connection.send(OK)
            connection.request()

    measured = run(serve(behave).plan(ClosedLoad(1, iterations=3), GET))
    assert list(measured.samples.outcome) == [
        Outcome.OK,
        Outcome.CLOSED_EARLY,
        Outcome.CLOSED_EARLY,
    ]
    assert measured.health.retries <= 1


@pytest.mark.parametrize("step", [GET, POST])
@pytest.mark.parametrize("think_s", [0.0, 0.1])
def test_a_crash_while_a_request_is_served_is_not_hidden(
    serve: Serve, step: Step, think_s: float
) -> None:
    """A worker that dies long after it took a request: an error, also on a rested connection."""

    def behave(connection: Connection) -> None:
        connection.request()
        connection.send(OK)
        connection.request()
        server.stopping.wait(0.1)

    server = serve(behave)
    measured = run(server.plan(ClosedLoad(1, iterations=2, think_s=think_s), step))
    assert list(measured.samples.outcome) == [Outcome.OK, Outcome.CLOSED_EARLY]
    assert measured.health.retries == 0


def serve_one_connection(listener: socket.socket, fillers: contextlib.ExitStack) -> None:
    """Answer a request, read the next one and close; nobody accepts any further connection."""
    accepted, _ = listener.accept()
    with accepted:
        connection = Connection(accepted, 0)
        connection.request()
        for _ in range(8):
            filler = fillers.enter_context(socket.socket())
            filler.setblocking(False)
            filler.connect_ex(listener.getsockname())
        connection.send(OK)
        connection.request()


def test_the_second_try_has_what_is_left_of_the_firsts_time() -> None:
    limits = Limits(connect_timeout_s=60.0, request_timeout_s=0.5)
    for _ in range(20):
        with socket.socket() as listener, contextlib.ExitStack() as fillers:
            listener.bind(("127.0.0.1", 0))
            listener.listen(0)
            server = threading.Thread(target=serve_one_connection, args=(listener, fillers))
            server.start()
            origin = Origin("http", "127.0.0.1", listener.getsockname()[1])
            samples = run(Plan(origin, (GET,), ClosedLoad(1, iterations=2), limits=limits)).samples
            server.join(10)
        # On a busy machine the close comes too late to have crossed the request.
        if samples.outcome[1] == Outcome.CONNECT_TIMEOUT:
            break
    assert list(samples.outcome) == [Outcome.OK, Outcome.CONNECT_TIMEOUT]
    assert list(samples.retried) == [0, 0]  # there was no connection to send it on
    # Within the time-out of the request, not within that of connecting.
    assert samples.done_ns[1] - samples.sent_ns[1] < limits.connect_timeout_s * 1e9


@pytest.mark.parametrize(
    ("connection", "accepted"), [("kept", 1), ("iteration", 5), ("request", 10)]
)
def test_a_connection_carries_what_the_plan_says(
    serve: Serve, connection: Literal["kept", "iteration", "request"], accepted: int
) -> None:
    server = serve(answering(OK))
    plan = server.plan(ClosedLoad(1, iterations=5), GET, POST)
    measured = run(replace(plan, connection=connection))
    assert Counter(measured.samples.outcome) == {Outcome.OK: 10}
    assert len(server.accepted) == measured.health.connections == accepted


def test_a_request_with_a_connection_of_its_own_announces_the_close(serve: Serve) -> None:
    seen: list[bytes] = []

    def behave(connection: Connection) -> None:
        seen.append(connection.request() or b"")
        connection.send(OK)

    plan = serve(behave).plan(ClosedLoad(1, iterations=1))
    run(replace(plan, connection="request"))
    assert b"\r\nConnection: close\r\n" in seen[0]


def test_http_1_0_keeps_a_connection_only_when_it_says_so(serve: Serve) -> None:
    kept = b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\nConnection: keep-alive\r\n\r\nok"
    server = serve(answering(kept))
    run(server.plan(ClosedLoad(1, iterations=3)))
    assert len(server.accepted) == 1
    server = serve(answering(kept.replace(b"Connection: keep-alive\r\n", b"")))
    run(server.plan(ClosedLoad(1, iterations=3)))
    assert len(server.accepted) == 3
