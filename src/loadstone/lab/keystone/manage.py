"""Runs Keystone's own commands in the lab's environment."""

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path

from loadstone.lab import processes
from loadstone.lab.processes import Command

INSIDE = Path(__file__).parent / "inside"
REGION = "RegionOne"
CONF_D = "conf.d"


@dataclass(frozen=True, slots=True)
class Bootstrap:
    """The first administrator, and the catalog's first entry."""

    password: str = field(repr=False)
    url: str
    region: str = REGION


@dataclass(frozen=True, slots=True)
class ServiceAccount:
    """The user of another service in the project `service`, and the service's catalog entry."""

    name: str
    kind: str  # type in the catalog
    url: str
    password: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Population:
    """Rows in the database besides those that the lab needs."""

    users: int = 0
    projects: int = 0
    groups: int = 0
    roles_per_user: int = 0
    unique_passwords: int = 1


@dataclass(frozen=True, slots=True)
class FederatedUsers:
    """Whom an identity provider lets in, and the project in which they have a role."""

    identity_provider: str
    protocol: str
    issuer: str
    project: str


@dataclass(frozen=True, slots=True)
class Preparation:
    """The steps of the preparation, in this order."""

    options: tuple[str, ...]
    sync: bool = False
    jws: bool = False
    directory: str | None = None  # a domain whose users are in LDAP, and a project for them
    bootstrap: Bootstrap | None = None
    federation: FederatedUsers | None = None
    by_certificate: str = ""  # name of the user in clients' certificates
    password_hash: str = ""  # file for how the administrator's password is stored
    services: tuple[ServiceAccount, ...] = ()  # all services besides Keystone
    revocation_events: int = 0
    expired_tokens: int = 0
    population: Population = Population()


@dataclass(frozen=True, slots=True)
class CommandContext:
    """The environment and deployment of the commands."""

    python: Path
    folder: Path  # of the deployment; marks its processes
    log: Path
    program: str = "prepare.py"  # script in `inside` that prepares


def options(*files: Path) -> tuple[str, ...]:
    """Return the options that make Keystone read only these configuration files.

    An empty folder CONF_D must be beside the first.
    """
    named = (word for file in files for word in ("--config-file", str(file)))
    return (*named, "--config-dir", str(files[0].with_name(CONF_D)))


def carry_out(order: Preparation, place: CommandContext) -> None:
    """Run the script. The password goes through a pipe, never through arguments or files."""
    program = (str(place.python), str(INSIDE / place.program))
    command = Command(program, place.log, place.folder, {"PYTHONWARNINGS": "ignore"})
    processes.complete(command, "keystone could not be prepared", json.dumps(asdict(order)))
