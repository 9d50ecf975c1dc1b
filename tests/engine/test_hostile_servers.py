"""Each way in which a server may misbehave is an outcome, never an exception or a hang."""

import contextlib
import itertools
import select
import socket
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from loopback import OK, POST, Behaviour, Connection, Serve, answering

from loadstone.engine.local import run
from loadstone.engine.samples import Outcome
from loadstone.plan.load import ClosedLoad
from loadstone.plan.model import Limits, Origin, Plan
from loadstone.plan.script import JsonCapture, Step, text

IMPATIENT = Limits(connect_timeout_s=1.5, request_timeout_s=1.5, drain_s=5.0)
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
ONCE = ClosedLoad(1, iterations=1)
JSON_STEP = replace(POST, captures=(JsonCapture("id", "/id"),))


def after_request(*answer: bytes) -> Behaviour:
    """Answer one request with these bytes, then close."""

    def behave(connection: Connection) -> None:
        connection.request()
        for piece in answer:
            connection.send(piece)

    return behave


def holding(*answer: bytes) -> Behaviour:
    """Answer one request with these bytes, then say nothing more and keep the connection."""

    def behave(connection: Connection) -> None:
        connection.request()
        for piece in answer:
            connection.send(piece)
        connection.request()

    return behave


def endless(start: bytes, piece: bytes) -> Behaviour:
    """Answer with `start`, then with `piece` for ever."""

    def behave(connection: Connection) -> None:
        connection.request()
        connection.send(start)
        while True:
            connection.send(piece)

    return behave


def dripping(connection: Connection) -> None:
    connection.request()
    connection.send(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
    for _ in range(1000):
        connection.send(b".")
        connection.socket.settimeout(0.05)
        with contextlib.suppress(TimeoutError):
            if not connection.socket.recv(1):
                return


def resetting(connection: Connection) -> None:
    connection.request()
    connection.reset()


def outcomes(serve: Serve, behaviour: Behaviour, step: Step = POST) -> list[Outcome]:
    server = serve(behaviour)
    measured = run(server.plan(ONCE, step, limits=IMPATIENT))
    return [Outcome(code) for code in measured.samples.outcome]


@pytest.mark.parametrize(
    ("behaviour", "outcome"),
    [
        pytest.param(answering(OK), Outcome.OK, id="well behaved"),
        pytest.param(after_request(b"SSH-2.0-OpenSSH_9.2\r\n"), Outcome.BAD_HTTP, id="not HTTP"),
        pytest.param(after_request(b"\0" * 100_000), Outcome.BAD_HTTP, id="zeros"),
        pytest.param(
            endless(b"HTTP/1.1 200 OK\r\n", b"X-Filler: yes\r\n" * 64),
            Outcome.BAD_HTTP,
            id="endless headers",
        ),
        pytest.param(
            endless(b"HTTP/1.1 200 OK\r\nX: ", b"x" * 4096), Outcome.BAD_HTTP, id="endless header"
        ),
        pytest.param(
            endless(CHUNKED + b"5;", b"x" * 4096), Outcome.BAD_HTTP, id="endless chunk extension"
        ),
        pytest.param(
            endless(CHUNKED + b"0\r\n", b"X: y\r\n" * 512), Outcome.BAD_HTTP, id="endless trailers"
        ),
        pytest.param(
            endless(CHUNKED, b"1\r\nx\r\n" * 512), Outcome.BODY_TIMEOUT, id="endless chunks"
        ),
        pytest.param(
            endless(b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 64),
            Outcome.BODY_TIMEOUT,
            id="endless interim answers",
        ),
        pytest.param(
            endless(b"HTTP/1.1 200 OK\r\nContent-Length: 10000000000\r\n\r\n", b"x" * 65536),
            Outcome.BODY_TIMEOUT,
            id="a body of 10 GB",
        ),
        pytest.param(dripping, Outcome.BODY_TIMEOUT, id="a byte now and then"),
        pytest.param(
            after_request(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nshort"),
            Outcome.CLOSED_EARLY,
            id="closes in the middle of the body",
        ),
        pytest.param(
            after_request(b"HTTP/1.1 200 OK\r\nConte"),
            Outcome.CLOSED_EARLY,
            id="closes in a head",
        ),
        pytest.param(
            after_request(CHUNKED + b"5\r\nhel"), Outcome.CLOSED_EARLY, id="closes in a chunk"
        ),
        pytest.param(after_request(), Outcome.CLOSED_EARLY, id="closes without an answer"),
        pytest.param(resetting, Outcome.RESET, id="resets"),
        pytest.param(holding(), Outcome.FIRST_BYTE_TIMEOUT, id="never answers"),
        pytest.param(holding(b"HTTP/1.1 2"), Outcome.BODY_TIMEOUT, id="stops in the head"),
        pytest.param(
            holding(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nshort"),
            Outcome.BODY_TIMEOUT,
            id="promises more than it sends",
        ),
        pytest.param(
            after_request(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab"),
            Outcome.BAD_HTTP,
            id="two lengths",
        ),
        pytest.param(
            after_request(CHUNKED + b"hello"), Outcome.BAD_HTTP, id="chunked, but not really"
        ),
        pytest.param(
            after_request(b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 103 Hi\r\n\r\n" + OK),
            Outcome.OK,
            id="interim answers first",
        ),
        pytest.param(
            after_request(b"HTTP/1.0 200 OK\r\n\r\nuntil the end"), Outcome.OK, id="until close"
        ),
        pytest.param(after_request(CHUNKED + b"5\r\nhello\r\n0\r\n\r\n"), Outcome.OK, id="chunked"),
        pytest.param(
            after_request(b"HTTP/1.1 500 Oops\r\nContent-Length: 0\r\n\r\n"),
            Outcome.HTTP_STATUS,
            id="another status",
        ),
    ],
)
def test_each_misbehaviour_is_an_outcome(
    serve: Serve, behaviour: Behaviour, outcome: Outcome
) -> None:
    assert outcomes(serve, behaviour) == [outcome]


FRAGMENTS = st.sampled_from(
    [
        b"HTTP/1.1 200 OK\r\n",
        b"HTTP/1.0 404 No\r\n",
        b"HTTP/1.1 100 Continue\r\n\r\n",
        b"Content-Length: 5\r\n",
        b"Content-Length: 18446744073709551615\r\n",
        b"Transfer-Encoding: chunked\r\n",
        b"Connection: close\r\n",
        b"\r\n",
        b"5\r\nhello\r\n",
        b"0\r\n\r\n",
        b"hello",
    ]
)


@given(pieces=st.lists(FRAGMENTS | st.binary(max_size=40), max_size=12))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_whatever_a_server_sends_each_request_has_one_outcome(
    serve: Serve, pieces: list[bytes]
) -> None:
    server = serve(after_request(*pieces))
    plan = server.plan(ClosedLoad(1, iterations=3), JSON_STEP, limits=IMPATIENT)
    measured = run(plan)
    assert len(measured.samples) == 3
    assert Outcome.NOT_SENT not in measured.samples.outcome
    server.stop()


def test_no_body_is_awaited_after_head_and_204(serve: Serve) -> None:
    announcing = answering(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
    assert outcomes(serve, announcing, Step("head", "HEAD", text("/"))) == [Outcome.OK]
    empty = answering(b"HTTP/1.1 204 No Content\r\n\r\n")
    delete = Step("delete", "DELETE", text("/"), expect_status=(204,))
    assert outcomes(serve, empty, delete) == [Outcome.OK]


def test_more_bytes_than_announced_do_not_become_the_next_answer(serve: Serve) -> None:
    server = serve(answering(OK + b"HTTP/1.1 500 Surplus\r\nContent-Length: 0\r\n\r\n"))
    measured = run(server.plan(ClosedLoad(1, iterations=3)))
    assert Counter(measured.samples.outcome) == {Outcome.OK: 3}
    assert len(server.accepted) == 3


def test_a_server_that_does_not_listen_refuses(unused_port: int) -> None:
    plan = Plan(Origin("http", "127.0.0.1", unused_port), (POST,), ClosedLoad(2, iterations=4))
    samples = run(plan).samples
    assert Counter(samples.outcome) == {Outcome.REFUSED: 4}
    assert set(samples.sent_ns) == {-1}


@pytest.fixture
def unused_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as closed_again:
        port: int = closed_again.getsockname()[1]
    return port


@pytest.mark.parametrize(
    ("limits", "outcome"),
    [
        (IMPATIENT, Outcome.CONNECT_TIMEOUT),
        (Limits(connect_timeout_s=60.0, drain_s=0.2), Outcome.NOT_SENT),  # the run ends before
    ],
)
def test_a_server_that_does_not_accept_is_a_connect_timeout(
    limits: Limits, outcome: Outcome
) -> None:
    with socket.socket() as listener, contextlib.ExitStack() as stack:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        # Fill the queue of connections that nobody accepts.
        for _ in itertools.repeat(None, 4):
            filler = stack.enter_context(socket.socket())
            filler.setblocking(False)
            filler.connect_ex(listener.getsockname())
        origin = Origin("http", "127.0.0.1", listener.getsockname()[1])
        samples = run(Plan(origin, (POST,), ONCE, limits=limits)).samples
    assert [Outcome(code) for code in samples.outcome] == [outcome]


def test_a_request_that_nobody_reads_is_a_write_timeout(serve: Serve) -> None:
    server = serve(lambda connection: connection.socket.getpeername() and server.stopping.wait(10))
    big = Step("big", "POST", text("/"), body=text("x" * 20_000_000))
    samples = run(server.plan(ONCE, big, limits=IMPATIENT)).samples
    assert [Outcome(code) for code in samples.outcome] == [Outcome.WRITE_TIMEOUT]


TOO_LARGE = b"HTTP/1.1 413 Too Large\r\nContent-Length: 5\r\nConnection: close\r\n\r\nlarge"
BIG = Step("big", "POST", text("/"), body=text("x" * 20_000_000))


def refusing_and_closing(connection: Connection) -> None:
    """Read the beginning of a request, answer, and close: the kernel resets the connection."""
    connection.socket.recv(1000)
    connection.send(TOO_LARGE)


def refusing_and_holding(connection: Connection) -> None:
    """Read the beginning of a request, answer, and wait until the client closes."""
    connection.socket.recv(1000)
    connection.send(TOO_LARGE)
    poll = select.poll()
    poll.register(connection.socket, select.POLLRDHUP)
    poll.poll(10_000)


@pytest.mark.parametrize("behaviour", [refusing_and_closing, refusing_and_holding])
def test_an_answer_that_comes_before_the_request_was_sent_counts(
    serve: Serve, behaviour: Behaviour
) -> None:
    samples = run(serve(behaviour).plan(ClosedLoad(1, iterations=3), BIG, limits=IMPATIENT)).samples
    assert [Outcome(code) for code in samples.outcome] == [Outcome.HTTP_STATUS] * 3
    assert set(samples.status) == {413}


def test_an_answer_that_begins_early_does_not_cut_the_request_short(serve: Serve) -> None:
    received: list[int] = []

    def behave(connection: Connection) -> None:
        connection.send(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n")
        received.append(len(connection.request() or b""))
        connection.send(b"ok")

    samples = run(serve(behave).plan(ONCE, BIG)).samples
    assert [Outcome(code) for code in samples.outcome] == [Outcome.OK]
    assert received[0] > 20_000_000
