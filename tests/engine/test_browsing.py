"""What a browser does in a login: links, forms, cookies; and values renewed by their use."""

import json
import re
from collections import Counter

from loopback import Behaviour, Connection, Serve

from loadstone.engine.local import run
from loadstone.engine.samples import Outcome
from loadstone.plan.load import ClosedLoad
from loadstone.plan.model import Plan
from loadstone.plan.script import (
    Captured,
    Column,
    FormCapture,
    JsonCapture,
    LinkCapture,
    Step,
    Text,
    mixed,
    text,
)

FORM = (
    '<p><form action="/search"></form><form method=post action="/login?a=1&amp;b=2">'
    '<input type="hidden" name="_csrf" value="x y"><input name="password"></form>'
)


def answer(status: str, body: str = "", *headers: str) -> bytes:
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body.encode())}", *headers]
    return ("\r\n".join(lines) + "\r\n\r\n" + body).encode()


def answering(answers: dict[str, bytes], seen: list[bytes]) -> Behaviour:
    """Answer each request line as listed; remember the requests."""

    def behave(connection: Connection) -> None:
        while (request := connection.request()) is not None:
            seen.append(request)
            connection.send(answers[request.split(b" HTTP/")[0].decode()])

    return behave


def outcomes(plan: Plan) -> Counter[Outcome]:
    return Counter(Outcome(code) for code in run(plan).samples.outcome)


FIELDS = (FormCapture("action", 1), FormCapture("hidden", 1, hidden=True))
LOGIN = (
    Step("authorize", "GET", text("/auth"), expect_status=(303,), captures=(LinkCapture("page"),)),
    Step("page", "GET", (Text("/"), Captured("page")), captures=FIELDS),
    Step(
        "login",
        "POST",
        (Text("/"), Captured("action")),
        body=(Captured("hidden"), Text("&password="), Column("password")),
        expect_status=(302,),
        captures=(LinkCapture("code", parameter="code"),),
    ),
    Step("token", "POST", text("/token"), body=(Text("code="), Captured("code"))),
)


def logins(location: str = "/interaction/1?x=y#top") -> dict[str, bytes]:
    return {
        "GET /auth": answer(
            "303 See Other", "", f"Location: {location}", "Set-Cookie: a=1; path=/interaction"
        ),
        "GET /interaction/1?x=y": answer("200 OK", FORM, 'Set-Cookie: s="q;"; Path=/; Secure'),
        "POST /login?a=1&b=2": answer(
            "302 Found", "", "Location: http://127.0.0.1:1/cb?code=a%2Bb&state=s"
        ),
        "POST /token": answer("200 OK", "{}"),
    }


def test_a_login_follows_links_and_forms_with_its_cookies(serve: Serve) -> None:
    seen: list[bytes] = []
    server = serve(answering(logins(), seen))
    plan = Plan(
        server.origin,
        LOGIN,
        ClosedLoad(1, iterations=2),
        {"password": ("secret",)},
        cookies=True,
    )
    assert outcomes(plan) == {Outcome.OK: 8}
    cookies = [re.findall(rb"Cookie: ([^\r]*)", request) for request in seen]
    # Each iteration begins without any.
    assert cookies == [[], [b"a=1"], [b's="q'], [b's="q']] * 2
    assert seen[2].endswith(b"\r\n\r\n_csrf=x%20y&password=secret")
    assert seen[3].endswith(b"\r\n\r\ncode=a%2Bb")


def test_without_cookies_in_the_plan_none_is_sent(serve: Serve) -> None:
    seen: list[bytes] = []
    server = serve(answering(logins(), seen))
    load = ClosedLoad(1, iterations=1)
    assert outcomes(Plan(server.origin, LOGIN, load, {"password": ("x",)})) == {Outcome.OK: 4}
    assert not [request for request in seen if b"Cookie" in request]


def test_a_link_to_another_host_is_not_followed(serve: Serve) -> None:
    for location in ("http://192.0.2.1/interaction/1", "//192.0.2.1/x", "https://127.0.0.1/x"):
        seen: list[bytes] = []
        server = serve(answering(logins(location), seen))
        load = ClosedLoad(1, iterations=1)
        plan = Plan(server.origin, LOGIN, load, {"password": ("x",)})
        assert outcomes(plan) == {Outcome.BAD_HTTP: 1}
        assert len(seen) == 1


def test_another_value_than_expected_is_wrong_content(serve: Serve) -> None:
    step = Step("look", "GET", text("/"), captures=(JsonCapture("on", "/active", equals="true"),))
    for active, outcome in ((True, Outcome.OK), (False, Outcome.WRONG_CONTENT)):
        body = json.dumps({"active": active})
        server = serve(answering({"GET /": answer("200 OK", body)}, []))
        assert outcomes(server.plan(ClosedLoad(1, iterations=1), step)) == {outcome: 1}


def test_a_value_can_be_encoded_for_a_form(serve: Serve) -> None:
    seen: list[bytes] = []
    token = answer("200 OK", json.dumps({"token": "a+b/c=="}))
    server = serve(answering({"GET /": token, "POST /": token}, seen))
    steps = (
        Step("get", "GET", text("/"), captures=(JsonCapture("token", "/token", encoded=True),)),
        Step("post", "POST", text("/"), body=(Text("token="), Captured("token"))),
    )
    assert outcomes(server.plan(ClosedLoad(1, iterations=1), *steps)) == {Outcome.OK: 2}
    assert seen[1].endswith(b"token=a%2Bb%2Fc%3D%3D")


def renewing(seen: list[str], refused: str = "", status: str = "") -> Behaviour:
    """Answer a token with its successor; refuse one of them, each time."""

    def behave(connection: Connection) -> None:
        while (request := connection.request()) is not None:
            token = request.rpartition(b"=")[2].decode()
            seen.append(token)
            body = json.dumps({"token": f"{token}+"})
            connection.send(answer(status) if token == refused else answer("200 OK", body))

    return behave


RENEW = Step(
    "renew",
    "POST",
    text("/token"),
    body=(Text("token="), Captured("chain")),
    captures=(JsonCapture("chain", "/token"),),
)


def test_a_value_of_a_chain_is_used_once_and_replaced_by_what_it_brought(serve: Serve) -> None:
    seen: list[str] = []
    server = serve(renewing(seen))
    load = ClosedLoad(1, iterations=5)
    plan = Plan(server.origin, (RENEW,), load, chains={"chain": ("a", "b")})
    assert outcomes(plan) == {Outcome.OK: 5}
    assert seen == ["a", "b", "a+", "b+", "a++"]


def test_a_value_that_was_refused_for_now_is_used_again_and_others_are_not(serve: Serve) -> None:
    for status, later in (("503 Service Unavailable", ["b", "a+"]), ("400 Bad Request", ["a+"])):
        seen: list[str] = []
        server = serve(renewing(seen, "b", status))
        load = ClosedLoad(1, iterations=4)
        plan = Plan(server.origin, (RENEW,), load, chains={"chain": ("a", "b")})
        assert outcomes(plan)[Outcome.HTTP_STATUS] == (2 if "b" in later else 1)
        assert seen[:3] == ["a", "b", "a+"]
        assert ("b" in seen[2:]) is ("b" in later)


def test_an_iteration_without_a_free_value_fails_unsent(serve: Serve) -> None:
    seen: list[str] = []
    server = serve(renewing(seen, "a", "400 Bad Request"))
    load = ClosedLoad(1, iterations=3)
    plan = Plan(server.origin, (RENEW,), load, chains={"chain": ("a",)})
    assert outcomes(plan) == {Outcome.HTTP_STATUS: 1, Outcome.NONE_FREE: 2}
    assert seen == ["a"]


def test_a_mix_takes_values_only_for_the_script_that_uses_them(serve: Serve) -> None:
    seen: list[str] = []
    server = serve(renewing(seen))
    other = Step("other", "POST", text("/other"), body=text("token=none"))
    steps, mix = mixed(((other,), 1.0), ((RENEW,), 1.0))
    load = ClosedLoad(1, iterations=40)
    plan = Plan(server.origin, steps, load, mix=mix, chains={"chain": ("a",)})
    assert outcomes(plan) == {Outcome.OK: 40}
    renewed = [token for token in seen if token != "none"]
    assert renewed == ["a" + "+" * number for number in range(len(renewed))]
    assert 5 < len(renewed) < 35
