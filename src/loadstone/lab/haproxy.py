"""haproxy, in front of several nodes."""

from dataclasses import dataclass
from pathlib import Path

from loadstone.lab import processes
from loadstone.lab.part import Facts, Part, Say, Site, answers
from loadstone.lab.ports import HOST
from loadstone.lab.processes import Command, Process
from loadstone.lab.programs import Program

HAPROXY = Program("haproxy", "haproxy")
CONF = """\
global
    maxconn 4096
    nbthread 1
defaults
    mode http
    timeout connect 5s
    timeout client 60s
    timeout server 60s
frontend clients
    bind {host}:{port}
    default_backend nodes
backend nodes
    balance {balance}
    option httpchk GET {health}
    http-check expect status 200
{servers}
"""


@dataclass(frozen=True, slots=True)
class Haproxy(Part):
    """The address that clients speak to; a node that fails its check gets no requests."""

    site: Site
    nodes: tuple[int, ...]  # ports
    balance: str
    health: str
    programs = (HAPROXY,)
    name: str = "haproxy"

    @property
    def _conf(self) -> Path:
        return self.site.run / "haproxy.conf"

    @property
    def _log(self) -> Path:
        return self.site.logs / "haproxy.log"

    def prepare(self, say: Say) -> None:  # noqa: ARG002
        """Write its configuration."""
        servers = "\n".join(
            f"    server node-{number} {HOST}:{port} check inter 2s"
            for number, port in enumerate(self.nodes, 1)
        )
        text = CONF.format(
            host=HOST,
            port=self.site.port,
            balance=self.balance,
            health=self.health,
            servers=servers,
        )
        self._conf.write_text(text)

    def start(self) -> Process:
        """Start it in the foreground."""
        arguments = (HAPROXY.path(), "-db", "-f", str(self._conf))
        return processes.start(Command(arguments, self._log, self.site.folder))

    def healthy(self) -> bool:
        """A node answers through it."""
        return answers(self.site.port, self.health)

    def facts(self) -> Facts:
        """Version and how it shares out."""
        version = HAPROXY.version("-v")
        return (
            ("nodes", str(len(self.nodes))),
            ("balancer", f"haproxy {version} ({self.balance})"),
        )

    def logs(self) -> tuple[Path, ...]:
        """One log."""
        return (self._log,)
