"""Gunicorn, with a process for each worker."""

from dataclasses import dataclass
from pathlib import Path

from loadstone.lab import processes
from loadstone.lab.part import Application, Facts, Part, Site, serves
from loadstone.lab.ports import HOST
from loadstone.lab.processes import Command, Process

VERSION = "27.0.1"


@dataclass(frozen=True, slots=True)
class Gunicorn(Part):
    """Sync workers with one thread, threaded ones with more."""

    application: Application
    site: Site
    packages = (f"gunicorn=={VERSION}",)

    @property
    def name(self) -> str:
        """The word for it."""
        return f"gunicorn{self.site.suffix}"

    @property
    def _log(self) -> Path:
        return self.site.logs / f"{self.name}.log"

    def start(self) -> Process:
        """Start the master."""
        site = self.site
        arguments = (
            self.application.program("gunicorn"),
            *("--bind", f"{HOST}:{site.port}"),
            *("--workers", str(site.workers)),
            *("--threads", str(site.threads)),
            *("--chdir", str(self.application.folder)),
            "--no-control-socket",
            f"{self.application.module}:application",
        )
        variables = dict(self.application.variables)
        return processes.start(Command(arguments, self._log, site.folder, variables))

    def healthy(self) -> bool:
        """Every worker has loaded, and it serves."""
        return serves(self.application, self.site, self._log)

    def facts(self) -> Facts:
        """Version."""
        return (("web server", f"gunicorn {VERSION}"),)

    def logs(self) -> tuple[Path, ...]:
        """One log."""
        return (self._log,)
