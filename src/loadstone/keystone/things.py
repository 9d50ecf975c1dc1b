"""What preparation makes in a cloud, and the names by which a run knows its own again."""

import re
from dataclasses import dataclass, field
from enum import StrEnum


class Kind(StrEnum):
    """What is made; the value is the API's word."""

    DOMAIN = "domain"
    PROJECT = "project"
    USER = "user"


@dataclass(frozen=True, slots=True)
class Thing:
    """One thing in the cloud; without an id where its making was never confirmed."""

    kind: Kind
    name: str
    id: str | None = None


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


def counted(number: int, kind: Kind) -> str:
    """Give "1 user", "2 users"."""
    return f"{number} {kind}" if number == 1 else f"{number} {kind}s"


def is_of_run(run_id: str, name: str) -> bool:
    """Whether exactly this run, and no other with a like id, gave the name."""
    return re.fullmatch(rf"{re.escape(domain_name(run_id))}(-[pu]\d+)?", name) is not None
