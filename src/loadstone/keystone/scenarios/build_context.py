"""Context for building a scenario: the run, and look-ups in the cloud."""

from dataclasses import dataclass
from typing import Protocol


class Finder(Protocol):
    """Looks up, before the load, ids that iterations refer to."""

    def role_id(self, name: str) -> str:
        """Return the id of a role."""

    def domain_id(self, name_or_id: str) -> str:
        """Return the id of a domain, given its id or name."""

    def service_id(self, name: str) -> str:
        """Return the id of a service in the catalog."""


@dataclass(frozen=True, slots=True)
class BuildContext:
    """The run that names created resources, and the finder for look-ups."""

    run_id: str
    finder: Finder


class _AnyName:
    """Finder that accepts every name without asking a cloud."""

    def role_id(self, name: str) -> str:
        """Return the name."""
        return name

    def domain_id(self, name_or_id: str) -> str:
        """Return the name."""
        return name_or_id

    def service_id(self, name: str) -> str:
        """Return the name."""
        return name


# For checking a scenario's arguments before anything is created.
DRY_RUN = BuildContext("none", _AnyName())
