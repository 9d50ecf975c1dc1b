"""What serves a WSGI application: the application, and what its servers have in common."""

from dataclasses import dataclass
from pathlib import Path

from loadstone.lab.processes import Process
from loadstone.lab.server import Server, answers

# What the application writes to standard error in each process that has loaded it: web servers
# listen long before, and a worker that still loads neither serves nor obeys a SIGTERM.
LOADED = "loadstone: application loaded"


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
class ApplicationServer(Server):
    """A server that loads the application in its workers."""

    application: Application

    def serve(self, *arguments: str) -> Process:
        """Start it, in the environment that the application wants."""
        return self.run(arguments, dict(self.application.variables))

    def has_loaded(self) -> bool:
        """Say whether every worker has loaded the application."""
        try:
            return self.log.read_text(errors="replace").count(LOADED) >= self.site.workers
        except FileNotFoundError:
            return False

    def healthy(self) -> bool:
        """Every worker has loaded the application, and the first answer is 200."""
        return self.has_loaded() and answers(self.site.port, self.application.health)
