"""Exact conversion to JSON and back: dataclasses, tuples, enums, columns, NaN and infinity."""

import json
import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cache
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, cast, get_args, get_origin, get_type_hints

import numpy as np

T = TypeVar("T")

# What reading data of another shape, or of absurd size, raises.
BAD_DATA = (
    *(ValueError, TypeError, KeyError, IndexError, AttributeError, OverflowError, RecursionError),
    AssertionError,
)
# JSON has no such numbers, and PostgreSQL and JavaScript reject Python's spelling of them.
_NOT_FINITE = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


def dumps(value: object) -> str:
    """Write a value as one line of strict JSON."""
    return json.dumps(to_plain(value), separators=(",", ":"), allow_nan=False)


def loads(kind: type[T], text: str) -> T:
    """Read a value of this type from the output of `dumps`."""
    return from_plain(kind, json.loads(text))


def to_plain(value: object) -> object:
    """Convert a value to JSON types."""
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else ("Infinity" if value > 0 else "-Infinity")
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, tuple | list):
        return [to_plain(item) for item in value]
    if is_dataclass(value) and not isinstance(value, type):
        value = {f.name: getattr(value, f.name) for f in fields(value)}
    if isinstance(value, Mapping):
        return {name: to_plain(item) for name, item in value.items()}
    return value


def from_plain(kind: type[T], plain: object) -> T:
    """Convert JSON types to a value of this type; missing fields take their defaults.

    Raises ValueError if the data does not fit the type.
    """
    return cast("T", _read(kind, plain))


def _read(kind: Any, plain: object) -> object:
    origin = get_origin(kind)
    # NumPy's NDArray is a `type` alias from Python 3.12 on.
    if (alias := getattr(origin, "__value__", None)) is not None:
        origin = get_origin(alias)
    if origin in (Union, UnionType):
        options = [option for option in get_args(kind) if option is not NoneType]
        return None if plain is None else _read(options[0], plain)
    if origin is Literal:
        if plain not in get_args(kind):
            raise ValueError(f"expected one of {get_args(kind)}, found {plain!r:.60}")
        return plain
    if origin is np.ndarray:
        return np.array(plain, dtype=np.int64)
    if origin is tuple:
        return _read_tuple(get_args(kind), plain)
    if origin is Mapping:  # of JSON values by name
        kind = dict
    if is_dataclass(kind):
        return _read_fields(kind, plain)
    return _read_scalar(kind, plain)


def _read_scalar(kind: Any, plain: object) -> object:
    if kind is float and isinstance(plain, str | int) and not isinstance(plain, bool):
        return _NOT_FINITE[plain] if plain in _NOT_FINITE else float(plain)
    if issubclass(kind, Enum):
        return kind(plain)
    if not isinstance(plain, kind):
        raise ValueError(f"expected {kind.__name__}, found {plain!r:.60}")
    return plain


def _read_tuple(kinds: tuple[Any, ...], plain: object) -> tuple[object, ...]:
    if not isinstance(plain, list):
        raise ValueError(f"expected a list, found {plain!r:.60}")
    if kinds[-1] is Ellipsis:
        return tuple(_read(kinds[0], item) for item in plain)
    return tuple(_read(kind, item) for kind, item in zip(kinds, plain, strict=True))


def _read_fields(kind: Any, plain: object) -> object:
    if not isinstance(plain, Mapping):
        raise ValueError(f"expected the fields of a {kind.__name__}, found {plain!r:.60}")
    hints = _hints(kind)
    known = {name: _read(hints[name], value) for name, value in plain.items() if name in hints}
    try:
        return kind(**known)
    except TypeError as problem:
        raise ValueError(f"{kind.__name__}: {problem}") from problem


@cache  # of a few dozen classes; evaluating annotations takes longer than reading most values
def _hints(kind: Any) -> Mapping[str, Any]:
    return get_type_hints(kind)
