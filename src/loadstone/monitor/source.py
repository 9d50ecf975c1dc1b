"""Interface of what can be read once a second."""

from collections.abc import Iterable
from typing import Protocol

from loadstone.monitor.metrics import Reading


class Unreadable(Exception):
    """A source cannot be read; the message says why, in one line."""


class Source(Protocol):
    """Something that gives readings."""

    @property
    def name(self) -> str:
        """Name in messages."""

    @property
    def is_remote(self) -> bool:
        """Whether a read may take long; such a source does not delay the others."""

    def read(self) -> Iterable[Reading]:
        """Read all values; Unreadable or OSError if that is not possible."""

    def close(self) -> None:
        """Close connections."""
