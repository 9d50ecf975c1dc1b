import json
from collections import Counter
from dataclasses import replace

import pytest
from loopback import OK, Behaviour, Connection, Serve, answering

from loadstone.engine.local import run
from loadstone.engine.samples import Outcome
from loadstone.plan.load import ClosedLoad
from loadstone.plan.script import Captured, HeaderCapture, JsonCapture, Step, Text, text

CREATE = Step(
    "create",
    "POST",
    text("/users"),
    body=text("{}"),
    expect_status=(201,),
    captures=(JsonCapture("id", "/user/id"),),
)
DELETE = Step("delete", "DELETE", (Text("/users/"), Captured("id")))


def creating(body: bytes, seen: list[bytes], *, chunked: bool = False) -> Behaviour:
    """Answer POST with 201 and `body`, all else with 200."""
    head = b"HTTP/1.1 201 Created\r\n"
    if chunked:
        half = len(body) // 2
        chunks = b"".join(b"%x\r\n%s\r\n" % (len(c), c) for c in (body[:half], body[half:]))
        answer = head + b"Transfer-Encoding: chunked\r\n\r\n" + chunks + b"0\r\n\r\n"
    else:
        answer = head + b"Content-Length: %d\r\n\r\n%s" % (len(body), body)

    def behave(connection: Connection) -> None:
        while (request := connection.request()) is not None:
            seen.append(request.split(b"\r\n")[0])
            connection.send(answer if request.startswith(b"POST") else OK)

    return behave


@pytest.mark.parametrize("chunked", [False, True])
def test_a_value_of_a_json_body_flows_into_a_later_path(serve: Serve, chunked: bool) -> None:
    body = json.dumps({"links": ["x" * 40_000], "user": {"name": "a", "id": "8f1c"}}).encode()
    seen: list[bytes] = []
    plan = serve(creating(body, seen, chunked=chunked)).plan(
        ClosedLoad(1, iterations=3), CREATE, DELETE
    )
    assert Counter(run(plan).samples.outcome) == {Outcome.OK: 6}
    assert Counter(seen)[b"DELETE /users/8f1c HTTP/1.1"] == 3


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b'{"user": {}}', id="absent"),
        pytest.param(b'{"user": {"id": ["8f1c"]}}', id="no single value"),
        pytest.param(b'{"user": {"id": ""}}', id="empty"),
        pytest.param(b"<html>", id="no JSON"),
        pytest.param(b'{"user": {"id": "8f1c"}', id="cut off"),
        pytest.param(b'{"user": {"id": "a HTTP/1.1\\r\\nX: y"}}', id="no part of a path"),
    ],
)
def test_a_body_without_a_usable_value_fails_the_step(serve: Serve, body: bytes) -> None:
    seen: list[bytes] = []
    plan = serve(creating(body, seen)).plan(ClosedLoad(1, iterations=1), CREATE, DELETE)
    assert [Outcome(code) for code in run(plan).samples.outcome] == [Outcome.BAD_HTTP]
    assert seen == [b"POST /users HTTP/1.1"]


def test_a_body_that_is_too_long_to_search_is_an_outcome_of_its_own(serve: Serve) -> None:
    body = b'{"user": {"id": "8f1c"}, "x": "' + b"x" * 2**20 + b'"}'
    seen: list[bytes] = []
    plan = serve(creating(body, seen)).plan(ClosedLoad(1, iterations=1), CREATE, DELETE)
    assert [Outcome(code) for code in run(plan).samples.outcome] == [Outcome.TOO_LONG]


def test_headers_of_interim_answers_are_not_captured(serve: Serve) -> None:
    early = b"HTTP/1.1 103 Early Hints\r\nX-Subject-Token: early\r\n\r\n"
    step = replace(CREATE, captures=(HeaderCapture("id", "X-Subject-Token"),), expect_status=(200,))
    measured = run(serve(answering(early + OK)).plan(ClosedLoad(1, iterations=1), step))
    assert [Outcome(code) for code in measured.samples.outcome] == [Outcome.BAD_HTTP]


def test_a_value_of_one_iteration_does_not_leak_into_the_next(serve: Serve) -> None:
    """The second answer lacks the value: the first one's must not be used in its place."""

    def behave(connection: Connection) -> None:
        for body in (b'{"user": {"id": "8f1c"}}', b"", b'{"user": {}}'):
            connection.request()
            status = b"201 Created" if body else b"200 OK"
            connection.send(
                b"HTTP/1.1 %s\r\nContent-Length: %d\r\n\r\n%s" % (status, len(body), body)
            )

    samples = run(serve(behave).plan(ClosedLoad(1, iterations=2), CREATE, DELETE)).samples
    assert [Outcome(code) for code in samples.outcome] == [
        Outcome.OK,
        Outcome.OK,
        Outcome.BAD_HTTP,
    ]
