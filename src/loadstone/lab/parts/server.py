"""Base class of parts that are a process with a port."""

import http.client
import os
import socket
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar
from urllib.parse import quote

from loadstone.lab import processes
from loadstone.lab.parts.part import Part
from loadstone.lab.ports import HOST
from loadstone.lab.processes import Command, Process

ANSWER_S = 5.0  # time-out of one health check
# Separates the log lines of a restarted server from earlier ones.
STARTED_AGAIN = "loadstone: started again"
# Bytes of a Unix socket's path (man 7 unix: 108 with the final zero); haproxy appends to it while
# it starts.
LONGEST_SOCKET = 90


@dataclass(frozen=True, slots=True)
class Site:
    """Address, workers and listen queue of a server."""

    folder: Path  # of the deployment
    port: int
    workers: int = 1
    threads: int = 1
    suffix: str = ""  # distinguishes servers of the same kind
    backlog: int | None = None  # length of the listen queue; None: the server's default
    host: str = HOST  # the address to listen on


@dataclass(frozen=True, slots=True)
class Server(Part):
    """A server with one log."""

    site: Site
    kind: ClassVar[str]

    @property
    def name(self) -> str:
        """Name in messages."""
        return f"{self.kind}{self.site.suffix}"

    @property
    def log(self) -> Path:
        """Log file."""
        return self.site.folder / "logs" / f"{self.name}.log"

    @property
    def conf(self) -> Path:
        """Configuration file, for servers whose configuration holds no secrets."""
        return self.site.folder / "run" / f"{self.name}.conf"

    @property
    def statistics_socket(self) -> Path | None:
        """Path of the Unix socket for its counters, in a private folder; None if it is too long."""
        path = self.site.folder / "run" / f"{self.name}.stats"
        return path if len(os.fsencode(path)) <= LONGEST_SOCKET else None

    def statistics_url(self) -> str:
        """Return the URL of that socket."""
        path = self.statistics_socket
        return f"{self.kind}://{quote(str(path))}?name={self.name}" if path else ""

    def run(
        self, arguments: tuple[str, ...], variables: Mapping[str, str] | None = None
    ) -> Process:
        """Start the server's process; add a separator line to a log that is not empty."""
        if self.log.exists() and self.log.stat().st_size:
            with self.log.open("a") as log:
                log.write(f"{STARTED_AGAIN}\n")
        return processes.start(Command(arguments, self.log, self.site.folder, variables or {}))

    def logged(self) -> str:
        """Return the log since the last start."""
        try:
            return self.log.read_text(errors="replace").rpartition(f"{STARTED_AGAIN}\n")[2]
        except FileNotFoundError:
            return ""

    def healthy(self) -> bool:
        """Return whether it accepts connections."""
        return listens(self.site)

    def logs(self) -> tuple[Path, ...]:
        """Return the log."""
        return (self.log,)


def answers(site: Site, path: str, ca: Path | None = None) -> bool:
    """Return whether GET returns 200; over TLS if a CA's certificate is given."""
    if ca is None:
        connection = http.client.HTTPConnection(site.host, site.port, timeout=ANSWER_S)
    else:
        context = ssl.create_default_context(cafile=str(ca))
        connection = http.client.HTTPSConnection(
            site.host, site.port, timeout=ANSWER_S, context=context
        )
    try:
        connection.request("GET", path)
        return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def listens(site: Site) -> bool:
    """Return whether the server accepts a connection."""
    try:
        socket.create_connection((site.host, site.port), timeout=ANSWER_S).close()
    except OSError:
        return False
    return True
