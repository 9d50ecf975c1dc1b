"""Creates users for the load in a domain of the run's own, and removes them at the end."""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

from loadstone.cloud import Access
from loadstone.errors import EnvironmentUnusable, InvalidInput
from loadstone.keystone.clean import LISTS_OWN_DOMAIN, clean_journal, list_leftovers
from loadstone.keystone.contexts.existing_resources import ExistingResources, today
from loadstone.keystone.contexts.model import Users
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
_ROLE = "member"


@dataclass(frozen=True, slots=True)
class RunJournal:
    """A run and the file of its journal."""

    run_id: str
    path: Path
    store: str = ""  # the option that chooses its store, with a space before it


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
    identity: Identity, wanted: Users, roles: Sequence[str], journal: Journal, say: Say
) -> tuple[User, ...]:
    """Create projects and users; user n of m is in project n mod m.

    They get these roles in addition to the role member, as in Rally.
    """
    tenants, count = wanted.tenants, wanted.tenants * wanted.users_per_tenant
    say(f"creating {counted(count, ResourceKind.USER)} in {counted(tenants, ResourceKind.PROJECT)}")
    maker = _Maker.prepared(identity, wanted, roles, journal)
    projects = each(maker.project, range(1, tenants + 1), wanted.workers, say)
    # User 1 in project 1, user 2 in project 2: consecutive requests then load different projects.
    planned = [maker.planned_user(n, projects[(n - 1) % tenants]) for n in range(1, count + 1)]
    ready = sum(maker.has(user) for user in planned)
    if ready:
        say(f"  {ready} of them are there already and get new passwords")
    users = tuple(each(maker.user, planned, wanted.workers, say))
    # In a named domain it is not known which of them were there.
    if any(user.id for user in planned) or wanted.user_domain is not None:
        time.sleep(_REVOKED_S)
    return users


@dataclass(frozen=True, slots=True)
class _Maker:
    """Creates users and projects; roles and domains are looked up once."""

    identity: Identity
    wanted: Users
    journal: Journal
    role_ids: tuple[str, ...]
    project_domain: Resource
    user_domain: Resource
    existing: ExistingResources

    @classmethod
    def prepared(
        cls, identity: Identity, wanted: Users, roles: Sequence[str], journal: Journal
    ) -> Self:
        """Look up roles and domains, and create the run's own domain if needed."""
        role_ids = identity.role_ids(_ROLE, roles)
        own = None
        if wanted.project_domain is None or wanted.user_domain is None:
            if identity.access.scope_domain_id() is not None:
                raise InvalidInput(
                    f"users: {LISTS_OWN_DOMAIN}, so the run's own domain could not be removed; "
                    "choose a project or the system in place of the domain"
                )
            domain = Resource(ResourceKind.DOMAIN, domain_name(journal.run_id))
            # After Ctrl-C, `each` waits for the call on its way, so that clean-up finds the domain.
            [own] = each(lambda one: _create(identity, journal, one, {}), (domain,), 1)
        domains = []
        for kind, name in (
            (ResourceKind.PROJECT, wanted.project_domain),
            (ResourceKind.USER, wanted.user_domain),
        ):
            if name is None and own is not None:
                domains.append(own)
                continue
            domain = identity.domain(str(name))
            journal.create(kind, resource_name(journal.run_id, kind, ANY), domain.id)
            domains.append(domain)
        existing = ExistingResources.of(identity, journal, own)
        return cls(identity, wanted, journal, role_ids, domains[0], domains[1], existing)

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
            password=self.wanted.password or new_password(),
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
