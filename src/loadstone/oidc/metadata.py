"""What a provider publishes of itself (OpenID Connect Discovery 1.0)."""

from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Self
from urllib.parse import urlsplit

from loadstone.cloud.cloud import Endpoint
from loadstone.errors import EnvironmentUnusable
from loadstone.oidc.http import Http

WELL_KNOWN = "/.well-known/openid-configuration"
# Field of the dataclass -> name in the document.
_ENDPOINTS = {
    "authorization": "authorization_endpoint",
    "token": "token_endpoint",
    "introspection": "introspection_endpoint",
    "userinfo": "userinfo_endpoint",
    "end_session": "end_session_endpoint",
    "jwks": "jwks_uri",
}


@dataclass(frozen=True, slots=True)
class Metadata:
    """The provider's endpoints as paths on the issuer's origin; None: it has none."""

    issuer: str
    discovery: str
    authorization: str | None = None
    token: str | None = None
    introspection: str | None = None
    userinfo: str | None = None
    end_session: str | None = None
    jwks: str | None = None
    grants: frozenset[str] = frozenset()
    client_authentications: frozenset[str] = frozenset({"client_secret_basic"})

    @classmethod
    def read(cls, issuer: Endpoint, http: Http) -> Self:
        """Read the metadata; EnvironmentUnusable says what cannot be used.

        Endpoints on another host are refused: only the issuer's host is permitted to be loaded.
        """
        path = f"{issuer.path}{WELL_KNOWN}"
        where = f"{_origin(issuer)}{path}"
        answer = http.get(path)
        said = answer.json
        if answer.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            raise EnvironmentUnusable(
                f"{where}: answers HTTP {answer.status}: the provider, or a server that it needs, "
                "is down or overloaded; look at its log and at that of its proxy"
            )
        if answer.status == HTTPStatus.TOO_MANY_REQUESTS:
            raise EnvironmentUnusable(
                f"{where}: answers HTTP 429: a rate limiter refuses this machine; wait, or let its "
                "operator permit it"
            )
        if answer.status != HTTPStatus.OK or "issuer" not in said:
            raise EnvironmentUnusable(
                f"{where}: answers HTTP {answer.status} without the metadata of an OpenID "
                "provider; give its issuer, such as http://HOST:8080/realms/NAME"
            )
        named = _endpoint(said["issuer"], f"{where}: issuer")
        if (_origin(named), named.path) != (_origin(issuer), issuer.path):
            raise EnvironmentUnusable(
                f"{where}: is of the issuer {said['issuer']}; give that one as --oidc"
            )
        paths = {
            field: _path(said[name], issuer, f"{where}: {name}")
            for field, name in _ENDPOINTS.items()
            if said.get(name)
        }
        return cls(
            str(said["issuer"]),
            path,
            **paths,
            # The defaults of the specification.
            grants=_words(said, "grant_types_supported", ("authorization_code", "implicit")),
            client_authentications=_words(
                said, "token_endpoint_auth_methods_supported", ("client_secret_basic",)
            ),
        )


def _words(said: Mapping[str, Any], name: str, default: tuple[str, ...]) -> frozenset[str]:
    found = said.get(name)
    return frozenset(str(one) for one in found) if isinstance(found, list) else frozenset(default)


def _endpoint(url: object, place: str) -> Endpoint:
    try:
        return Endpoint.parse(str(url).split("?", 1)[0])
    except ValueError as wrong:
        raise EnvironmentUnusable(f"{place}: {str(url)!r} cannot be used: {wrong}") from None


def _origin(endpoint: Endpoint) -> str:
    return Endpoint(endpoint.scheme, endpoint.host.lower(), endpoint.port, "").url


def _path(url: object, issuer: Endpoint, place: str) -> str:
    endpoint = _endpoint(url, place)
    if _origin(endpoint) != _origin(issuer):
        raise EnvironmentUnusable(
            f"{place}: leads to {_origin(endpoint)}, and only {_origin(issuer)} was named to be "
            "loaded; give an issuer whose endpoints are on its own host and port"
        )
    parts = urlsplit(str(url))
    return f"{parts.path or '/'}{f'?{parts.query}' if parts.query else ''}"
