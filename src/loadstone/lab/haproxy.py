"""haproxy, in front of several nodes."""

from dataclasses import dataclass

from loadstone.lab.part import Facts, Say
from loadstone.lab.ports import HOST
from loadstone.lab.processes import Process
from loadstone.lab.programs import Program
from loadstone.lab.server import Server, answers

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
class Haproxy(Server):
    """The address that clients speak to; a node that fails its check gets no requests."""

    nodes: tuple[int, ...]  # ports
    balance: str
    health: str
    kind = "haproxy"
    programs = (HAPROXY,)

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
        self.conf.write_text(text)

    def start(self) -> Process:
        """Start it in the foreground."""
        return self.run((HAPROXY.path(), "-db", "-f", str(self.conf)))

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
