"""The arguments of a task template: --task-args-file and --task-args, merged as Rally does."""

from typing import Any

from loadstone.rally.task.problem import Problem, TaskInvalid
from loadstone.rally.task.tree import NOT_TEXT, parse

FLAG = "--task-args"


def merge(file: str, file_text: str | None, raw: str | None) -> dict[str, Any]:
    """Return the template's arguments; those of the command line override those of the file."""
    merged: dict[str, Any] = {}
    if file_text is not None:
        merged |= _mapping(file, parse(file_text, file).value)
    if raw:
        merged |= _raw(raw)
    return merged


def _raw(raw: str) -> dict[str, Any]:
    """Parse YAML or JSON, else Rally's short form `k=v,k2=v2`, whose values are strings."""
    try:
        raw.encode()
    except UnicodeEncodeError:  # bytes of the command line that are no text
        raise _wrong(NOT_TEXT) from None
    try:
        value: Any = parse(raw, FLAG).value
    except TaskInvalid:
        value = raw
        if not _is_short(raw):
            raise
    if isinstance(value, str) and _is_short(raw):
        return _short(raw)
    return _mapping(FLAG, value)


def _short(raw: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in (pair.split("=", 1) for pair in raw.split(",")):
        if name in found:
            raise _wrong(f"{name} is given twice")
        found[name] = value
    return found


def _wrong(message: str) -> TaskInvalid:
    return TaskInvalid([Problem(FLAG, None, message)])


def _is_short(raw: str) -> bool:
    return all("=" in pair for pair in raw.split(","))


def _mapping(file: str, value: Any) -> dict[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        message = "must be a mapping of names to values, as YAML or JSON"
        raise TaskInvalid([Problem(file, None, message)])
    for name in value:
        # A text that is no identifier means nothing to a template, and does no harm: as in Rally.
        if not isinstance(name, str):
            message = f"{name!r} cannot be the name of a template argument"
            raise TaskInvalid([Problem(file, None, message)])
    return value
