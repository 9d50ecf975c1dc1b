"""One process with one thread: the reference point of the old single-process server."""

from dataclasses import dataclass
from pathlib import Path

from loadstone.lab import processes
from loadstone.lab.part import Application, Facts, Part, Site, serves
from loadstone.lab.processes import Command, Process

SERVER = Path(__file__).parent / "inside" / "single_server.py"


@dataclass(frozen=True, slots=True)
class Single(Part):
    """wsgiref, from Python's own library."""

    application: Application
    site: Site

    @property
    def name(self) -> str:
        """The word for it."""
        return f"single{self.site.suffix}"

    @property
    def _log(self) -> Path:
        return self.site.logs / f"{self.name}.log"

    def start(self) -> Process:
        """Start the one process."""
        application = self.application
        arguments = (
            *(str(application.python), str(SERVER), str(self.site.port)),
            *(str(application.folder), application.module),
        )
        variables = dict(application.variables)
        return processes.start(Command(arguments, self._log, self.site.folder, variables))

    def healthy(self) -> bool:
        """It has loaded, and serves."""
        return serves(self.application, self.site, self._log)

    def facts(self) -> Facts:
        """What it is."""
        return (("web server", "wsgiref (one process, one thread)"),)

    def logs(self) -> tuple[Path, ...]:
        """One log."""
        return (self._log,)
