"""The form of a scenario's arguments, as they stand in a file."""

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field, create_model

from loadstone.task.catalogue.form import RULES, Form
from loadstone.task.catalogue.scenario import Argument, Entry, Kind

TYPES: Mapping[Kind, Any] = {
    Kind.WHOLE: int,
    Kind.NUMBER: float,
    Kind.TEXT: str,
    Kind.FLAG: bool,
    Kind.MAPPING: dict[str, Any],
    Kind.MAPPINGS: list[dict[str, Any]],
    Kind.ANY: Any,
}


def form_of(entry: Entry) -> type[Form]:
    """Give the form of a scenario's arguments."""
    return _form(entry.name, entry.about, entry.arguments, entry.takes_any)


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
