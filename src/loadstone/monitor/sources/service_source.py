"""Base class of the sources that are one service at an address."""

from dataclasses import dataclass
from typing import ClassVar

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
