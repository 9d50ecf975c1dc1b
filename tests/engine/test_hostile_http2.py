"""Servers of HTTP/2 that misbehave: each becomes an outcome."""

from collections import Counter
from dataclasses import replace

import pytest
from frames import (
    CANCEL,
    CONTINUATION,
    DATA,
    END_HEADERS,
    HEADERS,
    INTERNAL_ERROR,
    REFUSED_STREAM,
    STATUS_200,
    answer,
    frame,
    goaway,
    http2,
    reset,
)
from loopback import GET, POST, Connection, Serve

from loadstone.engine.local import run
from loadstone.engine.samples import Outcome
from loadstone.plan.load import ClosedLoad
from loadstone.plan.model import Limits, Placement, Plan
from loadstone.plan.script import Step

LIMITS = Limits(connect_timeout_s=2.0, request_timeout_s=1.0, drain_s=2.0)


def outcomes(server_plan: Plan) -> Counter[Outcome]:
    return Counter(Outcome(code) for code in run(server_plan).samples.outcome)


def asking(serve: Serve, respond: object, step: Step = GET, iterations: int = 6) -> Plan:
    server = serve(http2(respond))  # type: ignore[arg-type]
    load = ClosedLoad(2, iterations=iterations)
    return Plan(server.origin, (step,), load, limits=LIMITS, placement=Placement(http="2"))


# A header that is not in the static table, not kept: "x: 1000 bytes".
LONG = b"\x00\x01x" + b"\x7f\xe9\x06" + b"y" * 1000


@pytest.mark.parametrize(
    ("said", "outcome"),
    [
        (b"\xff" * 1000, Outcome.BAD_HTTP),
        (b"HTTP/1.1 200 OK\r\n\r\n" * 100, Outcome.BAD_HTTP),
        (frame(HEADERS, END_HEADERS, 1, b"\x80"), Outcome.BAD_HTTP),
        (frame(DATA, 1, 1, b"no headers first"), Outcome.BAD_HTTP),
        (frame(HEADERS, END_HEADERS, 1, STATUS_200 + LONG * 100), Outcome.BAD_HTTP),
        (b"", Outcome.FIRST_BYTE_TIMEOUT),
    ],
)
def test_what_is_no_answer_becomes_an_outcome(
    serve: Serve, said: bytes | None, outcome: Outcome
) -> None:
    assert outcomes(asking(serve, lambda *_: said, POST)) == {outcome: 6}


def test_what_the_end_of_the_run_cuts_off_is_no_outcome_of_the_service(serve: Serve) -> None:
    plan = asking(serve, lambda *_: b"", POST, iterations=2)
    limits = replace(LIMITS, request_timeout_s=60.0, drain_s=0.2)
    assert outcomes(replace(plan, limits=limits)) == {Outcome.NOT_SENT: 2}


def test_a_close_instead_of_an_answer_is_an_outcome(serve: Serve) -> None:
    ended = outcomes(asking(serve, lambda *_: None, POST))
    # A reset where another request was on its way.
    assert set(ended) <= {Outcome.CLOSED_EARLY, Outcome.RESET}


def test_headers_without_end_become_an_outcome(serve: Serve) -> None:
    def endless(connection: Connection, stream: int) -> bytes:
        connection.send(frame(HEADERS, 0, stream, STATUS_200))
        while True:
            connection.send(frame(CONTINUATION, 0, stream, LONG * 10))

    assert outcomes(asking(serve, endless, POST)) == {Outcome.BAD_HTTP: 6}


def test_an_answer_that_stops_in_its_middle_times_out(serve: Serve) -> None:
    plan = asking(serve, lambda _, stream: answer(stream)[:-11] + frame(DATA, 0, stream, b"o"))
    assert outcomes(plan) == {Outcome.BODY_TIMEOUT: 6}


def test_a_reset_stream_is_a_reset_and_the_connection_goes_on(serve: Serve) -> None:
    plan = asking(serve, lambda _, stream: reset(stream, CANCEL), POST, iterations=3000)
    measured = run(plan)
    assert Counter(measured.samples.outcome) == {Outcome.RESET: 3000}
    assert measured.health.connections == 1
    assert measured.health.retries == 0


def test_a_stream_that_is_reset_at_once_is_not_sent_again(serve: Serve) -> None:
    streams: list[int] = []

    # A connection that has answered before is one whose requests may be sent again.
    def respond(_: Connection, stream: int) -> bytes:
        streams.append(stream)
        return reset(stream, INTERNAL_ERROR) if len(streams) % 2 == 0 else answer(stream)

    measured = run(asking(serve, respond, POST, iterations=60))
    assert Counter(measured.samples.outcome) == {Outcome.OK: 30, Outcome.RESET: 30}
    assert measured.health.connections == 1
    assert measured.health.retries == 0
    assert len(streams) == 60


def test_a_refused_stream_is_asked_for_once_more(serve: Serve) -> None:
    refused: set[int] = set()

    def respond(_: Connection, stream: int) -> bytes:
        if len(refused) < 2:
            refused.add(stream)
            return reset(stream, REFUSED_STREAM)
        return answer(stream)

    measured = run(asking(serve, respond, POST))
    assert Counter(measured.samples.outcome) == {Outcome.OK: 6}
    assert measured.health.retries == 2


def test_what_a_leaving_server_did_not_look_at_is_sent_to_the_next_connection(
    serve: Serve,
) -> None:
    def respond(connection: Connection, stream: int) -> bytes:
        # The first connection answers one stream, and leaves before the second.
        if connection.number == 1 and stream > 1:
            return goaway(1)
        return answer(stream)

    measured = run(asking(serve, respond, POST, iterations=20))
    assert Counter(measured.samples.outcome) == {Outcome.OK: 20}
    assert measured.health.connections == 2
    assert measured.health.retries >= 1


def test_more_than_the_window_allows_ends_as_an_outcome(serve: Serve) -> None:
    def flooding(connection: Connection, stream: int) -> bytes:
        connection.send(frame(HEADERS, END_HEADERS, stream, STATUS_200))
        while True:
            connection.send(frame(DATA, 0, stream, b"x" * 16_384))

    ended = outcomes(asking(serve, flooding, POST, iterations=2))
    # Whichever is seen first: the window overrun, or the time. The other request was never read.
    assert set(ended) <= {Outcome.BAD_HTTP, Outcome.BODY_TIMEOUT, Outcome.FIRST_BYTE_TIMEOUT}


def test_content_that_is_not_as_long_as_was_said_is_no_http(serve: Serve) -> None:
    # content-length: 9, from the static table, not kept.
    claimed = STATUS_200 + b"\x0f\x0d\x019"
    plan = asking(
        serve,
        lambda _, stream: (
            frame(HEADERS, END_HEADERS, stream, claimed) + frame(DATA, 1, stream, b"ok")
        ),
        POST,
    )
    assert outcomes(plan) == {Outcome.BAD_HTTP: 6}
