"""The form of a scenario's arguments in a file."""

import re
from collections.abc import Mapping
from typing import Annotated, Any
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, create_model

from loadstone.rally.task.catalogue.form import RULES, Form, Reference
from loadstone.rally.task.catalogue.scenario import ArgType, Argument, CatalogueEntry

_NOT_OF_ID = re.compile(r"[^!-~]|[/?#%]")


def _url(value: str) -> str:
    try:
        parts = urlsplit(value)
        is_good = parts.scheme in {"http", "https"} and parts.hostname and parts.port != 0
    except ValueError:  # of the IPv6 address in brackets, or of the port
        is_good = False
    # The wrong value may contain a password: do not repeat it.
    if not is_good or parts.username is not None:
        raise ValueError("must be http(s)://HOST[:PORT]/PATH without credentials")
    return value


def _id(value: str) -> str:
    if _NOT_OF_ID.search(value):  # it is a part of a URL's path
        raise ValueError(f'must be an id, as the openstack command prints it, not "{value}"')
    return value


def _chosen_name(value: str) -> str:
    if value:
        raise ValueError(
            f"must be left out: a fixed name ({value}) would be taken from the second iteration "
            "on, and could not be told from what others made"
        )
    return value


TYPES: Mapping[ArgType, Any] = {
    ArgType.WHOLE: int,
    ArgType.NUMBER: float,
    ArgType.TEXT: str,
    ArgType.ID: Annotated[str, AfterValidator(_id)],
    ArgType.URL: Annotated[str, AfterValidator(_url)],
    ArgType.CHOSEN_NAME: Annotated[str, AfterValidator(_chosen_name)],
    ArgType.FLAG: bool,
    ArgType.MAPPING: dict[str, Any],
    ArgType.REFERENCE: Reference,
    ArgType.MAPPINGS: list[dict[str, Any]],
    ArgType.ANY: Any,
}


def form_of(entry: CatalogueEntry) -> type[Form]:
    """Return the form of a scenario's arguments."""
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
        is_list = argument.kind is ArgType.MAPPINGS
        takes_any = is_list or argument.takes_more
        form = _form(f"{scenario}.{argument.name}", argument.about, argument.keys, takes_any)
        kind = list[form] if is_list else form  # type: ignore[valid-type]  # made at run time
    kind = Annotated[kind, Field(ge=argument.least, le=argument.most)]
    if argument.is_required:
        required = kind | None if argument.takes_null else kind
        return required, Field(description=argument.about)
    # Rally's signatures treat None as "not given" if it is the default.
    if argument.default is None or argument.takes_null:
        return kind | None, Field(argument.default, description=argument.about)
    return kind, Field(argument.default, description=argument.about)
