"""A connected provider, and the operations of a client that prepare a load."""

import math
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from time import time
from urllib.parse import urlencode

from loadstone.cloud.cloud import Endpoint
from loadstone.errors import EnvironmentUnusable, InvalidInput
from loadstone.oidc.client import Client
from loadstone.oidc.http import Http, HttpAnswer
from loadstone.oidc.metadata import Metadata
from loadstone.oidc.users import OidcUser
from loadstone.plan.model import Tls

SCOPE = "openid"
HTTP_OK = 200
SENT = {"client_secret_basic", "client_secret_post"}  # ways to send a client's secret


@dataclass(frozen=True, slots=True)
class Tokens:
    """What a grant brought; kept in memory only."""

    access: str = field(repr=False)
    expires_at: float  # Unix time
    refresh: str | None = field(default=None, repr=False)
    id_token: str | None = field(default=None, repr=False)

    @classmethod
    def of(cls, answer: HttpAnswer, what: str) -> "Tokens":
        """Return the tokens of an answer; EnvironmentUnusable says why there are none."""
        said = answer.json
        if answer.status != HTTP_OK or not isinstance(said.get("access_token"), str):
            raise EnvironmentUnusable(f"{what}: {answer.error}{_hint(said)}")
        return cls(
            said["access_token"],
            time() + _life_s(said.get("expires_in")),
            _text(said.get("refresh_token")),
            _text(said.get("id_token")),
        )


def _life_s(said: object) -> float:
    """Return how long an access token lives; infinite if the provider does not say."""
    try:
        return float(str(said))
    except ValueError:
        return math.inf


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


_HINTS = {
    "invalid_client": "check --client-id and the client's secret, and that the client exists and "
    "may authenticate by HTTP Basic, where the provider offers that (client_secret_basic; Keycloak "
    "also says so if the client asks its users for consent)",
    "unauthorized_client": "permit this grant to the client (Keycloak: service accounts, direct "
    "access grants or the standard flow), and check its secret",
    "unsupported_grant_type": "permit this grant at the provider, or choose another scenario",
    "invalid_grant": "check names and passwords, and that nothing more is asked of the users "
    "(an update of the password, consent, a second factor)",
    "invalid_scope": f"permit the scope {SCOPE} to the client",
}


def _hint(said: Mapping[str, object]) -> str:
    hint = _HINTS.get(str(said.get("error")))
    return f"; {hint}" if hint else ""


@dataclass(frozen=True, slots=True)
class Provider:
    """An OpenID provider, the client to load it as, and its users."""

    endpoint: Endpoint  # of the issuer
    metadata: Metadata
    client: Client
    users: tuple[OidcUser, ...] = field(repr=False)
    http: Http = field(repr=False)
    tls: Tls

    @property
    def url(self) -> str:
        """The issuer."""
        return self.metadata.issuer

    def require(self, field_: str, scenario: str) -> str:
        """Return the path of an endpoint; InvalidInput if the provider does not publish it."""
        path: str | None = getattr(self.metadata, field_)
        if path is None:
            raise InvalidInput(
                f"{scenario}: {self.url} publishes no {field_} endpoint, which this scenario needs"
            )
        return path

    def post(self, path: str, form: Mapping[str, str]) -> HttpAnswer:
        """Post a form as the client.

        EnvironmentUnusable: the provider asks for an authentication that load cannot have, such as
        a new signature for each request (private_key_jwt).
        """
        offered = self.metadata.client_authentications
        if self.client.secret is not None and offered and not offered & SENT:
            raise EnvironmentUnusable(
                f"{self.url}: its clients authenticate by {', '.join(sorted(offered))}, and those "
                f"of a load by {' or '.join(sorted(SENT))}; permit one of these to the client"
            )
        header = self.client.header
        headers = {} if header is None else {"Authorization": header}
        return self.http.post(path, urlencode(form) + self.client.body, headers)

    def grant(self, form: Mapping[str, str], what: str) -> Tokens:
        """Ask for tokens; `what` begins the message of a refusal."""
        answer = self.post(self.require("token", what), form)
        return Tokens.of(answer, f"{self.url}: {what}")

    def password_tokens(self, user: OidcUser) -> Tokens:
        """Return the tokens of a user by the password grant."""
        form = {
            "grant_type": "password",
            "username": user.name,
            "password": user.password,
            "scope": SCOPE,
        }
        return self.grant(form, f"password grant of user {user.name}")


def new_state() -> str:
    """Return a value that nobody can guess, for state and nonce."""
    return secrets.token_urlsafe(12)
