"""What is known of a scenario before it runs: its arguments and what it brings along."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Annotated, Any

from pydantic import Field, create_model

from loadstone.task.catalogue.form import RULES, Form
from loadstone.task.model import Json


class Kind(Enum):
    """What values an argument takes."""

    WHOLE = "a whole number"
    NUMBER = "a number"
    TEXT = "text"
    FLAG = "true or false"
    MAPPING = "a mapping"
    MAPPINGS = "a list of mappings"
    ANY = "anything"


TYPES: Mapping[Kind, Any] = {
    Kind.WHOLE: int,
    Kind.NUMBER: float,
    Kind.TEXT: str,
    Kind.FLAG: bool,
    Kind.MAPPING: dict[str, Any],
    Kind.MAPPINGS: list[dict[str, Any]],
    Kind.ANY: Any,
}


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
    keys: tuple["Argument", ...] = ()  # of a mapping; none: any keys


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

    def form(self) -> type[Form]:
        """Give the form of the arguments."""
        return _form(self.name, self.about, self.arguments, self.takes_any)


def _form(name: str, about: str, arguments: tuple[Argument, ...], takes_any: bool) -> type[Form]:
    fields: dict[str, Any] = {argument.name: _field(name, argument) for argument in arguments}
    form: type[Form] = create_model(name, __base__=Form, __doc__=about, **fields)
    if takes_any:
        form.model_config = {**RULES, "extra": "allow"}
        form.model_rebuild(force=True)
    return form


def _field(scenario: str, argument: Argument) -> tuple[Any, Any]:
    kind = TYPES[argument.kind]
    if argument.keys:
        kind = _form(f"{scenario}.{argument.name}", argument.about, argument.keys, False)
    kind = Annotated[kind, Field(ge=argument.least, le=argument.most)]
    if argument.is_required:
        return kind, Field(description=argument.about)
    # Rally's signatures take None for "not given" where that is the default.
    if argument.default is None or argument.takes_null:
        return kind | None, Field(argument.default, description=argument.about)
    return kind, Field(argument.default, description=argument.about)
