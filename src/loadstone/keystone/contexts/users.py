"""Users to make load as, in a domain of the run's own, removed at the end."""

import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from loadstone.errors import EnvironmentUnusable, InvalidInput
from loadstone.keystone.clean import clean, list_leftovers, remaining
from loadstone.keystone.concurrently import each
from loadstone.keystone.identity import Identity, Refused
from loadstone.keystone.journal import Journal, read
from loadstone.keystone.things import (
    ANY,
    Kind,
    Thing,
    User,
    counted,
    domain_name,
    project_name,
    user_name,
)
from loadstone.target import Access

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class UsersSettings:
    """How many users in how many projects; the names are Rally's (a tenant is a project)."""

    tenants: int = 1
    users_per_tenant: int = 1
    # Rally's default is 20; at Keystone's hash cost more calls at once only wait in its queue.
    resource_management_workers: int = 8
    role: str = "member"
    roles: tuple[str, ...] = ()  # besides
    password: str | None = field(default=None, repr=False)  # None: a random one for each
    project_domain: str | None = None  # name or id; None: the run's own
    user_domain: str | None = None

    @classmethod
    def spread(cls, users: int) -> Self | None:
        """Give so many users, in two projects where that comes out even; None for no users."""
        if users == 0:
            return None
        return cls(2, users // 2) if users % 2 == 0 else cls(1, users)

    def __post_init__(self) -> None:
        for name in ("tenants", "users_per_tenant", "resource_management_workers"):
            value = getattr(self, name)
            if value < 1:
                raise InvalidInput(f"users.{name} must be at least 1, not {value}")


@contextmanager
def users(
    access: Access, run_id: str, settings: UsersSettings, journal_path: Path, say: Say
) -> Iterator[tuple[User, ...]]:
    """Make the users, and remove all that was made at the end, also after failure or Ctrl-C.

    With the id and the journal of a run that was killed, what that run had made is taken over.
    What could not be removed is said with the command that removes it, and stays in the journal
    (`clean.remaining`); a second Ctrl-C leaves the rest to that command.
    """
    with removing(access, run_id, journal_path, say) as journal:
        yield make_users(Identity(access), settings, journal, say)


@contextmanager
def removing(access: Access, run_id: str, journal_path: Path, say: Say) -> Iterator[Journal]:
    """Give a journal, and remove at the end what it says was made."""
    journal = Journal.start(journal_path, run_id, access)
    try:
        yield journal
    finally:
        _remove(access, journal_path, say)


def _remove(access: Access, path: Path, say: Say) -> None:
    try:
        leftovers = clean(access, path, say)
    except BaseException:
        list_leftovers(path, remaining(path), say)
        raise
    list_leftovers(path, leftovers, say)


def make_users(
    identity: Identity, settings: UsersSettings, journal: Journal, say: Say
) -> tuple[User, ...]:
    """Make projects and users; user n of m is in project n mod m."""
    tenants, per_tenant = settings.tenants, settings.users_per_tenant
    say(f"creating {counted(tenants * per_tenant, Kind.USER)} in {counted(tenants, Kind.PROJECT)}")
    maker = _Maker.prepared(identity, settings, journal)
    workers = settings.resource_management_workers
    projects = each(maker.project, range(1, tenants + 1), workers, say)

    def make_user(number: int) -> User:
        # User 1 in project 1, user 2 in project 2: neighbours in time load different projects.
        return maker.user(number, projects[(number - 1) % tenants])

    return each(make_user, range(1, tenants * per_tenant + 1), workers, say)


@dataclass(frozen=True, slots=True)
class _Maker:
    """Makes what the settings say, with everything looked up that all have in common."""

    identity: Identity
    settings: UsersSettings
    journal: Journal
    role_ids: tuple[str, ...]
    project_domain: Thing
    user_domain: Thing
    ids: Mapping[tuple[Kind, str], str]  # what a killed run had made already

    @classmethod
    def prepared(cls, identity: Identity, settings: UsersSettings, journal: Journal) -> Self:
        """Look up roles and domains, and make the run's own domain where it is needed."""
        record = read(journal.path)
        known = record.remaining if record else ()
        ids = {(thing.kind, thing.name): thing.id for thing in known if thing.id is not None}
        roles = identity.role_ids((settings.role, *settings.roles))
        own = None
        if settings.project_domain is None or settings.user_domain is None:
            own = _create(identity, journal, Thing(Kind.DOMAIN, domain_name(journal.run_id)), {})
        domains = []
        for kind, name in (
            (Kind.PROJECT, settings.project_domain),
            (Kind.USER, settings.user_domain),
        ):
            if name is None and own is not None:
                domains.append(own)
                continue
            domain = identity.domain(str(name))
            many = f"{domain_name(journal.run_id)}-{kind[0]}{ANY}"
            journal.create(kind, many, domain.id)
            domains.append(domain)
        return cls(identity, settings, journal, roles, domains[0], domains[1], ids)

    def project(self, number: int) -> Thing:
        """Make the project of this number."""
        name = project_name(self.journal.run_id, number)
        return self._made(Kind.PROJECT, name, self.project_domain, {})

    def user(self, number: int, project: Thing) -> User:
        """Make the user of this number, with the roles in the project."""
        # Letters, digits and a sign, for clouds whose password rules ask for each.
        password = self.settings.password or secrets.token_urlsafe(24) + "aA1!"
        name = user_name(self.journal.run_id, number)
        made = self._made(Kind.USER, name, self.user_domain, {"password": password})
        for role_id in self.role_ids:
            self.identity.grant(role_id, _id(made), _id(project))
        user = User(
            id=_id(made),
            name=name,
            password=password,
            project_id=_id(project),
            project_name=project.name,
            domain_id=_id(self.user_domain),
            domain_name=self.user_domain.name,
            project_domain_name=self.project_domain.name,
        )
        # Keystone writes to a user's row at the first login of each day (last_active_at); without
        # this the first requests of the load would measure that, and collide in SQLite.
        self.identity.log_in(user)
        return user

    def _made(self, kind: Kind, name: str, domain: Thing, attributes: Mapping[str, str]) -> Thing:
        own = domain.name == domain_name(self.journal.run_id)
        thing = Thing(kind, name, self.ids.get((kind, name)), None if own else domain.id)
        if thing.id is not None:
            self.identity.update(thing, attributes)
            return thing
        place = {"domain_id": _id(domain), **attributes}
        if not own:  # the journal names them all at once
            return self.identity.create(kind, name, place)
        return _create(self.identity, self.journal, thing, place)


def _create(
    identity: Identity, journal: Journal, thing: Thing, attributes: Mapping[str, str]
) -> Thing:
    journal.create(thing.kind, thing.name)
    try:
        made = identity.create(thing.kind, thing.name, attributes)
    except Refused:
        journal.removed(thing)
        raise
    journal.created(made)
    return made


def _id(thing: Thing) -> str:
    if thing.id is None:
        raise EnvironmentUnusable(f"{thing.kind} {thing.name} was made without an id")
    return thing.id
