"""A part of a deployment: a server, or something that must be made before one starts."""

import http.client
import signal
import socket
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from loadstone.lab.ports import HOST
from loadstone.lab.processes import Process
from loadstone.lab.programs import Program

Say = Callable[[str], None]
Facts = tuple[tuple[str, str], ...]
ANSWER_S = 5.0  # how long one health question waits
# What the application writes to standard error in each process that has loaded it: web servers
# listen long before, and a worker that still loads neither serves nor obeys a SIGTERM.
LOADED = "loadstone: application loaded"


class Part:
    """What a deployment knows of each of its parts; a part says only what it has.

    Stopping is the same for all (processes.stop), because it must work from the record on disk
    when all that knew the part has crashed.
    """

    __slots__ = ()
    ask: ClassVar[signal.Signals] = signal.SIGTERM  # on which it ends in an orderly way
    programs: ClassVar[tuple[Program, ...]] = ()  # that must be installed on the machine
    packages: ClassVar[tuple[str, ...]] = ()  # that the environment must hold

    @property
    def name(self) -> str:
        """Give the word for it in messages, `lab logs` and the state."""
        raise NotImplementedError

    def prepare(self, say: Say) -> None:  # noqa: ARG002
        """Make what it needs on disk; the same again does no harm."""
        return

    def start(self) -> Process | None:
        """Start it; None when it has no process of its own."""
        return None

    def healthy(self) -> bool:
        """Say whether it serves."""
        return True

    def facts(self) -> Facts:
        """Give what a report says of it."""
        return ()

    def logs(self) -> tuple[Path, ...]:
        """Give its logs, the most telling one first."""
        return ()


@dataclass(frozen=True, slots=True)
class Application:
    """The WSGI application that a web server serves."""

    python: Path  # the interpreter of its environment
    folder: Path  # holds the module
    module: str  # with a callable named `application`
    variables: tuple[tuple[str, str], ...]
    health: str  # a path that answers 200

    def program(self, name: str) -> str:
        """Give the path of a program that its environment holds."""
        return str(self.python.parent / name)


@dataclass(frozen=True, slots=True)
class Site:
    """Where and how wide a web server serves."""

    folder: Path  # of the deployment
    port: int
    workers: int
    threads: int
    suffix: str = ""  # tells two of a kind apart

    @property
    def logs(self) -> Path:
        """The folder of the logs."""
        return self.folder / "logs"

    @property
    def run(self) -> Path:
        """The folder of configuration files and sockets."""
        return self.folder / "run"


def has_loaded(site: Site, log: Path) -> bool:
    """Say whether every worker has loaded the application."""
    try:
        return log.read_text(errors="replace").count(LOADED) >= site.workers
    except FileNotFoundError:
        return False


def serves(application: Application, site: Site, log: Path) -> bool:
    """Say whether every worker has loaded the application, and the first answer is 200."""
    return has_loaded(site, log) and answers(site.port, application.health)


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
