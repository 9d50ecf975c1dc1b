"""Turns pydantic's errors into messages for users."""

import difflib
import json
import re
from collections.abc import Collection, Iterator
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from loadstone.rally.task.problem import Problem
from loadstone.rally.task.tree import Path, Tree
from loadstone.system.redaction import is_secret

# pydantic's name of an error -> "must ...".
MUST = {
    "int_type": "be a whole number",
    "int_from_float": "be a whole number",
    "float_type": "be a number",
    "finite_number": "be a finite number",
    "string_type": "be text",
    "bool_type": "be true or false",
    "dict_type": "be a mapping",
    "model_type": "be a mapping",
    "model_attributes_type": "be a mapping",
    "list_type": "be a list",
    "tuple_type": "be a list",
    "greater_than_equal": "be at least {ge:,.15g}",
    "greater_than": "be more than {gt:,.15g}",
    "less_than_equal": "be at most {le:,.15g}",
    "literal_error": "be {expected}",
    "enum": "be {expected}",
    "string_too_long": "be at most {max_length} characters long",
    "string_pattern_mismatch": "look like {pattern}",
    "too_short": "have at least {min_length} in it",
    "too_long": "have only {max_length} in it",
}
NEAR = 0.75  # of difflib's ratio: a typing error
MANY = 20  # do not list more names than this
COUNTED = ("too_short", "too_long")


def problems(
    validation_error: ValidationError, tree: Tree, path: Path, subject: str, form: type[BaseModel]
) -> Iterator[Problem]:
    """Return each problem with the settings at a path of the file."""
    for error in validation_error.errors(include_url=False):
        where = tuple(part for part in error["loc"] if part != "[key]")
        location = _location(tree, path, where, error["type"] == "missing")
        yield tree.problem((*path, *where), _message(error, subject, location, form))


def suggestion(word: object, known: Collection[str], what: str) -> str:
    """Suggest the nearest known name, else list the known names."""
    near = difflib.get_close_matches(str(word), known, n=1, cutoff=NEAR)
    if near:
        return f'did you mean "{near[0]}"?'
    if not known:
        return f"it takes no {what}"
    if len(known) > MANY and all("." in name for name in known):
        known = {f"{name.partition('.')[0]}.*" for name in known}
    return f"choose from {', '.join(sorted(known))}"


def _location(tree: Tree, path: Path, where: tuple[int | str, ...], is_missing: bool) -> str:
    """Return the position as `a.b[2]`, without parts that only pydantic uses."""
    location = ""
    for i, part in enumerate(where):
        is_there = (*path, part) in tree.places
        if not is_there and not (is_missing and i == len(where) - 1):
            continue
        path = (*path, part)
        if isinstance(part, int):
            location += f"[{part}]"
        else:
            location += f".{part}" if location else part
    return location


def _message(error: ErrorDetails, subject: str, location: str, form: type[BaseModel]) -> str:
    kind, value = error["type"], error["input"]
    place = f'{subject}: "{location}"' if location else subject
    if kind == "missing":
        return f'{subject} needs "{location}"'
    if kind == "extra_forbidden":
        names = _fields(form, error["loc"][:-1])
        return f'{subject} has no "{location}"; {suggestion(error["loc"][-1], names, "settings")}'
    if kind == "value_error":
        return f"{place} {error['ctx']['error']}"
    return f"{place} {_must(error)}, not {_value_text(value, location, kind in COUNTED)}"


def _must(error: ErrorDetails) -> str:
    must = MUST.get(error["type"])
    if must is None:
        return f"is wrong: {error['msg']}"
    return f"must {must.format(**error.get('ctx', {}))}"


def _value_text(value: Any, location: str, as_length: bool) -> str:
    if isinstance(value, dict | list):
        kind = "a mapping" if isinstance(value, dict) else "a list"
        return str(len(value)) if as_length else kind
    if value is None:
        return "nothing"
    # A password of the wrong type is still a password.
    if any(is_secret(name) for name in re.split(r"[.\[]", location)):
        return f"a value of type {type(value).__name__}"
    text = json.dumps(value, default=str)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _fields(form: type[BaseModel], where: tuple[int | str, ...]) -> list[str]:
    """Return the fields of the form, or of the nested form that a field contains."""
    for part in where:
        field = form.model_fields.get(str(part))
        inner = [] if field is None else _forms(field.annotation)
        if inner:
            form = inner[0]
    return list(form.model_fields)


def _forms(annotation: Any) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [form for part in getattr(annotation, "__args__", ()) for form in _forms(part)]
