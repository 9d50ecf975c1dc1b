"""Reads YAML files that users write."""

import re
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loadstone.errors import InvalidInput

if TYPE_CHECKING:
    import yaml

MOST_BYTES = 32 * 2**20  # of a file: 200,000 users
MOST_ALIASED = 100_000  # values that aliases may add to those that are written
MOST_DEPTH = 100
# JSON's escape of a character above U+FFFF ("\ud83d\ude80"), which YAML does not have.
_ESCAPED_PAIR = re.compile(
    r"(?<!\\)((?:\\\\)*)\\u(d[89ab][0-9a-f]{2})\\u(d[c-f][0-9a-f]{2})", re.IGNORECASE
)

Place = Callable[..., str]  # of a part, by the keys and indices that lead to it


@dataclass(frozen=True, slots=True)
class YamlFile:
    """The content of a file, and where each part of it stands."""

    name: str  # in messages: the option and the path
    content: Any = field(repr=False)  # mappings, lists, strings, numbers, dates
    _root: "yaml.Node | None" = field(repr=False)

    def place(self, *keys: Hashable) -> str:
        """Return `NAME:LINE` of the part to which keys and indices lead, for messages.

        Where there is no such part, this is the line of what would contain it.
        """
        if self._root is None:
            return self.name
        line, _ = self._found(keys)
        return f"{self.name}:{line + 1}"

    def text(self, *keys: Hashable) -> str | None:
        """Return a single value as it stands in the file; None for a mapping or a list.

        YAML reads 010 as 8, and 1:30 as 90.
        """
        _, node = self._found(keys)
        return None if node is None or isinstance(node.value, list) else str(node.value)

    def _found(self, keys: Sequence[Hashable]) -> "tuple[int, yaml.Node | None]":
        """Return the line (from 0) and the node of a part, or of what would contain it."""
        node = self._root
        line = 0 if node is None else node.start_mark.line
        for key in keys:
            found = None if node is None else _part(node, key)
            if found is None:
                break
            line, node = found
        return line, node


def read(
    path: Path, option: str = "", *, is_secret: bool = False, may_repeat: bool = False
) -> YamlFile:
    """Read a YAML or JSON file.

    Raises InvalidInput with `option`, the file and the line; the content of a file that `is_secret`
    is not quoted. Aliases that expand to very many values are refused, and keys that are given
    twice, unless `may_repeat`: YAML forbids them, but Ansible takes the last.
    """
    import yaml

    place = f"{option} {path}" if option else f"{path}"
    try:
        loader = yaml.SafeLoader(without_pairs(read_text(path, option)))
        try:
            root = loader.get_single_node()
            if root is None:
                return YamlFile(place, None, None)
            _require_finite(root)
            if not may_repeat:
                _require_unique(root, set())
            return YamlFile(place, loader.construct_document(root), root)
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as wrong:
        line = "" if wrong.problem_mark is None else f":{wrong.problem_mark.line + 1}"
        what = "" if is_secret else f": {wrong.problem}"
        raise InvalidInput(f"{place}{line}: not YAML or JSON{what}") from None
    except _TooMuch as wrong:
        raise InvalidInput(f"{place}: {wrong}") from None
    except _Twice as twice:
        key = "a key" if is_secret else repr(twice.key)
        raise InvalidInput(f"{place}:{twice.line}: {key} is given twice") from None
    except (yaml.YAMLError, ValueError, RecursionError) as wrong:
        what = "" if is_secret else f": {' '.join(str(wrong).split())}"
        raise InvalidInput(f"{place}: not YAML or JSON{what}") from None


def read_text(path: Path, option: str = "") -> str:
    """Return the text of a file; InvalidInput with `option` and the file if it cannot be read."""
    place = f"{option} {path}" if option else f"{path}"
    try:
        return _text(path)
    except OSError as problem:
        raise InvalidInput(f"{place}: {problem.strerror}") from None
    except UnicodeDecodeError:
        raise InvalidInput(f"{place}: not UTF-8") from None
    except _TooMuch as wrong:
        raise InvalidInput(f"{place}: {wrong}") from None


def without_pairs(text: str) -> str:
    """Return JSON with the character of each escaped surrogate pair; other text unchanged."""
    if not text.lstrip().startswith(("{", "[")):
        return text

    def character(pair: re.Match[str]) -> str:
        halves = bytes.fromhex(pair[2] + pair[3])
        return pair[1] + halves.decode("utf-16-be")

    # The second half of a pair is no beginning of another, so that one pass finds all.
    return _ESCAPED_PAIR.sub(character, text)


def require_finite(path: Path) -> None:
    """Raise InvalidInput if aliases of a file expand without limit; other mistakes are ignored."""
    import yaml

    try:
        loader = yaml.SafeLoader(_text(path))
        if (root := loader.get_single_node()) is not None:
            _require_finite(root)
    except _TooMuch as wrong:
        raise InvalidInput(f"{path}: {wrong}") from None
    except (OSError, UnicodeDecodeError, yaml.YAMLError, RecursionError):
        return


class _TooMuch(ValueError):
    """A file is too long, or its aliases expand without limit."""


class _Twice(ValueError):
    """A mapping has a key twice."""

    def __init__(self, key: str, line: int) -> None:
        super().__init__(key)
        self.key, self.line = key, line


def _text(path: Path) -> str:
    with path.open("rb") as file:
        content = file.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        raise _TooMuch(f"longer than {MOST_BYTES // 2**20} MiB")
    return content.decode("utf-8")


def _require_finite(root: "yaml.Node") -> None:
    """Count values as written and with aliases followed, in time proportional to the text."""
    sizes: dict[int, int] = {}  # by the node's identity; 0 while its parts are counted

    def size(node: "yaml.Node", depth: int) -> int:
        known = sizes.get(id(node))
        if known == 0:
            raise _TooMuch("a value contains itself by an alias")
        if known is not None:
            return known
        if depth > MOST_DEPTH:
            raise _TooMuch(f"more than {MOST_DEPTH} levels of nesting")
        sizes[id(node)] = 0
        sizes[id(node)] = total = 1 + sum(size(part, depth + 1) for part in _parts(node))
        return total

    expanded = size(root, 0)
    if expanded - len(sizes) > MOST_ALIASED:
        raise _TooMuch(f"its aliases expand to more than {MOST_ALIASED:,} values")


def _require_unique(node: "yaml.Node", seen: set[int]) -> None:
    """Raise _Twice with the line of a key that its mapping has already."""
    import yaml

    if id(node) in seen:  # an alias
        return
    seen.add(id(node))
    if isinstance(node, yaml.MappingNode):
        keys: set[tuple[str, str]] = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                continue
            if (key.tag, key.value) in keys:
                raise _Twice(key.value, key.start_mark.line + 1)
            keys.add((key.tag, key.value))
    for part in _parts(node):
        _require_unique(part, seen)


def _part(node: "yaml.Node", key: Hashable) -> "tuple[int, yaml.Node] | None":
    """Return the line (from 0) and the node of an entry of a mapping or of a list."""
    import yaml

    if isinstance(node, yaml.MappingNode):
        for name, value in reversed(node.value):  # those of merges come first, and count less
            if isinstance(name, yaml.ScalarNode) and name.value == str(key):
                return name.start_mark.line, value
    elif isinstance(node, yaml.SequenceNode) and isinstance(key, int) and key < len(node.value):
        return node.value[key].start_mark.line, node.value[key]
    return None


def _parts(node: "yaml.Node") -> Iterator["yaml.Node"]:
    for part in node.value if isinstance(node.value, list) else ():
        if isinstance(part, tuple):
            yield from part
        else:
            yield part
