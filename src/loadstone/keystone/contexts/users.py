"""Creates users for the load in a domain of the run's own, and removes them at the end."""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Self

from loadstone.cloud import Access
from loadstone.errors import EnvironmentUnusable, InvalidInput
from loadstone.keystone.clean import LISTS_OWN_DOMAIN, clean_journal, list_leftovers
from loadstone.keystone.contexts.existing_resources import ExistingResources, today
from loadstone.keystone.contexts.passwords import new_password
from loadstone.keystone.identity import Identity, Refused
from loadstone.keystone.journal import Journal, UserReadiness, held
from loadstone.keystone.resources import (
    ANY,
    Leftover,
    Resource,
    ResourceKind,
    User,
    counted,
    domain_name,
    resource_name,
)
from loadstone.system.concurrently import each
from loadstone.system.interrupts import Interrupts
from loadstone.system.say import Say

# A changed password revokes the user's earlier tokens. Fernet tokens count whole seconds and MySQL
# rounds up, so a token issued right after the change can be revoked as well.
_REVOKED_S = 2.0


@dataclass(frozen=True, slots=True)
class UsersSettings:
    """Number of users and projects; the field names are Rally's (a tenant is a project)."""

    tenants: int = 1
    users_per_tenant: int = 1
    # Rally's default is 20; with Keystone's hash cost, more calls would only wait in its queue.
    resource_management_workers: int = 8
    role: str = "member"
    roles: tuple[str, ...] = ()  # in addition to Rally's
    password: str | None = field(default=None, repr=False)  # None: a random one per user
    project_domain: str | None = None  # name or id; None: the run's own
    user_domain: str | None = None

    def __post_init__(self) -> None:
        for name in ("tenants", "users_per_tenant", "resource_management_workers"):
            value = getattr(self, name)
            if value < 1:
                raise InvalidInput(f"users.{name} must be at least 1, not {value}")


@dataclass(frozen=True, slots=True)
class RunJournal:
    """A run and the file of its journal."""

    run_id: str
    path: Path
    store: str = ""  # the option that chooses its store, with a space before it


@contextmanager
def users(
    access: Access, run_id: str, settings: UsersSettings, journal_path: Path, say: Say
) -> Iterator[tuple[User, ...]]:
    """Create users and remove everything created at the end, even after failure or Ctrl-C.

    With the id and journal of a killed run, existing resources of that run are reused. What could
    not be removed is reported with the command that removes it, and stays in the journal
    (`clean.remaining`). A second Ctrl-C leaves the rest to that command.
    """
    with removing(access, RunJournal(run_id, journal_path), say) as journal:
        yield make_users(Identity(access), settings, journal, say)


@contextmanager
def removing(access: Access, run: RunJournal, say: Say) -> Iterator[Journal]:
    """Open a journal and remove at the end what it lists; one process at a time."""
    with held(run.path, run.run_id):
        journal = Journal.start(run.path, run.run_id, access)
        tolerated = 1  # a Ctrl-C, which does not end the removal
        try:
            yield journal
        except KeyboardInterrupt:
            tolerated = 0
            raise
        finally:
            with Interrupts(tolerated) as interrupts:
                _remove(access, journal, say, run.store)
            if interrupts.count:
                raise KeyboardInterrupt


def _remove(access: Access, journal: Journal, say: Say, store: str) -> None:
    try:
        leftovers = clean_journal(access, journal, say)
    except BaseException:
        record = journal.record()
        remaining = () if record is None else record.remaining
        list_leftovers(
            record,
            journal.path,
            tuple(Leftover(resource, "not removed yet") for resource in remaining),
            say,
            store,
        )
        raise
    list_leftovers(journal.record(), journal.path, leftovers, say, store)


def make_users(
    identity: Identity, settings: UsersSettings, journal: Journal, say: Say
) -> tuple[User, ...]:
    """Create projects and users; user n of m is in project n mod m."""
    tenants, count = settings.tenants, settings.tenants * settings.users_per_tenant
    say(f"creating {counted(count, ResourceKind.USER)} in {counted(tenants, ResourceKind.PROJECT)}")
    maker = _Maker.prepared(identity, settings, journal)
    workers = settings.resource_management_workers
    projects = each(maker.project, range(1, tenants + 1), workers, say)
    # User 1 in project 1, user 2 in project 2: consecutive requests then load different projects.
    planned = [maker.planned_user(n, projects[(n - 1) % tenants]) for n in range(1, count + 1)]
    ready = sum(maker.has(user) for user in planned)
    if ready:
        say(f"  {ready} of them are there already and get new passwords")
    users = tuple(each(maker.user, planned, workers, say))
    if any(user.id for user in planned):
        time.sleep(_REVOKED_S)
    return users


@dataclass(frozen=True, slots=True)
class _Maker:
    """Creates users and projects; roles and domains are looked up once."""

    identity: Identity
    settings: UsersSettings
    journal: Journal
    role_ids: tuple[str, ...]
    project_domain: Resource
    user_domain: Resource
    existing: ExistingResources

    @classmethod
    def prepared(cls, identity: Identity, settings: UsersSettings, journal: Journal) -> Self:
        """Look up roles and domains, and create the run's own domain if needed."""
        roles = identity.role_ids(settings.role, settings.roles)
        own = None
        if settings.project_domain is None or settings.user_domain is None:
            if identity.access.scope_domain_id() is not None:
                raise InvalidInput(
                    f"users: {LISTS_OWN_DOMAIN}, so the run's own domain could not be removed; "
                    "choose a project or the system in place of the domain"
                )
            own = _create(
                identity, journal, Resource(ResourceKind.DOMAIN, domain_name(journal.run_id)), {}
            )
        domains = []
        for kind, name in (
            (ResourceKind.PROJECT, settings.project_domain),
            (ResourceKind.USER, settings.user_domain),
        ):
            if name is None and own is not None:
                domains.append(own)
                continue
            domain = identity.domain(str(name))
            journal.create(kind, resource_name(journal.run_id, kind, ANY), domain.id)
            domains.append(domain)
        existing = ExistingResources.of(identity, journal, own)
        return cls(identity, settings, journal, roles, domains[0], domains[1], existing)

    def project(self, number: int) -> Resource:
        """Create the project with this number."""
        name = resource_name(self.journal.run_id, ResourceKind.PROJECT, number)
        return self._create(ResourceKind.PROJECT, name, self.project_domain, {})

    def planned_user(self, number: int, project: Resource) -> User:
        """Return the user to create; it has an id if it exists already."""
        name = resource_name(self.journal.run_id, ResourceKind.USER, number)
        return User(
            id=self.existing.ids.get((ResourceKind.USER, name), ""),
            name=name,
            password=self.settings.password or new_password(),
            project_id=_id(project),
            project_name=project.name,
            domain_id=_id(self.user_domain),
            domain_name=self.user_domain.name,
            project_domain_name=self.project_domain.name,
        )

    def user(self, planned: User) -> User:
        """Create the user with its roles in the project; an existing one gets the new password."""
        resource = self._create(
            ResourceKind.USER, planned.name, self.user_domain, {"password": planned.password}
        )
        if self.has(planned):  # an earlier run has granted the roles and logged in today
            return planned
        for role_id in self.role_ids:
            self.identity.grant(role_id, _id(resource), planned.project_id)
        user = replace(planned, id=_id(resource))
        # Keystone updates a user's row at the first login of each day (last_active_at). Without
        # this login the load's first requests would measure that update, and collide in SQLite.
        self.identity.log_in(user)
        self.journal.ready(user.id, self._readiness(user))
        return user

    def has(self, user: User) -> bool:
        """Return whether an earlier run has made the user ready today."""
        return self.existing.ready.get(user.id) == self._readiness(user)

    def _readiness(self, user: User) -> UserReadiness:
        return UserReadiness(" ".join((user.project_id, *self.role_ids)), today())

    def _create(
        self, kind: ResourceKind, name: str, domain: Resource, attributes: Mapping[str, str]
    ) -> Resource:
        own = domain.name == domain_name(self.journal.run_id)
        existing_id = self.existing.ids.get((kind, name))
        resource = Resource(kind, name, existing_id, None if own else domain.id)
        if resource.id is not None:
            self.identity.update(resource, attributes)
            return resource
        place = {"domain_id": _id(domain), **attributes}
        if not own:  # the journal has one entry for all of them
            return self.identity.create(kind, name, place)
        return _create(self.identity, self.journal, resource, place)


def _create(
    identity: Identity, journal: Journal, resource: Resource, attributes: Mapping[str, str]
) -> Resource:
    journal.create(resource.kind, resource.name)
    try:
        created = identity.create(resource.kind, resource.name, attributes)
    except Refused:
        journal.removed(resource)
        raise
    journal.created(created)
    return created


def _id(thing: Resource) -> str:
    if thing.id is None:
        raise EnvironmentUnusable(f"{thing.kind} {thing.name} was made without an id")
    return thing.id
