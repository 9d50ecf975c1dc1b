"""Contexts: what exists in the cloud during a workload's load."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal


@dataclass(frozen=True, slots=True)
class Users:
    """Temporary projects and users, or the target's own."""

    tenants: int = 1
    users_per_tenant: int = 1
    password: str | None = field(default=None, repr=False)  # None: a random one for each user
    workers: int = 20  # number of concurrent API calls that create users
    project_domain: str | None = None  # None: the run's own, which it creates
    user_domain: str | None = None
    choice: Literal["random", "round_robin"] = "random"
    may_be_existing: bool = False  # the file sets only the choice of users


@dataclass(frozen=True, slots=True)
class Roles:
    """Roles that all users get in their project."""

    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Quotas:
    """Quotas of services per project: service -> resource -> limit."""

    limits: Mapping[str, Mapping[str, int]]


@dataclass(frozen=True, slots=True)
class ApiVersions:
    """The API versions that Rally's clients use; without effect."""


@dataclass(frozen=True, slots=True)
class Network:
    """Flat networks in each project, each with its own subnets; no router."""

    start_cidr: str = "10.2.0.0/24"  # of the first subnet; the next ones follow
    networks_per_tenant: int = 1
    subnets_per_network: int = 1
    dns_nameservers: tuple[str, ...] = ()
    attributes: Mapping[str, Any] = field(default_factory=dict)  # further ones of each network


@dataclass(frozen=True, slots=True)
class ExistingServers:
    """Servers in each project, booted before the load by one of its users."""

    image: Mapping[str, Any]
    flavor: Mapping[str, Any]
    per_tenant: int = 5
    picks_network: bool = False
    network_ids: tuple[str, ...] = ()  # empty: the one that it picks, else Nova's choice


@dataclass(frozen=True, slots=True)
class Login:
    """When iterations that are Python functions log in."""

    every_iteration: bool = True  # False: a worker keeps the token of each user


@dataclass(frozen=True, slots=True)
class Cleanup:
    """Remove what iterations left, which is done in any case."""


@dataclass(frozen=True, slots=True)
class DummyContext:
    """Rally's dummy context: fails in set-up or clean-up if asked to."""

    fail_setup: bool = False
    fail_cleanup: bool = False


Context = (
    Users
    | Roles
    | Quotas
    | ApiVersions
    | Network
    | ExistingServers
    | Login
    | Cleanup
    | DummyContext
)
