"""Base class of the sources that are one service at an address."""

from contextlib import suppress
from dataclasses import dataclass, field
from typing import ClassVar, Generic, Protocol, TypeVar

from loadstone.monitor.sources.address import MonitorAddress


@dataclass(slots=True)
class ServiceSource:
    """A service whose counters are read."""

    address: MonitorAddress
    is_remote: ClassVar[bool] = False

    @property
    def name(self) -> str:
        """Name in messages."""
        return self.address.name

    def close(self) -> None:
        """Close what is open; by default nothing is."""


class _Closeable(Protocol):
    def close(self) -> object: ...


Link = TypeVar("Link", bound=_Closeable)


@dataclass(slots=True)
class KeptSource(ServiceSource, Generic[Link]):
    """A service that is read on a kept connection."""

    _link: Link | None = field(default=None, init=False)

    def close(self) -> None:
        """Close the connection; the next read opens another."""
        if self._link is not None:
            with suppress(Exception):
                self._link.close()
        self._link = None
