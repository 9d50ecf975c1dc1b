import json
import math
from collections.abc import Mapping
from time import time
from typing import cast

import pytest

from loadstone.cloud.cloud import Endpoint
from loadstone.errors import EnvironmentUnusable
from loadstone.oidc.client import Client
from loadstone.oidc.http import Http, HttpAnswer
from loadstone.oidc.login import log_in
from loadstone.oidc.metadata import Metadata
from loadstone.oidc.prepare import PreparedOidc, prepare
from loadstone.oidc.provider import Provider, Tokens
from loadstone.oidc.scenarios import ProviderWay, named
from loadstone.oidc.users import OidcUser
from loadstone.plan.load import OpenLoad
from loadstone.plan.model import Limits, Placement, Tls


@pytest.mark.parametrize(
    ("said", "life_s"), [(3600, 3600.0), ("3600", 3600.0), (None, math.inf), ("soon", math.inf)]
)
def test_a_token_lives_as_long_as_the_provider_says(said: object, life_s: float) -> None:
    """RFC 6749, 5.1: expires_in is recommended, and may be absent."""
    given = {"access_token": "x"} | ({} if said is None else {"expires_in": said})
    tokens = Tokens.of(HttpAnswer(200, json.dumps(given)), "a grant")
    assert tokens.expires_at == pytest.approx(time() + life_s, abs=10)


@pytest.mark.parametrize("text", ["<html>", "[1]", 100_000 * "["])
def test_an_answer_that_is_no_json_object_says_its_status(text: str) -> None:
    with pytest.raises(EnvironmentUnusable, match=r"^a grant: HTTP 200$"):
        Tokens.of(HttpAnswer(200, text), "a grant")


class GrantingHttp:
    """An HTTP client of a provider that grants every login."""

    def __init__(self) -> None:
        self.logins: list[str] = []

    def post(self, _path: str, body: str, _headers: object = None) -> HttpAnswer:
        self.logins.append(body)
        said = {"access_token": "a", "refresh_token": f"r{len(self.logins)}", "expires_in": 60}
        return HttpAnswer(200, json.dumps(said))


@pytest.mark.parametrize(
    ("users", "in_flight", "sessions"),
    [(3, 10, 64), (200, 10, 200), (1000, 1024, 1024), (1000, 10_000, 1024), (2000, 64, 1024)],
)
def test_there_are_as_many_sessions_as_the_load_may_use(
    users: int, in_flight: int, sessions: int
) -> None:
    http = GrantingHttp()
    metadata = Metadata(
        "http://127.0.0.1:9",
        "/",
        token="/token",
        grants=frozenset({"password"}),
    )
    named_users = tuple(OidcUser(f"u{number}", "pw") for number in range(users))
    provider = Provider(
        Endpoint.parse("http://127.0.0.1:9"),
        metadata,
        Client("load", "a secret"),
        named_users,
        cast("Http", http),
        Tls(),
    )
    steps, mix = named("oidc-refresh").steps(provider, ProviderWay())
    prepared = PreparedOidc(named("oidc-refresh"), provider, steps, mix, {}, lambda _: None)
    plan = prepared.plan(OpenLoad(10.0, 5.0), Limits(in_flight), Placement())
    assert len(plan.chains["refresh_token"]) == len(http.logins) == sessions


class KeysHttp:
    """An HTTP client of a provider that answers a request for its keys."""

    def __init__(self, answer: HttpAnswer) -> None:
        self.answer = answer

    def get(self, _path: str, _headers: object = None) -> HttpAnswer:
        return self.answer


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (HttpAnswer(404, "<html>no such page</html>"), "HTTP 404"),
        (HttpAnswer(200, "<html>log in</html>"), "has no keys"),
        (HttpAnswer(200, '{"keys": []}'), "has no keys"),
    ],
)
@pytest.mark.parametrize("name", ["oidc-discover", "mix:oidc-discover=1,oidc-userinfo=1"])
def test_keys_that_a_provider_does_not_give_are_said_before_the_load(
    answer: HttpAnswer, why: str, name: str
) -> None:
    metadata = Metadata("http://127.0.0.1:9", "/", userinfo="/me", jwks="/keys?all=1")
    provider = Provider(
        Endpoint.parse("http://127.0.0.1:9"),
        metadata,
        Client("load"),
        (OidcUser("u", "pw"),),
        cast("Http", KeysHttp(answer)),
        Tls(),
    )
    with pytest.raises(EnvironmentUnusable, match=rf"^http://127.0.0.1:9: jwks_uri /keys: {why};"):
        prepare(named(name), provider, lambda _: None)


class CookieHttp:
    """An HTTP client of a provider that sets cookies with its login page."""

    def __init__(self, *set_cookies: str) -> None:
        self.set_cookies = set_cookies
        self.sent = ""

    def get(self, _path: str, _headers: object = None) -> HttpAnswer:
        form = '<form action="/login"><input name="user"><input name="pw" type="password"></form>'
        return HttpAnswer(200, form, set_cookies=self.set_cookies)

    def post(self, path: str, _body: str, headers: Mapping[str, str]) -> HttpAnswer:
        if path == "/login":
            self.sent = headers.get("Cookie", "")
            return HttpAnswer(302, "", "http://127.0.0.1/callback?code=1")
        return HttpAnswer(200, '{"access_token": "a"}')


@pytest.mark.parametrize(
    ("set_cookies", "sent"),
    [
        (("a=1", "a=; Max-Age=0"), ""),
        (("a=1", "a=; Max-Age=-1"), ""),
        (("a=1", "a=; Expires=Mon, 01 Jan 1990 00:00:00 GMT"), ""),
        (("a=1; Max-Age=60; Expires=Thu, 01 Jan 1970 00:00:00 GMT",), "a=1"),
        (("a=1; Path=login",), "a=1"),
    ],
)
def test_the_login_that_is_tried_keeps_the_cookies_that_the_load_keeps(
    set_cookies: tuple[str, ...], sent: str
) -> None:
    """The cases are those of rust/engine/src/cookies.rs."""
    http = CookieHttp(*set_cookies)
    provider = Provider(
        Endpoint.parse("http://127.0.0.1:9"),
        Metadata("http://127.0.0.1:9", "/", authorization="/auth", token="/token"),
        Client("load"),
        (),
        cast("Http", http),
        Tls(),
    )
    log_in(provider, OidcUser("u", "pw"))
    assert http.sent == sent
