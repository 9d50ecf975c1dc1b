"""Gunicorn, with a process for each worker."""

from dataclasses import dataclass

from loadstone.lab.parts.application import ApplicationServer
from loadstone.lab.parts.part import Facts
from loadstone.lab.processes import Process

VERSION = "27.0.1"


@dataclass(frozen=True, slots=True)
class Gunicorn(ApplicationServer):
    """Sync workers with one thread each, gthread workers with more."""

    kind = "gunicorn"
    packages = (f"gunicorn=={VERSION}",)

    def start(self) -> Process:
        """Start the master."""
        return self.serve(
            self.application.program("gunicorn"),
            *("--bind", f"{self.site.host}:{self.site.port}"),
            *("--workers", str(self.site.workers)),
            *("--threads", str(self.site.threads)),
            *("--chdir", str(self.application.folder)),
            "--no-control-socket",
            f"{self.application.module}:application",
        )

    def facts(self) -> Facts:
        """Version."""
        return (("web server", f"gunicorn {VERSION}"),)
