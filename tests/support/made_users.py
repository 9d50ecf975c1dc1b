"""Users in a cloud for the time of a test."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from loadstone.cloud import Access
from loadstone.keystone.contexts.model import Users
from loadstone.keystone.contexts.users import RunJournal, make_users, removing
from loadstone.keystone.identity import Identity
from loadstone.keystone.resources import User
from loadstone.system.say import Say


@contextmanager
def users(
    access: Access, run_id: str, wanted: Users, journal: Path, say: Say, roles: Sequence[str] = ()
) -> Iterator[tuple[User, ...]]:
    """Create users, and remove at the end all that the journal lists, as a run does."""
    with removing(access, RunJournal(run_id, journal), say) as opened:
        yield make_users(Identity(access), wanted, roles, opened, say)
