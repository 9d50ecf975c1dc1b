"""The realm of a Keycloak in the lab: one client, and users."""

from collections.abc import Iterable, Mapping
from typing import Any

from loadstone.lab.provider.credentials import CLIENT_ID, REDIRECT_URI

REALM = "lab"


def realm(users: Iterable[Mapping[str, str]], secret: str, policy: str) -> dict[str, Any]:
    """Return a realm in the form that the admin API takes."""
    return {
        "realm": REALM,
        "enabled": True,
        "sslRequired": "none",
        "passwordPolicy": policy,
        "revokeRefreshToken": True,  # refresh tokens rotate
        "refreshTokenMaxReuse": 0,
        "accessTokenLifespan": 900,  # longer than a load
        "clients": [_client(secret)],
        "users": [_user(user) for user in users],
    }


def _client(secret: str) -> dict[str, Any]:
    # Without this mapper the client's own tokens are not active for it (since 26.6.2).
    audience = {
        "name": "own audience",
        "protocol": "openid-connect",
        "protocolMapper": "oidc-audience-mapper",
        "config": {
            "included.client.audience": CLIENT_ID,
            "access.token.claim": "true",
            "introspection.token.claim": "true",
        },
    }
    return {
        "clientId": CLIENT_ID,
        "secret": secret,
        "publicClient": False,
        "directAccessGrantsEnabled": True,
        "serviceAccountsEnabled": True,
        "redirectUris": [REDIRECT_URI],
        "attributes": {
            "pkce.code.challenge.method": "S256",
            "post.logout.redirect.uris": REDIRECT_URI,
        },
        "protocolMappers": [audience],
    }


def _user(user: Mapping[str, str]) -> dict[str, Any]:
    """Return a user; without address and names, a login ends at a form that asks for them."""
    name = user["username"]
    return {
        "username": name,
        "enabled": True,
        "email": f"{name}@example.org",
        "emailVerified": True,
        "firstName": "User",
        "lastName": name,
        "credentials": [{"type": "password", "value": user["password"], "temporary": False}],
    }
