"""memcached."""

from dataclasses import dataclass

from loadstone.lab.parts.part import Facts
from loadstone.lab.parts.server import Server
from loadstone.lab.ports import HOST
from loadstone.lab.processes import Process
from loadstone.lab.programs import Program, own_user

MEMCACHED = Program("memcached", "memcached")
MEMORY_MB = 256  # the least that kolla-ansible gives it


@dataclass(frozen=True, slots=True)
class Memcached(Server):
    """One server, empty at each start."""

    kind = "memcached"
    programs = (MEMCACHED,)
    # pymemcache for dogpile's backend, python-memcached for oslo.cache's pool.
    packages = ("pymemcache", "python-memcached")

    def start(self) -> Process:
        """Start the server without UDP."""
        arguments = (
            *(MEMCACHED.path(), "-l", HOST, "-p", str(self.site.port), "-U", "0"),
            *("-m", str(MEMORY_MB), "-u", own_user()),
        )
        return self.run(arguments)

    def statistics(self) -> str:
        """Return its own URL."""
        return f"memcached://{HOST}:{self.site.port}?name={self.name}"

    def facts(self) -> Facts:
        """Version."""
        return (("cache server", f"memcached {MEMCACHED.version('-V')}"),)
