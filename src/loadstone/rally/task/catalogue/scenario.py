"""Description of a scenario: its arguments and requirements."""

from dataclasses import dataclass
from enum import Enum

from loadstone.plan.json_value import Json


class ArgType(Enum):
    """Type of an argument's value."""

    WHOLE = "a whole number"
    NUMBER = "a number"
    TEXT = "text"
    ID = "an id"
    URL = "http(s)://HOST[:PORT]/PATH"
    CHOSEN_NAME = "a name that the scenario chooses itself"
    FLAG = "true or false"
    MAPPING = "a mapping"
    REFERENCE = "a mapping with id, name or regex"
    MAPPINGS = "a list of mappings"
    ANY = "anything"


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument of a scenario."""

    name: str
    kind: ArgType
    about: str
    default: Json = None
    is_required: bool = False
    takes_null: bool = False
    least: float | None = None
    most: float | None = None
    keys: tuple["Argument", ...] = ()  # of a mapping, or of each item if a list may stand here
    takes_more: bool = False  # further keys are passed on unchanged


@dataclass(frozen=True, slots=True)
class CatalogueEntry:
    """One scenario of the catalogue."""

    name: str  # Rally's short name, or our own name of a scenario
    about: str
    arguments: tuple[Argument, ...] = ()
    takes_any: bool = False  # unknown arguments are passed on unchanged
    platform: str = "openstack"
    cleanup: str | None = None  # the context that Rally adds implicitly: admin_cleanup or cleanup
    needs_own_users: bool = False  # what it makes is removed with the users of the run
    service: str | None = None  # another service that the cloud must have

    @property
    def makes_users(self) -> bool:
        """Whether users are created if the file asks for none, as for every OpenStack scenario."""
        return self.platform == "openstack"
