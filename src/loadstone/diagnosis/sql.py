"""SQL statements by their shape: the text without its values."""

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

MOST_KEPT = 200  # shapes of a trial, the most frequent first
# Statements of the driver and of the pool of connections, which no caller asks for.
_OF_DRIVER = re.compile(
    r"(SET|ROLLBACK|COMMIT|BEGIN|SHOW|START TRANSACTION)\b|SELECT (1|\$1)\s*$", re.I
)
_PLACEHOLDER = re.compile(r"\$\d+")  # PostgreSQL's, where a value was
_STRING = re.compile(r"'(?:[^'\\]|\\.|'')*'", re.DOTALL)
_NUMBER = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?(?![\w.])")
_LIST = re.compile(r"\(\s*\?(?:\s*,\s*\?)+\s*\)")
_COLUMNS = re.compile(r"^(SELECT(?: DISTINCT)?) .*? FROM ")


@dataclass(frozen=True, slots=True)
class SqlCount:
    """Number of statements of one shape during a load."""

    text: str  # "SELECT ... FROM role WHERE role.id = ?"
    count: int


def shape(statement: str) -> str:
    """Return a statement on one line, without its values and its list of columns."""
    text = _NUMBER.sub("?", _PLACEHOLDER.sub("?", _STRING.sub("?", statement)))
    text = _LIST.sub("(?, ...)", " ".join(text.split()))
    return _COLUMNS.sub(r"\1 ... FROM ", text, count=1)


def counted(statements: Mapping[str, int]) -> tuple[SqlCount, ...]:
    """Count statements, given with their numbers, by their shape; not those of the driver."""
    shapes: Counter[str] = Counter()
    for one, count in statements.items():
        if not _OF_DRIVER.match(one.lstrip()):
            shapes[shape(one)] += count
    return tuple(SqlCount(text, count) for text, count in shapes.most_common(MOST_KEPT))
