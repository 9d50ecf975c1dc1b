"""WSGI applications and the base class of their servers."""

from dataclasses import dataclass
from pathlib import Path

from loadstone.lab.parts.server import Server, answers
from loadstone.lab.processes import Process

# The application writes this to standard error in each process once it is loaded. Web servers
# listen long before that, and a worker that is still loading neither serves nor obeys a SIGTERM.
LOADED = "loadstone: application loaded"


@dataclass(frozen=True, slots=True)
class Application:
    """The WSGI application that a web server serves."""

    python: Path  # the interpreter of its environment
    folder: Path  # holds the module
    module: str  # with a callable named `application`
    variables: tuple[tuple[str, str], ...]
    health: str  # path of the health check, which returns 200
    logs_requests: bool = False  # in the server's access log, if it has one

    def program(self, name: str) -> str:
        """Return the path of a program in the application's environment."""
        return str(self.python.parent / name)


@dataclass(frozen=True, slots=True)
class ApplicationServer(Server):
    """A server that loads the application in its workers."""

    application: Application

    def serve(self, *arguments: str) -> Process:
        """Start a program with the application's environment variables."""
        return self.run(arguments, dict(self.application.variables))

    def has_loaded(self) -> bool:
        """Return whether every worker has loaded the application."""
        return self.logged().count(LOADED) >= self.site.workers

    def healthy(self) -> bool:
        """Return whether every worker has loaded the application and the health check passes."""
        return self.has_loaded() and answers(self.site, self.application.health)
