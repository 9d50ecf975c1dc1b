"""nginx, by stub_status."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from loadstone.monitor.metrics import Reading, with_source
from loadstone.monitor.source import Unreadable
from loadstone.monitor.sources.sockets import StatusPage

PAGE = re.compile(
    r"Active connections: (\d+)\s+server accepts handled requests\s+(\d+) (\d+) (\d+)\s+"
    r"Reading: (\d+) Writing: (\d+) Waiting: (\d+)"
)


@dataclass(slots=True)
class NginxSource(StatusPage):
    """One server."""

    default_path: ClassVar[str] = "/stub_status"

    @property
    def path(self) -> str:
        """The page; over a Unix socket the path of the address names the socket."""
        return self.address.path if self.address.host and self.address.path else self.default_path

    def read(self) -> Iterator[Reading]:
        """Read connections, requests, and connections dropped because no slot was free."""
        found = PAGE.search(self.text())
        if found is None:
            raise Unreadable("its page is not stub_status")
        active, accepted, handled, requests, reading, writing, waiting = map(int, found.groups())
        rows = (
            ("connections", active, "1"),
            ("accepted_total", accepted, "1"),
            ("dropped_total", accepted - handled, "1"),
            ("requests_total", requests, "1"),
            ("reading", reading, "1"),
            ("writing", writing, "1"),
            ("waiting", waiting, "1"),
        )
        yield from with_source(self.name, rows)
