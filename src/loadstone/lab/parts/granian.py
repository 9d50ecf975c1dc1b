"""Granian: a web server in Rust that calls the application from its workers."""

from dataclasses import dataclass

from loadstone.lab.parts.application import ApplicationServer
from loadstone.lab.parts.part import Facts
from loadstone.lab.processes import Process

VERSION = "2.8.7"


@dataclass(frozen=True, slots=True)
class Granian(ApplicationServer):
    """One process per worker."""

    kind = "granian"
    packages = (f"granian=={VERSION}",)

    def start(self) -> Process:
        """Start the supervisor."""
        return self.serve(
            self.application.program("granian"),
            *("--interface", "wsgi", "--no-ws"),
            *("--host", self.site.host, "--port", str(self.site.port)),
            *("--workers", str(self.site.workers)),
            *("--blocking-threads", str(self.site.threads)),
            *("--working-dir", str(self.application.folder)),
            f"{self.application.module}:application",
        )

    def facts(self) -> Facts:
        """Version."""
        return (("web server", f"granian {VERSION}"),)
