"""Issues the tokens to be validated, before the load starts."""

from collections.abc import Sequence

from loadstone.cloud import Access
from loadstone.keystone.identity import Identity
from loadstone.keystone.resources import Token, User
from loadstone.system.concurrently import each


def issue_tokens(
    access: Access, users: Sequence[User], count: int | None = None, workers: int = 8
) -> tuple[Token, ...]:
    """Issue `count` tokens, token n for user n mod m; by default one per user.

    They are kept in memory only and are not revoked: each revocation would add an event that every
    later validation in that cloud has to check. They become invalid when their users are deleted.
    """
    identity = Identity(access)
    total = len(users) if count is None else count
    owners = (users[number % len(users)] for number in range(total))
    return each(identity.log_in, owners, workers)
