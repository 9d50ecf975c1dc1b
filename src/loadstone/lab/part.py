"""A part of a deployment: a server, or something that must be made before one starts.

Stopping is the same for all (processes.stop), because it must work from the record on disk when
all that knew the part has crashed.
"""

import http.client
import signal
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from loadstone.lab.ports import HOST
from loadstone.lab.processes import Process

Say = Callable[[str], None]
Facts = tuple[tuple[str, str], ...]
ANSWER_S = 5.0  # how long one health question waits


class Part(Protocol):
    """What a deployment knows of each of its parts."""

    @property
    def name(self) -> str:
        """The word for it in messages, `lab logs` and the state."""

    @property
    def ask(self) -> signal.Signals:
        """The signal on which it ends in an orderly way."""

    def prepare(self, say: Say) -> None:
        """Make what it needs on disk; the same again does no harm."""

    def start(self) -> Process | None:
        """Start it; None when it has no process of its own."""

    def healthy(self) -> bool:
        """Say whether it serves."""

    def facts(self) -> Facts:
        """What a report says of it."""

    def logs(self) -> tuple[Path, ...]:
        """Its logs, the most telling one first."""


@dataclass(frozen=True, slots=True)
class Application:
    """The WSGI application that a web server serves."""

    python: Path  # the interpreter of its environment
    folder: Path  # holds the module
    module: str  # with a callable named `application`
    variables: tuple[tuple[str, str], ...]
    health: str  # a path that answers 200


@dataclass(frozen=True, slots=True)
class Site:
    """Where and how wide a web server serves."""

    folder: Path  # of the deployment
    port: int
    workers: int
    threads: int
    name: str = ""  # tells two of a kind apart

    @property
    def logs(self) -> Path:
        """The folder of the logs."""
        return self.folder / "logs"

    @property
    def run(self) -> Path:
        """The folder of configuration files and sockets."""
        return self.folder / "run"


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
