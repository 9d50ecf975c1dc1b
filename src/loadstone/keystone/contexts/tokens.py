"""Issues the users' tokens before the load starts."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from loadstone.cloud import Access
from loadstone.keystone.federation import Federation
from loadstone.keystone.identity import Identity, password_method, project_scope
from loadstone.keystone.resources import Token, User
from loadstone.keystone.scenarios.model import (
    ACCESS_RULES_TOKEN,
    ACCESS_TOKEN,
    APPLICATION_CREDENTIAL_TOKEN,
    DOMAIN_TOKEN,
    FEDERATED_TOKEN,
    SUBJECT_TOKEN,
    SYSTEM_TOKEN,
    TRUST_TOKEN,
)
from loadstone.system.concurrently import each
from loadstone.system.say import Say

_WORKERS = 8


def issue_tokens(
    access: Access,
    users: Sequence[User],
    column: str = SUBJECT_TOKEN.column,
    federation: Federation | None = None,
    say: Say = lambda _: None,
) -> tuple[Token, ...]:
    """Issue a token to each user.

    They are kept in memory only and are not revoked: each revocation would add an event that every
    later validation in that cloud has to check. They become invalid when their users are deleted.
    """
    identity = Identity(access)
    if federation is not None and column in (ACCESS_TOKEN.column, FEDERATED_TOKEN.column):
        accesses = federation.access_tokens(len(users), say)
        if column == FEDERATED_TOKEN.column:
            return federation.tokens(identity, accesses)
        federation.tokens(identity, accesses[:1])  # explains a refusal before any load
        return accesses
    auth = _AUTH[column]
    return each(lambda user: identity.issue(user, auth(user)), users, _WORKERS)


def _by_credential(user: User, prefix: str) -> Mapping[str, Any]:
    credential = {
        part: user.credentials[f"{prefix}_credential_{part}"] for part in ("id", "secret")
    }
    return {
        "identity": {"methods": ["application_credential"], "application_credential": credential}
    }


# The "auth" object of the request by which each column's tokens are issued.
_AUTH: dict[str, Callable[[User], Mapping[str, Any]]] = {
    SUBJECT_TOKEN.column: lambda user: {**password_method(user), **project_scope(user)},
    APPLICATION_CREDENTIAL_TOKEN.column: lambda user: _by_credential(user, "application"),
    ACCESS_RULES_TOKEN.column: lambda user: _by_credential(user, "access_rules"),
    TRUST_TOKEN.column: lambda user: {
        **password_method(user),
        "scope": {"OS-TRUST:trust": {"id": user.credentials["trust_id"]}},
    },
    DOMAIN_TOKEN.column: lambda user: {
        **password_method(user),
        "scope": {"domain": {"id": user.domain_id}},
    },
    SYSTEM_TOKEN.column: lambda user: {**password_method(user), "scope": {"system": {"all": True}}},
}
