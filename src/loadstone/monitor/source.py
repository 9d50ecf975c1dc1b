"""Interface of a source of readings."""

from collections.abc import Iterable
from typing import Protocol

from loadstone.monitor.metrics import Reading


class Unreadable(Exception):
    """A source cannot be read; the message says why, in one line."""


class Source(Protocol):
    """A source of readings, read once a second."""

    @property
    def name(self) -> str:
        """Name in messages."""

    @property
    def is_remote(self) -> bool:
        """Whether a read may be slow; such a source is read in a separate thread."""

    def read(self) -> Iterable[Reading]:
        """Read all values; Unreadable or OSError if that is not possible."""

    def close(self) -> None:
        """Close connections."""
