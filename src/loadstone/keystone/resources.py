"""Resources that a run creates in a cloud, and the names that identify them as the run's own."""

import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

ANY = "*"


class ResourceKind(StrEnum):
    """Kinds of resources; the value is the API's name. Removed in reverse order."""

    DOMAIN = "domain"
    SERVICE = "service"
    ROLE = "role"
    PROJECT = "project"
    GROUP = "group"
    USER = "user"
    SECURITY_GROUP = "security group"  # `default` of a project, which Neutron makes by itself
    NETWORK = "network"  # of the network service
    SERVER = "server"  # of the compute service


@dataclass(frozen=True, slots=True)
class Resource:
    """A resource in the cloud, or all whose names have a prefix (`name` ends in ANY).

    It has no id if its creation was never confirmed.
    """

    kind: ResourceKind
    name: str
    id: str | None = None
    domain_id: str | None = None  # if not in the run's own domain

    @property
    def is_many(self) -> bool:
        """Whether this is a name prefix that matches many resources."""
        return self.name.endswith(ANY)


@dataclass(frozen=True, slots=True)
class CreatedByIterations:
    """What iterations create, in any number."""

    kind: ResourceKind
    domain_id: str | None = None  # None for resources outside domains


@dataclass(frozen=True, slots=True)
class Leftover:
    """A resource that could not be removed, and why."""

    thing: Resource
    why: str


@dataclass(frozen=True, slots=True)
class User:
    """A user for the load; the password is kept in memory only."""

    id: str
    name: str
    password: str = field(repr=False)
    project_id: str
    project_name: str
    domain_id: str
    domain_name: str
    project_domain_name: str | None = None  # None: the user's own domain
    # What else was made for it before the load, by column: "application_credential_id", "trust_id".
    credentials: Mapping[str, str] = field(default_factory=dict, repr=False, hash=False)


@dataclass(frozen=True, slots=True)
class Token:
    """A token of a user; kept in memory only."""

    value: str = field(repr=False)
    expires_at: float  # Unix time of the service's clock


def domain_name(run_id: str) -> str:
    """Return the name of the domain that contains all that a run creates."""
    return f"loadstone-{run_id}"


def resource_name(run_id: str, kind: ResourceKind, number: int | str) -> str:
    """Return the name of the run's resource of a kind with this number, or of all by ANY.

    The number of a network is that of its project, a dash, its own.
    """
    return f"{domain_name(run_id)}-{kind[0]}{number}"


def tree_name(run_id: str, number: int) -> str:
    """Return the name of a project of the run's tree; number 0 is its root."""
    return f"{domain_name(run_id)}-t{number}"


def security_group_name(project: str) -> str:
    """Return the name by which a project's group `default` is known; its id is the project's."""
    return f"default of {project}"


def iteration_prefix(run_id: str) -> str:
    """Return a unique prefix for names that the iterations of one phase of load create."""
    return f"{domain_name(run_id)}-w{secrets.token_hex(4)}-i"


def of_iterations(run_id: str, created: CreatedByIterations) -> Resource:
    """Return what iterations of all phases of the run created, as one resource with a prefix."""
    return with_prefix(f"{domain_name(run_id)}-w", created)


def with_prefix(prefix: str, created: CreatedByIterations) -> Resource:
    """Return what iterations created under names with this prefix, as one resource."""
    return Resource(created.kind, f"{prefix}{ANY}", domain_id=created.domain_id)


def counted(number: int, kind: ResourceKind) -> str:
    """Return "1 user", "2 users"."""
    return f"{number} {kind}" if number == 1 else f"{number} {kind}s"


def is_of_run(run_id: str, name: str) -> bool:
    """Return whether the name is of exactly this run, not of one with a similar id."""
    own = rf"{re.escape(domain_name(run_id))}(-[pusgrt]\d+|-n\d+-\d+|-w[0-9a-f]+-i\d+(-\d+)?)?"
    return re.fullmatch(own, name) is not None
