"""Granian: a web server in Rust that calls the application from its workers."""

from dataclasses import dataclass
from pathlib import Path

from loadstone.lab import processes
from loadstone.lab.part import Application, Facts, Part, Site, serves
from loadstone.lab.ports import HOST
from loadstone.lab.processes import Command, Process

VERSION = "2.8.7"


@dataclass(frozen=True, slots=True)
class Granian(Part):
    """A process for each worker."""

    application: Application
    site: Site
    packages = (f"granian=={VERSION}",)

    @property
    def name(self) -> str:
        """The word for it."""
        return f"granian{self.site.suffix}"

    @property
    def _log(self) -> Path:
        return self.site.logs / f"{self.name}.log"

    def start(self) -> Process:
        """Start the supervisor."""
        site = self.site
        arguments = (
            self.application.program("granian"),
            *("--interface", "wsgi", "--no-ws"),
            *("--host", HOST, "--port", str(site.port)),
            *("--workers", str(site.workers)),
            *("--blocking-threads", str(site.threads)),
            *("--working-dir", str(self.application.folder)),
            f"{self.application.module}:application",
        )
        variables = dict(self.application.variables)
        return processes.start(Command(arguments, self._log, site.folder, variables))

    def healthy(self) -> bool:
        """Every worker has loaded, and it serves."""
        return serves(self.application, self.site, self._log)

    def facts(self) -> Facts:
        """Version."""
        return (("web server", f"granian {VERSION}"),)

    def logs(self) -> tuple[Path, ...]:
        """One log."""
        return (self._log,)
