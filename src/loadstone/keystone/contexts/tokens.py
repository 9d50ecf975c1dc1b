"""Tokens to be validated, issued before the load begins."""

from collections.abc import Sequence

from loadstone.keystone.concurrently import each
from loadstone.keystone.identity import Identity
from loadstone.keystone.things import Token, User
from loadstone.target import Access


def issue_tokens(
    access: Access, users: Sequence[User], count: int | None = None, workers: int = 8
) -> tuple[Token, ...]:
    """Issue `count` tokens, token n for user n of m, one for each user unless told.

    They live in memory only. They are not revoked at the end: each revocation would be an event
    that every later validation in that cloud has to look through; they die with their users.
    """
    identity = Identity(access)
    wanted = len(users) if count is None else count
    chosen = (users[number % len(users)] for number in range(wanted))
    return each(identity.log_in, chosen, workers)
