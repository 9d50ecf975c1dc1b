"""Users to make load as, in a domain of the run's own, removed at the end."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Self

from loadstone.errors import EnvironmentUnusable, InvalidInput
from loadstone.keystone.clean import clean, list_leftovers, remaining
from loadstone.keystone.concurrently import each
from loadstone.keystone.contexts.known import Known, today
from loadstone.keystone.contexts.passwords import passwords
from loadstone.keystone.identity import Identity, Refused
from loadstone.keystone.journal import Journal, Readiness, held
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
    """Give a journal, and remove at the end what it says was made; one process at a time."""
    with held(journal_path, run_id):
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
    tenants, count = settings.tenants, settings.tenants * settings.users_per_tenant
    say(f"creating {counted(count, Kind.USER)} in {counted(tenants, Kind.PROJECT)}")
    maker = _Maker.prepared(identity, settings, journal)
    workers = settings.resource_management_workers
    projects = each(maker.project, range(1, tenants + 1), workers, say)
    # User 1 in project 1, user 2 in project 2: neighbours in time load different projects.
    wanted = [maker.wanted(n, projects[(n - 1) % tenants]) for n in range(1, count + 1)]
    maker = maker.proven(wanted, say)
    made = iter(each(maker.user, [one for one in wanted if not maker.has(one)], workers, say))
    return tuple(one if maker.has(one) else next(made) for one in wanted)


@dataclass(frozen=True, slots=True)
class _Maker:
    """Makes what the settings say, with everything looked up that all have in common."""

    identity: Identity
    settings: UsersSettings
    journal: Journal
    password: Callable[[str], str] = field(repr=False)  # of the user of this name
    role_ids: tuple[str, ...]
    project_domain: Thing
    user_domain: Thing
    known: Known

    @classmethod
    def prepared(cls, identity: Identity, settings: UsersSettings, journal: Journal) -> Self:
        """Look up roles and domains, and make the run's own domain where it is needed."""
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
        password = passwords(identity.access, journal.run_id)
        known = Known.of(identity, journal, own)
        return cls(identity, settings, journal, password, roles, domains[0], domains[1], known)

    def project(self, number: int) -> Thing:
        """Make the project of this number."""
        name = project_name(self.journal.run_id, number)
        return self._made(Kind.PROJECT, name, self.project_domain, {})

    def wanted(self, number: int, project: Thing) -> User:
        """Say who the user is to be; without an id where there is none yet."""
        name = user_name(self.journal.run_id, number)
        return User(
            id=self.known.ids.get((Kind.USER, name), ""),
            name=name,
            password=self.settings.password or self.password(name),
            project_id=_id(project),
            project_name=project.name,
            domain_id=_id(self.user_domain),
            domain_name=self.user_domain.name,
            project_domain_name=self.project_domain.name,
        )

    def proven(self, wanted: Sequence[User], say: Say) -> Self:
        """Try whether the passwords are those that an earlier run's users have."""
        ready = [user for user in wanted if self.has(user)]
        if not ready:
            return self
        try:
            self.identity.log_in(ready[0])
        except Refused:
            return replace(self, known=self.known.without_passwords())
        say(f"  {len(ready)} of them are there already")
        return self

    def user(self, wanted: User) -> User:
        """Make the user, with the roles in the project."""
        made = self._made(Kind.USER, wanted.name, self.user_domain, {"password": wanted.password})
        for role_id in self.role_ids:
            self.identity.grant(role_id, _id(made), wanted.project_id)
        user = replace(wanted, id=_id(made))
        # Keystone writes to a user's row at the first login of each day (last_active_at); without
        # this the first requests of the load would measure that, and collide in SQLite.
        self.identity.log_in(user)
        self.journal.ready(user.id, self._readiness(user))
        return user

    def has(self, user: User) -> bool:
        """Say whether an earlier run has made the user ready, today."""
        return self.known.ready.get(user.id) == self._readiness(user)

    def _readiness(self, user: User) -> Readiness:
        return Readiness(" ".join((user.project_id, *self.role_ids)), today())

    def _made(self, kind: Kind, name: str, domain: Thing, attributes: Mapping[str, str]) -> Thing:
        own = domain.name == domain_name(self.journal.run_id)
        known_id = self.known.ids.get((kind, name))
        thing = Thing(kind, name, known_id, None if own else domain.id)
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
