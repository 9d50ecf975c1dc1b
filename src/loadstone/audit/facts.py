"""Facts of one host: named values, the reasons of missing ones, and where settings are written."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

Value = bool | int | float | str | tuple["Value", ...]


@dataclass(frozen=True, slots=True)
class SettingOrigin:
    """The line of a file that sets a value."""

    path: str
    line: int
    is_default: bool = False  # no line sets the value, and this file is where one could


@dataclass(frozen=True, slots=True)
class MissingFact(Exception):
    """A fact that could not be read."""

    name: str
    reason: str


@dataclass(frozen=True, slots=True)
class Facts:
    """Facts of a host, or of a part of it.

    A key of `missing` that ends with a dot gives the reason for all names that begin with it.
    """

    values: Mapping[str, Value] = field(default_factory=dict)
    missing: Mapping[str, str] = field(default_factory=dict)
    origins: Mapping[str, SettingOrigin] = field(default_factory=dict)
    roles: frozenset[str] = frozenset()

    def get(self, name: str) -> Value:
        """Return a value, or raise MissingFact with the reason."""
        if name in self.values:
            return self.values[name]
        raise MissingFact(name, self._reason(name))

    def knows(self, name: str) -> bool:
        """Return whether a value was read."""
        return name in self.values

    def _reason(self, name: str) -> str:
        if name in self.missing:
            return self.missing[name]
        prefixes = (key for key in self.missing if key.endswith(".") and name.startswith(key))
        longest = max(prefixes, key=len, default=None)
        return "it was not found on the host" if longest is None else self.missing[longest]


@dataclass(frozen=True, slots=True)
class HostFacts:
    """Facts of one host; `failure` says why there are none."""

    host: str
    facts: Facts = field(default_factory=Facts)
    failure: str | None = None


def merged(parts: Iterable[Facts]) -> Facts:
    """Return all parts as one; the last value of a name counts."""
    every = tuple(parts)
    return Facts(
        values={name: value for part in every for name, value in part.values.items()},
        missing={name: reason for part in every for name, reason in part.missing.items()},
        origins={name: origin for part in every for name, origin in part.origins.items()},
        roles=frozenset(role for part in every for role in part.roles),
    )
