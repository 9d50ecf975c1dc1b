"""Prepares a scenario at a provider: tries it once, issues tokens, and compiles plans."""

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from itertools import cycle, islice
from urllib.parse import parse_qs, quote, urlsplit

from loadstone.errors import EnvironmentUnusable, InvalidInput
from loadstone.oidc.client import VARIABLE
from loadstone.oidc.login import REDIRECTS, log_in
from loadstone.oidc.page import read_page
from loadstone.oidc.pkce import ProofKey
from loadstone.oidc.provider import HTTP_OK, Provider, Tokens, new_state
from loadstone.oidc.scenarios import (
    ACCESS_TOKEN,
    ACCESS_TOKEN_FORM,
    CHAIN,
    CHALLENGE,
    CLIENT_FORM,
    CLIENT_HEADER,
    NONCE,
    PASSWORD,
    STATE,
    STATE_BACK,
    USER_NAME,
    VERIFIER,
    OidcNeed,
    OidcScenario,
    ProviderWay,
)
from loadstone.oidc.target import OidcIssuer
from loadstone.oidc.users import OPTION, OidcUser
from loadstone.plan.load import ClosedLoad, Load
from loadstone.plan.model import Limits, Placement, Plan
from loadstone.plan.script import Steps, WeightedScript, columns_of
from loadstone.system.say import Say

# Refreshes in flight need a refresh token each; the rest of a rotation waits in between.
LEAST_SESSIONS = 64
MOST_SESSIONS = 1024
MOST_TOKENS = 64  # access tokens of as many users, in turn; each costs a login
PROOF_KEYS = 256  # verifiers and challenges, in turn


@dataclass(frozen=True, slots=True)
class PreparedOidc:
    """A scenario that was tried at a provider; each plan gets fresh tokens where it needs them."""

    scenario: OidcScenario
    provider: Provider
    steps: Steps
    mix: tuple[WeightedScript, ...]
    columns: Mapping[str, tuple[str, ...]] = field(repr=False)
    say: Say = field(repr=False)

    @property
    def actions(self) -> tuple[str, ...]:
        """The names of the samples' actions."""
        return tuple(step.action for step in self.steps)

    def plan(self, load: Load, limits: Limits, placement: Placement) -> Plan:
        """Return the engine's plan for this load; issues the tokens that it uses up."""
        needs = self.scenario.needs
        columns = dict(self.columns)
        if OidcNeed.ACCESS_TOKENS in needs:
            columns |= _access_columns(self.provider, load, limits, self.say)
        chains: dict[str, tuple[str, ...]] = {}
        if OidcNeed.SESSIONS in needs:
            wanted = min(limits.max_connections, MOST_SESSIONS)
            if isinstance(load, ClosedLoad):
                wanted = load.workers
            sessions = _sessions(self.provider, wanted, self.say)
            chains = {CHAIN: sessions}
            # Iterations without a session wait for one, as for a connection.
            most = min(limits.max_connections, len(sessions))
            limits = replace(limits, max_connections=most)
        used = columns_of(self.steps)
        return Plan(
            self.provider.endpoint.origin(self.provider.tls),
            self.steps,
            load,
            {name: values for name, values in columns.items() if name in used},
            limits,
            placement=placement,
            mix=self.mix,
            chains=chains,
            cookies=OidcNeed.LOGIN in needs,
        )


def require_given(scenario: OidcScenario, given: OidcIssuer | Provider, who: str) -> None:
    """Refuse a scenario whose users or secret are not given; `who` begins the message."""
    if OidcNeed.USERS in scenario.needs and not given.users:
        raise InvalidInput(f"{who}: needs users that can log in; give a file with {OPTION}")
    if OidcNeed.SECRET in scenario.needs and given.client.secret is None:
        raise InvalidInput(
            f"{who}: needs the client's secret: --client-secret-file FILE, or {VARIABLE}"
        )


def try_once(scenario: OidcScenario, provider: Provider) -> ProviderWay:
    """Send what each operation of a scenario sends; an error says why it cannot be measured."""
    require_given(scenario, provider, scenario.name)
    way = ProviderWay()
    for part in scenario.parts or (scenario,):
        tried = _TRIALS.get(part.name)
        if tried is not None:
            way = tried(provider, way)
    return way


def prepare(scenario: OidcScenario, provider: Provider, say: Say) -> PreparedOidc:
    """Try each operation of a scenario once, and prepare its requests."""
    way = try_once(scenario, provider)
    if way.login is not None:
        say(f"a login takes {way.login.requests} requests")
    steps, mix = scenario.steps(provider, way)
    return PreparedOidc(scenario, provider, steps, mix, _columns(provider), say)


def _try_discover(provider: Provider, way: ProviderWay) -> ProviderWay:
    path = provider.metadata.jwks
    if path is None:
        return way
    answer = provider.http.get(path)
    keys = answer.json.get("keys")
    if answer.status != HTTP_OK or not isinstance(keys, list) or not keys:
        why = answer.error if answer.status != HTTP_OK else "has no keys"
        raise EnvironmentUnusable(
            f"{provider.url}: jwks_uri {urlsplit(path).path}: {why}; the metadata name it for the "
            "keys with which tokens are verified"
        )
    return way


def _try_login(provider: Provider, way: ProviderWay) -> ProviderWay:
    return replace(way, login=log_in(provider, provider.users[0]).way)


def _try_logout(provider: Provider, way: ProviderWay) -> ProviderWay:
    done = log_in(provider, provider.users[0])
    where = f"{provider.url}: logout"
    if done.tokens.id_token is None:
        raise EnvironmentUnusable(f"{where}: the login brought no ID token, which it needs")
    path = provider.require("end_session", "oidc-logout")
    back = quote(provider.client.redirect_uri, safe="")
    query = (
        f"post_logout_redirect_uri={back}&state={STATE_BACK}&id_token_hint={done.tokens.id_token}"
    )
    answer = provider.http.get(f"{path}{'&' if '?' in path else '?'}{query}")
    if answer.status not in REDIRECTS:
        page = read_page(answer.text)
        raise EnvironmentUnusable(
            f"{where}: HTTP {answer.status} with a page ({page.shown!r}) in place of a redirect; "
            "providers that ask for confirmation cannot be measured, and "
            f"{provider.client.redirect_uri} must be a post-logout redirect URI of the client"
        )
    if answer.location.partition("?")[0] != provider.client.redirect_uri.partition("?")[0]:
        raise EnvironmentUnusable(
            f"{where}: leads to {answer.location.partition('?')[0]} in place of "
            f"{provider.client.redirect_uri}; a logout in several pages cannot be measured"
        )
    if STATE_BACK not in parse_qs(urlsplit(answer.location).query).get("state", ()):
        raise EnvironmentUnusable(
            f"{where}: leads back without the state that was sent, by which a logout is told from "
            "an error; the provider does not keep to OpenID Connect RP-Initiated Logout, section 3"
        )
    return replace(way, login=done.way, logout_status=answer.status)


def _try_client_credentials(provider: Provider, way: ProviderWay) -> ProviderWay:
    _client_tokens(provider)
    return way


def _try_password(provider: Provider, way: ProviderWay) -> ProviderWay:
    provider.password_tokens(provider.users[0])
    return way


def _try_refresh(provider: Provider, way: ProviderWay) -> ProviderWay:
    tokens = user_tokens(provider, provider.users[:1])[0]
    form = {"grant_type": "refresh_token", "refresh_token": _refresh_token(provider, tokens)}
    provider.grant(form, "refresh")
    return way


def _try_introspect(provider: Provider, way: ProviderWay) -> ProviderWay:
    [tokens, *_] = _access_tokens(provider, first_only=True)
    path = provider.require("introspection", "oidc-introspect")
    answer = provider.post(path, {"token": tokens.access})
    where = f"{provider.url}: introspection"
    if answer.status != HTTP_OK:
        raise EnvironmentUnusable(
            f"{where}: {answer.error}; check the client's secret, and that it may introspect "
            "(node oidc-provider: opaque access tokens only)"
        )
    if answer.json.get("active") is not True:
        raise EnvironmentUnusable(
            f"{where}: a token that was just issued is not active; is the client in its audience "
            "(Keycloak since 26.6.2: add an audience mapper), and is the issuer named by the same "
            "host as here?"
        )
    return way


def _try_userinfo(provider: Provider, way: ProviderWay) -> ProviderWay:
    tokens = user_tokens(provider, provider.users[:1])[0]
    path = provider.require("userinfo", "oidc-userinfo")
    answer = provider.http.get(path, {"Authorization": f"Bearer {tokens.access}"})
    if answer.status != HTTP_OK or "sub" not in answer.json:
        raise EnvironmentUnusable(
            f"{provider.url}: userinfo: {answer.error}; is the scope openid permitted to the "
            "client?"
        )
    return way


_TRIALS: Mapping[str, Callable[[Provider, ProviderWay], ProviderWay]] = {
    "oidc-discover": _try_discover,
    "oidc-client-credentials": _try_client_credentials,
    "oidc-password": _try_password,
    "oidc-login": _try_login,
    "oidc-refresh": _try_refresh,
    "oidc-introspect": _try_introspect,
    "oidc-userinfo": _try_userinfo,
    "oidc-logout": _try_logout,
}


def _client_tokens(provider: Provider) -> Tokens:
    return provider.grant({"grant_type": "client_credentials"}, "client credentials grant")


def user_tokens(provider: Provider, users: tuple[OidcUser, ...]) -> tuple[Tokens, ...]:
    """Return tokens of users: by the password grant if the client may use it, else by logins."""
    if "password" in provider.metadata.grants:
        try:
            first = provider.password_tokens(users[0])
        except EnvironmentUnusable:
            pass  # the login says what is wrong with the user, if anything is
        else:
            return (first, *(provider.password_tokens(user) for user in users[1:]))
    return tuple(log_in(provider, user).tokens for user in users)


def _access_tokens(provider: Provider, *, first_only: bool = False) -> tuple[Tokens, ...]:
    """Return access tokens of the users; without users, one of the client."""
    if not provider.users:
        return (_client_tokens(provider),)
    return user_tokens(provider, provider.users[: 1 if first_only else MOST_TOKENS])


def _access_columns(
    provider: Provider, load: Load, limits: Limits, say: Say
) -> dict[str, tuple[str, ...]]:
    count = min(max(len(provider.users), 1), MOST_TOKENS)
    say(f"issuing {count} access token{'' if count == 1 else 's'}")
    tokens = _access_tokens(provider)
    left_s = min(one.expires_at for one in tokens) - time.time()
    # How long a closed loop takes that is limited by iterations only is not known: it may begin.
    lasting_s = limits.tokens_last_s(load.duration_s or 0.0)
    if left_s < lasting_s:
        raise EnvironmentUnusable(
            f"the access tokens expire in {max(left_s, 0.0):.0f} s, and this load needs them for "
            f"{lasting_s:.0f} s; load for less long, or raise their lifetime at the provider"
        )
    if load.duration_s is None and math.isfinite(left_s):
        say(f"  they expire in {left_s:.0f} s; iterations after that fail")
    values = tuple(one.access for one in tokens)
    return {
        ACCESS_TOKEN.column: values,
        ACCESS_TOKEN_FORM.column: tuple(quote(value, safe="") for value in values),
    }


def _sessions(provider: Provider, wanted: int, say: Say) -> tuple[str, ...]:
    """Log users in, in turn; return the refresh tokens of their sessions."""
    count = max(LEAST_SESSIONS, wanted, min(len(provider.users), MOST_SESSIONS))
    say(f"logging in {count} sessions")
    tokens = user_tokens(provider, tuple(islice(cycle(provider.users), count)))
    return tuple(quote(_refresh_token(provider, one), safe="") for one in tokens)


def _refresh_token(provider: Provider, tokens: Tokens) -> str:
    if tokens.refresh is None:
        raise EnvironmentUnusable(
            f"{provider.url}: refresh: the login brought no refresh token; permit the grant "
            "refresh_token to the client, without the scope offline_access"
        )
    return tokens.refresh


def _columns(provider: Provider) -> dict[str, tuple[str, ...]]:
    keys = [ProofKey.make() for _ in range(PROOF_KEYS)]
    return {
        CLIENT_HEADER.column: (provider.client.header or "",),
        CLIENT_FORM.column: (provider.client.body,),
        USER_NAME.column: tuple(quote(user.name, safe="") for user in provider.users),
        PASSWORD.column: tuple(quote(user.password, safe="") for user in provider.users),
        VERIFIER.column: tuple(key.verifier for key in keys),
        CHALLENGE.column: tuple(key.challenge for key in keys),
        NONCE.column: tuple(new_state() for _ in keys),
        STATE.column: (new_state(),),
    }
