"""Application credentials of users, made before the load."""

import secrets
from collections.abc import Sequence
from dataclasses import replace

from loadstone.keystone.concurrently import each
from loadstone.keystone.identity import Identity
from loadstone.keystone.things import User
from loadstone.target import Access

_NAME = "loadstone"


def with_application_credentials(
    access: Access, users: Sequence[User], workers: int = 8
) -> tuple[User, ...]:
    """Give the users, each with an application credential for its project; they die with them."""
    identity = Identity(access)

    def made(user: User) -> User:
        token = identity.log_in(user)
        # A name of its own, since a run may ask for them more than once.
        name = f"{_NAME}-{secrets.token_hex(4)}"
        made_id, secret = identity.create_application_credential(user, token, name)
        return replace(
            user, application_credential_id=made_id, application_credential_secret=secret
        )

    return each(made, users, workers)
