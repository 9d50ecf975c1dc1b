"""Scenarios of OpenID Connect by their names on the command line."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from enum import StrEnum
from urllib.parse import quote

from loadstone.errors import InvalidInput
from loadstone.oidc.login import LoginWay, authorization
from loadstone.oidc.provider import SCOPE, Provider
from loadstone.plan.mix import is_mix, weights_of
from loadstone.plan.script import (
    Capture,
    Captured,
    Column,
    FormCapture,
    Iteration,
    JsonCapture,
    LinkCapture,
    Part,
    Step,
    Steps,
    Template,
    Text,
    WeightedScript,
    mixed,
    text,
)

PREFIX = "oidc-"
CHAIN = "refresh_token"
# Columns. Those of forms are percent-encoded.
CLIENT_HEADER, CLIENT_FORM = Column("client_header"), Column("client_form")
USER_NAME, PASSWORD = Column("user_name"), Column("password")
VERIFIER, CHALLENGE = Column("code_verifier"), Column("code_challenge")
NONCE, STATE = Column("nonce"), Column("state")
ACCESS_TOKEN, ACCESS_TOKEN_FORM = Column("access_token"), Column("access_token_form")


class OidcNeed(StrEnum):
    """What a scenario needs before its load."""

    SECRET = "the client's secret"  # noqa: S105 (no secret)
    USERS = "users"
    LOGIN = "a login that was tried"
    ACCESS_TOKENS = "access tokens"
    SESSIONS = "sessions with a refresh token"


@dataclass(frozen=True, slots=True)
class ProviderWay:
    """How this provider does what it may do in several ways; found by trying it once."""

    login: LoginWay | None = None
    logout_status: int = 302


Build = Callable[[Provider, ProviderWay], Steps]


@dataclass(frozen=True, slots=True)
class OidcScenario:
    """What one iteration does at a provider, or a mix of such."""

    name: str
    title: str
    request: str
    build: Build = field(repr=False)
    needs: frozenset[OidcNeed] = frozenset()
    parts: tuple["OidcScenario", ...] = ()  # of a mix
    weights: tuple[float, ...] = ()

    def steps(
        self, provider: Provider, way: ProviderWay
    ) -> tuple[Steps, tuple[WeightedScript, ...]]:
        """Return the steps at a provider, and the mix."""
        if not self.parts:
            return self.build(provider, way), ()
        scripts = (part.build(provider, way) for part in self.parts)
        return mixed(*zip(scripts, self.weights, strict=True))


def named(name: str) -> OidcScenario:
    """Return a scenario by name, or a mix such as mix:oidc-login=1,oidc-refresh=9."""
    if not is_mix(name):
        return _scenario(name)
    weights = weights_of(name)
    parts = tuple(_scenario(part) for part in weights)
    total = sum(weights.values())
    shares = (f"{weights[part.name] / total:.3g} {part.request}" for part in parts)
    return OidcScenario(
        name,
        f"mix of {' and '.join(weights)}",
        f"one of: {', '.join(shares)}",
        _no_build,
        frozenset(need for part in parts for need in part.needs),
        parts,
        tuple(weights.values()),
    )


def _no_build(_provider: Provider, _way: ProviderWay) -> Steps:
    raise AssertionError("a mix is built from its parts")


def _scenario(name: str) -> OidcScenario:
    if scenario := SCENARIOS.get(name):
        return scenario
    near = get_close_matches(name, SCENARIOS, 1)
    meant = f"did you mean {near[0]!r}? " if near else ""
    raise InvalidInput(
        f"no scenario {name!r} of OpenID Connect; {meant}choose from {', '.join(SCENARIOS)}, and "
        "mix:oidc-login=1,oidc-refresh=9"
    )


def _form(provider: Provider, **fields: str | Part) -> Template:
    """Return the body of a form: texts are encoded, other parts must be."""
    parts: list[Part] = []
    for name, value in fields.items():
        before = f"{'&' if parts else ''}{name}="
        if isinstance(value, str):
            parts.append(Text(before + quote(value, safe="")))
        else:
            parts += [Text(before), value]
    if provider.client.body:
        parts.append(CLIENT_FORM)
    return tuple(parts)


_FORM_TYPE = ("Content-Type", text("application/x-www-form-urlencoded"))
_ACCEPT = ("Accept", text("application/json"))


def _post(
    provider: Provider,
    action: str,
    path: str,
    body: Template,
    *captures: Capture,
) -> Step:
    """Return a request that the client makes as itself."""
    client = () if provider.client.header is None else (("Authorization", (CLIENT_HEADER,)),)
    headers = (_ACCEPT, _FORM_TYPE, *client)
    return Step(action, "POST", text(path), headers, body, captures=captures)


def _token_step(provider: Provider, action: str, body: Template, *captures: Capture) -> Step:
    captured = (JsonCapture("granted", "/access_token"), *captures)
    return _post(provider, action, provider.require("token", action), body, *captured)


def _discover(provider: Provider, _: ProviderWay) -> Steps:
    metadata = provider.metadata
    issuer = JsonCapture("issuer", "/issuer", equals=metadata.issuer)
    steps = [Step("oidc.discover", "GET", text(metadata.discovery), (_ACCEPT,), captures=(issuer,))]
    if metadata.jwks is not None:
        key = JsonCapture("key", "/keys/0/kty")
        steps.append(Step("oidc.jwks", "GET", text(metadata.jwks), (_ACCEPT,), captures=(key,)))
    return tuple(steps)


def _client_credentials(provider: Provider, _: ProviderWay) -> Steps:
    body = _form(provider, grant_type="client_credentials")
    return (_token_step(provider, "oidc.client_credentials", body),)


def _password(provider: Provider, _: ProviderWay) -> Steps:
    body = _form(
        provider, grant_type="password", username=USER_NAME, password=PASSWORD, scope=SCOPE
    )
    return (_token_step(provider, "oidc.password", body),)


def _refresh(provider: Provider, _: ProviderWay) -> Steps:
    body = _form(provider, grant_type="refresh_token", refresh_token=Captured(CHAIN))
    # A provider that does not rotate refresh tokens brings none.
    renewed = JsonCapture(CHAIN, "/refresh_token", optional=True, encoded=True)
    return (_token_step(provider, "oidc.refresh", body, renewed),)


def _introspect(provider: Provider, _: ProviderWay) -> Steps:
    path = provider.require("introspection", "oidc-introspect")
    active = JsonCapture("active", "/active", equals="true")
    body = _form(provider, token=ACCESS_TOKEN_FORM)
    return (_post(provider, "oidc.introspect", path, body, active),)


def _userinfo(provider: Provider, _: ProviderWay) -> Steps:
    path = provider.require("userinfo", "oidc-userinfo")
    headers = (_ACCEPT, ("Authorization", (Text("Bearer "), ACCESS_TOKEN)))
    captures = (JsonCapture("sub", "/sub"),)
    return (Step("oidc.userinfo", "GET", text(path), headers, captures=captures),)


_HTML = ("Accept", text("text/html"))


def _login(provider: Provider, way: ProviderWay) -> Steps:
    login = _of(way)
    form: tuple[Capture, ...] = (FormCapture("form_action", login.form),)
    if login.has_hidden:
        form += (FormCapture("form_hidden", login.form, hidden=True),)
    token = _form(
        provider,
        grant_type="authorization_code",
        code=Captured("code"),
        redirect_uri=provider.client.redirect_uri,
        code_verifier=VERIFIER,
    )
    id_token = JsonCapture("id_token", "/id_token", optional=True)
    return (
        *_follow("oidc.authorize", _authorization(provider), login.to_page, form),
        *_send_form(login),
        _token_step(provider, "oidc.token", token, id_token),
    )


def _of(way: ProviderWay) -> LoginWay:
    if way.login is None:
        raise AssertionError("a login is tried before")
    return way.login


STATE_BACK = "logged-out"


def _authorization(provider: Provider) -> Template:
    """Return the path of the authorization request, with holes."""
    path = authorization(provider, "<s>", "<n>", "<c>")
    holes = {"%3Cs%3E": STATE, "%3Cn%3E": NONCE, "%3Cc%3E": CHALLENGE}
    parts: list[Part] = []
    for hole, column in holes.items():
        before, _, path = path.partition(hole)
        parts += [Text(before), column]
        if column is STATE:
            parts.append(Iteration("."))  # each login has its own
    return (*parts, Text(path))


def _follow(
    first: str, path: Template, statuses: tuple[int, ...], captures: tuple[Capture, ...]
) -> Steps:
    """Return the requests from a link over redirects to a page."""
    steps = []
    for number, status in enumerate((*statuses, 200)):
        is_page = number == len(statuses)
        link = f"{first}_link_{number + 1}"
        action = first if number == 0 else f"oidc.redirect_{number}"
        kept = captures if is_page else (LinkCapture(link),)
        steps.append(Step(action, "GET", path, (_HTML,), expect_status=(status,), captures=kept))
        path = (Text("/"), Captured(link))
    return tuple(steps)


def _send_form(login: LoginWay) -> Steps:
    """Return the request with name and password, and the redirects to the code."""
    fields: Template = (
        Text(f"{quote(login.user_field, safe='')}="),
        USER_NAME,
        Text(f"&{quote(login.password_field, safe='')}="),
        PASSWORD,
    )
    hidden: Template = (Captured("form_hidden"), Text("&")) if login.has_hidden else ()
    steps = []
    for number, status in enumerate(login.to_code):
        is_last = number == len(login.to_code) - 1
        link = f"resume_{number + 1}"
        kept = LinkCapture("code", parameter="code") if is_last else LinkCapture(link)
        if number == 0:
            request = Step(
                "oidc.login",
                "POST",
                (Text("/"), Captured("form_action")),
                (_HTML, _FORM_TYPE),
                (*hidden, *fields),
            )
        else:
            place = (Text("/"), Captured(f"resume_{number}"))
            request = Step(f"oidc.resume_{number}", "GET", place, (_HTML,))
        steps.append(replace(request, expect_status=(status,), captures=(kept,)))
    return tuple(steps)


def _logout(provider: Provider, way: ProviderWay) -> Steps:
    path = provider.require("end_session", "oidc-logout")
    back = quote(provider.client.redirect_uri, safe="")
    query: Template = (
        Text(f"{path}{'&' if '?' in path else '?'}post_logout_redirect_uri={back}"),
        Text(f"&state={STATE_BACK}&id_token_hint="),
        Captured("id_token"),
    )
    # Only the redirect back to the client brings the state (OpenID Connect RP-Initiated Logout, 3).
    is_back = LinkCapture("state_back", parameter="state")
    status = (way.logout_status,)
    end = Step("oidc.logout", "GET", query, (_HTML,), expect_status=status, captures=(is_back,))
    return (*_login(provider, way), end)


_LOGIN_REQUEST = "login page, name and password, code, tokens"
_OF_USERS = frozenset({OidcNeed.USERS, OidcNeed.LOGIN})
SCENARIOS: Mapping[str, OidcScenario] = {
    one.name: one
    for one in (
        OidcScenario(
            "oidc-discover", "discovery", "GET the provider's metadata and its keys", _discover
        ),
        OidcScenario(
            "oidc-client-credentials",
            "client credentials grant",
            "POST token endpoint (grant_type=client_credentials)",
            _client_credentials,
            frozenset({OidcNeed.SECRET}),
        ),
        OidcScenario(
            "oidc-password",
            "password grant",
            "POST token endpoint (grant_type=password)",
            _password,
            frozenset({OidcNeed.USERS}),
        ),
        OidcScenario(
            "oidc-login",
            "login with code and PKCE",
            f"authorization code flow with PKCE, as a new browser: {_LOGIN_REQUEST}",
            _login,
            _OF_USERS,
        ),
        OidcScenario(
            "oidc-refresh",
            "refresh of tokens",
            "POST token endpoint (grant_type=refresh_token), each refresh token once",
            _refresh,
            frozenset({OidcNeed.USERS, OidcNeed.SESSIONS}),
        ),
        OidcScenario(
            "oidc-introspect",
            "token introspection",
            "POST introspection endpoint (an access token, which must be active)",
            _introspect,
            frozenset({OidcNeed.SECRET, OidcNeed.ACCESS_TOKENS}),
        ),
        OidcScenario(
            "oidc-userinfo",
            "userinfo",
            "GET userinfo endpoint (with an access token of a user)",
            _userinfo,
            frozenset({OidcNeed.USERS, OidcNeed.ACCESS_TOKENS}),
        ),
        OidcScenario(
            "oidc-logout",
            "login and logout",
            f"authorization code flow with PKCE ({_LOGIN_REQUEST}), then logout",
            _logout,
            _OF_USERS,
        ),
    )
}
