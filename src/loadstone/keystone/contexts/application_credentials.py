"""Application credentials of users, created before the load."""

import secrets
from collections.abc import Sequence
from dataclasses import replace

from loadstone.cloud import Access
from loadstone.keystone.identity import Identity
from loadstone.keystone.resources import User
from loadstone.system.concurrently import each

_NAME = "loadstone"


def with_application_credentials(
    access: Access, users: Sequence[User], workers: int = 8
) -> tuple[User, ...]:
    """Return the users, each with an application credential for its project."""
    identity = Identity(access)

    def with_credential(user: User) -> User:
        token = identity.log_in(user)
        # A unique name, because a run may ask for them several times.
        name = f"{_NAME}-{secrets.token_hex(4)}"
        credential_id, secret = identity.create_application_credential(user, token, name)
        return replace(
            user, application_credential_id=credential_id, application_credential_secret=secret
        )

    return each(with_credential, users, workers)
