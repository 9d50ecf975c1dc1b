"""A part that is a process of its own and is spoken to at a port."""

import http.client
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from loadstone.lab import processes
from loadstone.lab.part import Part
from loadstone.lab.ports import HOST
from loadstone.lab.processes import Command, Process

ANSWER_S = 5.0  # how long one health question waits


@dataclass(frozen=True, slots=True)
class Site:
    """Where and how wide a server serves."""

    folder: Path  # of the deployment
    port: int
    workers: int = 1
    threads: int = 1
    suffix: str = ""  # tells two of a kind apart


@dataclass(frozen=True, slots=True)
class Server(Part):
    """A server on loopback, with one log; a kind says how it is started, and its facts."""

    site: Site
    kind: ClassVar[str]

    @property
    def name(self) -> str:
        """The word for it."""
        return f"{self.kind}{self.site.suffix}"

    @property
    def log(self) -> Path:
        """Where its output goes."""
        return self.site.folder / "logs" / f"{self.name}.log"

    @property
    def conf(self) -> Path:
        """Its configuration, where it has one without secrets."""
        return self.site.folder / "run" / f"{self.name}.conf"

    def run(
        self, arguments: tuple[str, ...], variables: Mapping[str, str] | None = None
    ) -> Process:
        """Start its process."""
        return processes.start(Command(arguments, self.log, self.site.folder, variables or {}))

    def healthy(self) -> bool:
        """It takes connections."""
        return listens(self.site.port)

    def logs(self) -> tuple[Path, ...]:
        """One log."""
        return (self.log,)


def answers(port: int, path: str) -> bool:
    """Say whether GET gives 200."""
    connection = http.client.HTTPConnection(HOST, port, timeout=ANSWER_S)
    try:
        connection.request("GET", path)
        return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def listens(port: int) -> bool:
    """Say whether a connection is taken."""
    try:
        socket.create_connection((HOST, port), timeout=ANSWER_S).close()
    except OSError:
        return False
    return True
