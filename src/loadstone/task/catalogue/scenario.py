"""What is known of a scenario before it runs: its arguments and what it brings along."""

from dataclasses import dataclass
from enum import Enum

from loadstone.task.model import Json


class Kind(Enum):
    """What values an argument takes."""

    WHOLE = "a whole number"
    NUMBER = "a number"
    TEXT = "text"
    URL = "http(s)://HOST[:PORT]/PATH"
    CHOSEN_NAME = "a name that the scenario chooses itself"
    FLAG = "true or false"
    MAPPING = "a mapping"
    MAPPINGS = "a list of mappings"
    ANY = "anything"


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument of a scenario."""

    name: str
    kind: Kind
    about: str
    default: Json = None
    is_required: bool = False
    takes_null: bool = False
    least: float | None = None
    most: float | None = None
    keys: tuple["Argument", ...] = ()  # of a mapping, or of each in a list, where more may stand


@dataclass(frozen=True, slots=True)
class Entry:
    """One scenario of the catalogue."""

    name: str  # Rally's short name
    about: str
    arguments: tuple[Argument, ...] = ()
    takes_any: bool = False  # further arguments are passed on as they are
    platform: str = "openstack"
    # Atomic actions of rally-openstack 4.1.0 without their "keystone_v3." and the like.
    actions: tuple[str, ...] = ()
    cleanup: str | None = None  # the hidden context that Rally adds: admin_cleanup or cleanup
    cleanup_of: tuple[str, ...] = ()
    needs_admin: bool = False
    service: str | None = None  # a service beside identity that the cloud must have

    @property
    def makes_users(self) -> bool:
        """Whether users are made when the file asks for none: every OpenStack scenario's rule."""
        return self.platform == "openstack"
