"""What a scenario stands on: the run, and what is looked up once."""

from dataclasses import dataclass
from typing import Protocol


class Finder(Protocol):
    """Looks up, before the load, what iterations only refer to."""

    def role_id(self, name: str) -> str:
        """Find a role by its name."""

    def domain_id(self, name_or_id: str) -> str:
        """Find a domain by its id or name."""

    def service_id(self, name: str) -> str:
        """Find a service of the catalog by its name."""


@dataclass(frozen=True, slots=True)
class Ground:
    """The run whose name all bears that iterations make, and the look-ups."""

    run_id: str
    finder: Finder


class _Unasked:
    """Stands for a cloud that has everything, where it is not asked yet."""

    def role_id(self, name: str) -> str:
        """Give any id."""
        return name

    def domain_id(self, name_or_id: str) -> str:
        """Give any id."""
        return name_or_id

    def service_id(self, name: str) -> str:
        """Give any id."""
        return name


# For who looks at a scenario's arguments before anything is made.
NOWHERE = Ground("none", _Unasked())
