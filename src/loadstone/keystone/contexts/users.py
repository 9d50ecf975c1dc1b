"""Users to make load as, in a domain of the run's own, removed at the end."""

import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Self

from loadstone.errors import EnvironmentUnusable, InvalidInput
from loadstone.keystone.clean import clean, list_leftovers, remaining
from loadstone.keystone.concurrently import each
from loadstone.keystone.identity import Identity, Refused
from loadstone.keystone.journal import Journal
from loadstone.keystone.things import (
    Kind,
    Thing,
    User,
    counted,
    domain_name,
    project_name,
    user_name,
)
from loadstone.target import Access


@dataclass(frozen=True, slots=True)
class UsersSettings:
    """How many users in how many projects; the names are Rally's (a tenant is a project)."""

    tenants: int = 1
    users_per_tenant: int = 1
    # Rally's default is 20; at Keystone's hash cost more calls at once only wait in its queue.
    resource_management_workers: int = 8
    role: str = "member"

    @classmethod
    def spread(cls, users: int) -> Self | None:
        """Give so many users, in two projects where that comes out even; None for no users."""
        if users == 0:
            return None
        return cls(2, users // 2) if users % 2 == 0 else cls(1, users)

    def __post_init__(self) -> None:
        for field in fields(self)[:3]:
            value = getattr(self, field.name)
            if value < 1:
                raise InvalidInput(f"users.{field.name} must be at least 1, not {value}")


@contextmanager
def users(
    access: Access,
    run_id: str,
    settings: UsersSettings,
    journal_path: Path,
    say: Callable[[str], None],
) -> Iterator[tuple[User, ...]]:
    """Make the users, and remove all that was made at the end, also after failure or Ctrl-C.

    What could not be removed is said with the command that removes it, and stays in the journal
    (`clean.remaining`); a second Ctrl-C leaves the rest to that command.
    """
    journal = Journal.start(journal_path, run_id, access)
    try:
        yield _make(Identity(access), settings, journal, say)
    finally:
        _remove(access, journal_path, say)


def _remove(access: Access, path: Path, say: Callable[[str], None]) -> None:
    try:
        leftovers = clean(access, path, say)
    except BaseException:
        list_leftovers(path, remaining(path), say)
        raise
    list_leftovers(path, leftovers, say)


def _make(
    identity: Identity, settings: UsersSettings, journal: Journal, say: Callable[[str], None]
) -> tuple[User, ...]:
    tenants, per_tenant = settings.tenants, settings.users_per_tenant
    say(f"creating {counted(tenants * per_tenant, Kind.USER)} in {counted(tenants, Kind.PROJECT)}")
    role_id = identity.role_id(settings.role)
    domain = _create(identity, journal, Kind.DOMAIN, domain_name(journal.run_id), {})
    place = {"domain_id": _id(domain)}

    def make_project(number: int) -> Thing:
        return _create(identity, journal, Kind.PROJECT, project_name(journal.run_id, number), place)

    workers = settings.resource_management_workers
    projects = each(make_project, range(1, tenants + 1), workers, say)

    def make_user(number: int) -> User:
        # User 1 in project 1, user 2 in project 2: neighbours in time load different projects.
        project = projects[(number - 1) % tenants]
        # Letters, digits and a sign, for clouds whose password rules ask for each.
        password = secrets.token_urlsafe(24) + "aA1!"
        name = user_name(journal.run_id, number)
        made = _create(identity, journal, Kind.USER, name, {**place, "password": password})
        identity.grant(role_id, _id(made), _id(project))
        user = User(
            id=_id(made),
            name=name,
            password=password,
            project_id=_id(project),
            project_name=project.name,
            domain_id=_id(domain),
            domain_name=domain.name,
        )
        # Keystone writes to a user's row at the first login of each day (last_active_at); without
        # this the first requests of the load would measure that, and collide in SQLite.
        identity.log_in(user)
        return user

    return each(make_user, range(1, tenants * per_tenant + 1), workers, say)


def _create(
    identity: Identity, journal: Journal, kind: Kind, name: str, attributes: dict[str, str]
) -> Thing:
    journal.create(kind, name)
    try:
        thing = identity.create(kind, name, attributes)
    except Refused:
        journal.removed(Thing(kind, name))
        raise
    journal.created(thing)
    return thing


def _id(thing: Thing) -> str:
    if thing.id is None:
        raise EnvironmentUnusable(f"{thing.kind} {thing.name} was made without an id")
    return thing.id
