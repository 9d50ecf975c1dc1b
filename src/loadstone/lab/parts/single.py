"""Single-process, single-threaded server: the baseline."""

from dataclasses import dataclass
from pathlib import Path

from loadstone.lab.parts.application import ApplicationServer
from loadstone.lab.parts.part import Facts
from loadstone.lab.processes import Process

SERVER = Path(__file__).parent / "inside" / "single_server.py"


@dataclass(frozen=True, slots=True)
class Single(ApplicationServer):
    """wsgiref from Python's standard library."""

    kind = "single"

    def start(self) -> Process:
        """Start the process."""
        application = self.application
        return self.serve(
            *(str(application.python), str(SERVER), self.site.host, str(self.site.port)),
            *(str(application.folder), application.module),
        )

    def facts(self) -> Facts:
        """Describe the server."""
        return (("web server", "wsgiref (one process, one thread)"),)
