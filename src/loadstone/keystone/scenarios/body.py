"""JSON bodies with placeholders."""

import json
from collections.abc import Mapping, Sequence

from loadstone.plan.script import (
    Captured,
    Column,
    Iteration,
    OneTimeCode,
    Part,
    Template,
    Text,
)

# A template stands for a string; the values of its holes are already JSON-escaped.
Tree = None | bool | int | float | str | Template | Sequence["Tree"] | Mapping[str, "Tree"]


def json_body(tree: Tree) -> Template:
    """Return the tree as compact JSON, with each template as a string."""
    return tuple(_merged(_parts(tree)))


def _parts(tree: Tree) -> list[Part]:
    match tree:
        case Mapping():
            inner = [(Text(f"{json.dumps(key)}:"), *_parts(value)) for key, value in tree.items()]
            return [Text("{"), *_separated(inner), Text("}")]
        case (Text() | Column() | Captured() | Iteration() | OneTimeCode(), *_):
            return [Text('"'), *(_escaped(part) for part in tree), Text('"')]  # type: ignore[arg-type]  # a template
        case str() | None | bool() | int() | float():
            return [Text(json.dumps(tree))]
        case _:
            return [Text("["), *_separated([tuple(_parts(one)) for one in tree]), Text("]")]  # type: ignore[arg-type]  # a list


def _escaped(part: Part) -> Part:
    return Text(json.dumps(part.text)[1:-1]) if isinstance(part, Text) else part


def _separated(groups: Sequence[tuple[Part, ...]]) -> list[Part]:
    parts: list[Part] = []
    for group in groups:
        parts += [Text(","), *group] if parts else group
    return parts


def _merged(parts: list[Part]) -> list[Part]:
    merged: list[Part] = []
    for part in parts:
        if isinstance(part, Text) and merged and isinstance(merged[-1], Text):
            merged[-1] = Text(merged[-1].text + part.text)
        else:
            merged.append(part)
    return merged
