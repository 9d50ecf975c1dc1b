"""What preparation makes in a cloud, and the names by which a run knows its own again."""

import re
import secrets
from dataclasses import dataclass, field
from enum import StrEnum

ANY = "*"


class Kind(StrEnum):
    """What is made; the value is the API's word. Removed in reverse order."""

    DOMAIN = "domain"
    SERVICE = "service"
    ROLE = "role"
    PROJECT = "project"
    GROUP = "group"
    USER = "user"
    SERVER = "server"  # of the compute service


@dataclass(frozen=True, slots=True)
class Thing:
    """One thing in the cloud, or all whose names begin alike (`name` ends in ANY).

    Without an id where its making was never confirmed.
    """

    kind: Kind
    name: str
    id: str | None = None
    domain_id: str | None = None  # where it lies, if not in the run's own domain

    @property
    def is_many(self) -> bool:
        """Whether it stands for all things whose names begin so."""
        return self.name.endswith(ANY)


@dataclass(frozen=True, slots=True)
class Made:
    """What iterations make, any number of them."""

    kind: Kind
    domain_id: str | None = None  # None: what lies in no domain


@dataclass(frozen=True, slots=True)
class Leftover:
    """A thing that could not be removed, and why."""

    thing: Thing
    why: str


@dataclass(frozen=True, slots=True)
class User:
    """A user that load is made as; the password lives in memory only."""

    id: str
    name: str
    password: str = field(repr=False)
    project_id: str
    project_name: str
    domain_id: str
    domain_name: str
    project_domain_name: str | None = None  # None: the user's own domain
    application_credential_id: str = ""  # where it has one
    application_credential_secret: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class Token:
    """A token of a user; it lives in memory only."""

    value: str = field(repr=False)
    expires_at: float  # Unix time, by the service's clock


def domain_name(run_id: str) -> str:
    """The domain that holds all that a run makes."""
    return f"loadstone-{run_id}"


def project_name(run_id: str, number: int) -> str:
    """The run's project of this number."""
    return f"{domain_name(run_id)}-p{number}"


def user_name(run_id: str, number: int) -> str:
    """The run's user of this number."""
    return f"{domain_name(run_id)}-u{number}"


def iteration_prefix(run_id: str) -> str:
    """A fresh beginning for the names of what the iterations of one stretch of load make."""
    return f"{domain_name(run_id)}-w{secrets.token_hex(4)}-i"


def of_iterations(run_id: str, made: Made) -> Thing:
    """What iterations made, in all stretches of load of the run."""
    return Thing(made.kind, f"{domain_name(run_id)}-w{ANY}", domain_id=made.domain_id)


def counted(number: int, kind: Kind) -> str:
    """Give "1 user", "2 users"."""
    return f"{number} {kind}" if number == 1 else f"{number} {kind}s"


def is_of_run(run_id: str, name: str) -> bool:
    """Whether exactly this run, and no other with a like id, gave the name."""
    own = rf"{re.escape(domain_name(run_id))}(-[pu]\d+|-w[0-9a-f]+-i\d+(-\d+)?)?"
    return re.fullmatch(own, name) is not None
