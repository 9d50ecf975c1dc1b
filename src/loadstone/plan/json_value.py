"""A value that JSON can hold."""

from collections.abc import Mapping, Sequence

Json = None | bool | int | float | str | Sequence["Json"] | Mapping[str, "Json"]
