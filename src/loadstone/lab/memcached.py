"""memcached."""

import getpass
from dataclasses import dataclass
from pathlib import Path

from loadstone.lab import processes
from loadstone.lab.part import Facts, Part, listens
from loadstone.lab.ports import HOST
from loadstone.lab.processes import Command, Process
from loadstone.lab.programs import Program

MEMCACHED = Program("memcached", "memcached")
MEMORY_MB = 128


@dataclass(frozen=True, slots=True)
class Memcached(Part):
    """One server, empty at each start."""

    folder: Path  # of the deployment
    port: int
    programs = (MEMCACHED,)
    # pymemcache for dogpile's backend, python-memcached for oslo.cache's pool.
    packages = ("pymemcache", "python-memcached")
    name: str = "memcached"

    @property
    def _log(self) -> Path:
        return self.folder / "logs" / "memcached.log"

    def start(self) -> Process:
        """Start it, without UDP."""
        arguments = (
            *(MEMCACHED.path(), "-l", HOST, "-p", str(self.port), "-U", "0"),
            *("-m", str(MEMORY_MB), "-u", getpass.getuser()),
        )
        return processes.start(Command(arguments, self._log, self.folder))

    def healthy(self) -> bool:
        """It takes connections."""
        return listens(self.port)

    def facts(self) -> Facts:
        """Version."""
        return (("cache server", f"memcached {MEMCACHED.version('-V')}"),)

    def logs(self) -> tuple[Path, ...]:
        """One log."""
        return (self._log,)
