"""Parses YAML 1.1 (which includes JSON) to plain data with line numbers.

PyYAML's own readers accept duplicate keys, crash on deep nesting and expand aliases without limit.
Here each of these gives a one-line error.
"""

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any, NoReturn

import yaml

from loadstone.rally.task.limits import MAX_DEPTH, MAX_VALUES
from loadstone.rally.task.problem import Problem, TaskInvalid
from loadstone.system.yaml_file import without_pairs

# libyaml if PyYAML was built with it (ten times as fast), else pure Python.
LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

Value = None | bool | int | float | str | date | bytes | list["Value"] | dict[Any, "Value"]
Path = tuple[Hashable, ...]
Origins = Sequence[tuple[str, int]]

NOT_TEXT = "is not UTF-8 text"
MERGE = "tag:yaml.org,2002:merge"
PLAIN_TAGS = ("tag:yaml.org,2002:map", "tag:yaml.org,2002:seq")


@dataclass(frozen=True, slots=True)
class Tree:
    """Plain data, and the position of each part of it."""

    file: str
    value: Value
    places: Mapping[Path, tuple[str, int]]
    secrets: frozenset[str] = field(default=frozenset(), repr=False)  # of the template's arguments

    def problem(self, path: Path, message: str) -> Problem:
        """Return a problem at the line of the deepest existing part of the path."""
        known: Path = ()
        for part in path:
            if (*known, part) in self.places:
                known = (*known, part)
        return Problem(*self.places.get(known, (self.file, 1)), message)


def parse(text: str, file: str, origins: Origins | None = None) -> Tree:
    """Parse YAML; `origins` has file and line of each line of `text` if it was rendered."""
    text = without_pairs(text)
    places = _Places(file, origins, text.rstrip("\n").count("\n"))
    try:
        _refuse_bombs(text, places)
        root = yaml.compose(text, LOADER)
    except yaml.MarkedYAMLError as wrong:
        mark = wrong.problem_mark or wrong.context_mark
        line = 0 if mark is None else mark.line
        raise TaskInvalid([places.problem(line, _message(wrong))]) from None
    except UnicodeEncodeError as wrong:  # bytes of the command line that are no text
        line = text.count("\n", 0, wrong.start)
        raise TaskInvalid([places.problem(line, NOT_TEXT)]) from None
    except yaml.reader.ReaderError as wrong:
        line = text.count("\n", 0, wrong.position)
        message = f"character {wrong.character!r} is not allowed in YAML: {wrong.reason}"
        raise TaskInvalid([places.problem(line, message)]) from None
    if root is None:
        return Tree(file, None, {})
    builder = _Builder(places)
    return Tree(file, builder.build(root, ()), builder.found)


@dataclass(frozen=True, slots=True)
class _Places:
    file: str
    origins: Origins | None
    last: int  # the last line of the text; libyaml reports an unexpected end one line later

    def at(self, line: int) -> tuple[str, int]:
        """Return file and line (from 1) of a line (from 0) of the text."""
        line = min(line, self.last)
        return (self.file, line + 1) if self.origins is None else self.origins[line]

    def of(self, part: yaml.Node | yaml.Event, message: str) -> Problem:
        return self.problem(_line(part), message)

    def problem(self, line: int, message: str) -> Problem:
        return Problem(*self.at(line), message)


def _line(part: yaml.Node | yaml.Event) -> int:
    return 0 if part.start_mark is None else part.start_mark.line


def _message(error: yaml.MarkedYAMLError) -> str:
    context = "" if error.context is None else f"{error.context}, "
    hint = "; indent with spaces, not tabs" if "\\t" in (error.problem or "") else ""
    return f"not YAML or JSON: {context}{error.problem}{hint}"


def _refuse_bombs(text: str, places: _Places) -> None:
    """Refuse input that composing cannot handle; reads events one by one in bounded memory."""
    # libyaml compares each with all earlier ones.
    if text.count("\n%TAG") > MAX_DEPTH:
        raise TaskInvalid([places.problem(0, f"more than {MAX_DEPTH} %TAG directives")])
    depth = count = 0
    for event in yaml.parse(text, LOADER):
        if isinstance(event, yaml.NodeEvent):
            count += 1
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > MAX_DEPTH:
            message = f"more than {MAX_DEPTH} levels of nesting"
            raise TaskInvalid([places.of(event, message)])
        if count > MAX_VALUES:
            raise TaskInvalid([places.of(event, _too_many())])


def _too_many() -> str:
    return f"more than {MAX_VALUES:,} values, aliases counted each time that they are used"


@dataclass(slots=True)
class _Builder:
    places: _Places
    found: dict[Path, tuple[str, int]] = field(default_factory=dict)
    count: int = 0
    scalars: yaml.constructor.SafeConstructor = field(
        default_factory=yaml.constructor.SafeConstructor
    )

    def build(self, node: yaml.Node, path: Path) -> Value:
        self.count += 1
        self.found.setdefault(path, self.places.at(_line(node)))
        if self.count > MAX_VALUES:
            self._refuse(node, _too_many())
        if len(path) > MAX_DEPTH:
            self._refuse(node, f"more than {MAX_DEPTH} levels of nesting, aliases followed")
        if isinstance(node, yaml.ScalarNode):
            return self._scalar(node)
        if node.tag not in PLAIN_TAGS:
            self._refuse(node, f"{_tag(node)} is not plain data")
        if isinstance(node, yaml.SequenceNode):
            return [self.build(item, (*path, i)) for i, item in enumerate(node.value)]
        return self._mapping(node, path)

    def _mapping(self, node: yaml.Node, path: Path) -> Value:
        values: dict[Any, Value] = {}
        for key_node, value_node in node.value:
            key = self._key(key_node)
            if key in values:
                self._refuse(key_node, f"the key {key!r} is given twice in the same mapping")
            self.found[*path, key] = self.places.at(_line(key_node))
            values[key] = self.build(value_node, (*path, key))
        return values

    def _key(self, node: yaml.Node) -> Any:
        if node.tag == MERGE:
            self._refuse(node, 'Rally reads no merge keys ("<<"): write the keys out')
        if not isinstance(node, yaml.ScalarNode):
            self._refuse(node, "a key must be a word, not a list or a mapping")
        key = self._scalar(node)
        if isinstance(key, float) and not math.isfinite(key):
            self._refuse(node, f"{key} cannot be a key; quote it if it is text")
        return key

    def _scalar(self, node: yaml.ScalarNode) -> Value:
        try:
            value: Value = self.scalars.construct_object(node)
            if isinstance(value, int):
                str(value)  # ValueError: a number of hexadecimal digits that is too long to write
        except yaml.constructor.ConstructorError:
            self._refuse(node, f"{_tag(node)} is not plain data")
        except (ValueError, OverflowError) as wrong:
            value = node.value[:40]
            self._refuse(node, f"{value!r} cannot be read: {wrong}; quote it if it is text")
        return value

    def _refuse(self, node: yaml.Node, message: str) -> NoReturn:
        raise TaskInvalid([self.places.of(node, message)])


def _tag(node: yaml.Node) -> str:
    return f"the tag {node.tag.replace('tag:yaml.org,2002:', '!!')}"
