import socket
from collections import Counter
from dataclasses import replace
from typing import Literal

import pytest
from loopback import GET, OK, POST, Behaviour, Connection, Serve, answering

from loadstone.engine.local import run
from loadstone.engine.samples import Outcome
from loadstone.plan.load import ClosedLoad, OpenLoad

CLOSE = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok"


def answering_once(answer: bytes) -> Behaviour:
    def behave(connection: Connection) -> None:
        if connection.request() is not None:
            # In one segment: on a busy machine the end would come after the next request had left.
            connection.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_CORK, 1)
            connection.send(answer)

    return behave


def test_one_connection_carries_many_requests(serve: Serve) -> None:
    server = serve(answering(OK))
    measured = run(server.plan(ClosedLoad(1, iterations=50)))
    assert len(server.accepted) == measured.health.connections == 1


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


def test_a_request_that_crossed_the_close_is_sent_once_more_and_counted(serve: Serve) -> None:
    """The server reads the second request of its first connection, and closes instead."""

    def behave(connection: Connection) -> None:
        limit = 1 if connection.number == 0 else 100
        for _ in range(limit):
            if connection.request() is None:
                return
            connection.send(OK)
        connection.request()

    server = serve(behave)
    measured = run(server.plan(ClosedLoad(1, iterations=10), GET))
    assert Counter(measured.samples.outcome) == {Outcome.OK: 10}
    assert measured.health.retries == 1
    assert len(server.accepted) == 2


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
    assert measured.health.retries == 1


def test_a_crash_while_a_post_is_served_is_not_hidden(serve: Serve) -> None:
    """A worker that dies long after it took a POST on a busy connection: an error, no retry."""

    def behave(connection: Connection) -> None:
        connection.request()
        connection.send(OK)
        connection.request()
        server.stopping.wait(0.1)

    server = serve(behave)
    measured = run(server.plan(ClosedLoad(1, iterations=2), POST))
    assert list(measured.samples.outcome) == [Outcome.OK, Outcome.CLOSED_EARLY]
    assert measured.health.retries == 0


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
