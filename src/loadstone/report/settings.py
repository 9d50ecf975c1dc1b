"""Settings in which two results differ."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from loadstone.result.model import LAB


@dataclass(frozen=True, slots=True)
class SettingDifference:
    """One setting and its values; None if unknown on that side."""

    name: str
    values: tuple[str | None, ...]


# Facts that identify an instance and are no part of its configuration.
IDENTITY = frozenset({"url", "name", "started", "port", LAB})


def differences(
    sides: Iterable[Iterable[tuple[str, str]]], ignored: frozenset[str] = IDENTITY
) -> tuple[SettingDifference, ...]:
    """Return the settings whose values differ between the sides, in the order of the facts."""
    facts: list[Mapping[str, str]] = [dict(side) for side in sides]
    names = dict.fromkeys(name for side in facts for name in side if name not in ignored)
    found = (SettingDifference(name, tuple(side.get(name) for side in facts)) for name in names)
    return tuple(one for one in found if len(set(one.values)) > 1)
