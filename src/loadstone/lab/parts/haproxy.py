"""haproxy in front of several nodes."""

from dataclasses import dataclass
from enum import StrEnum
from itertools import count
from pathlib import Path

from loadstone.lab import processes
from loadstone.lab.parts.part import Facts
from loadstone.lab.parts.server import Server, answers
from loadstone.lab.ports import HOST
from loadstone.lab.processes import Command, Process
from loadstone.lab.programs import Program
from loadstone.lab.server_certificates import ServerCertificates
from loadstone.system.say import Say

HAPROXY = Program("haproxy", "haproxy")
REQUEST = "request"  # first word of log lines about requests
# End of haproxy's own log line about a client that aborted the handshake.
HANDSHAKE_FAILED = "SSL handshake failure"
# So that Keystone's links begin with https.
OVER_TLS = "    http-request set-header X-Forwarded-Proto https\n"
CONF = """\
global
    maxconn 4096
    nbthread 1
    log stdout format raw local0
{statistics}
defaults
    mode http
    log global
    log-format "{request} %Ts.%ms status=%ST ended=%ts to=%s ms=%Tt"
    timeout connect 5s
    timeout client 60s
    timeout server 60s
    {keep_alive}
frontend clients
    bind {host}:{port}{tls}
{headers}    default_backend nodes
backend nodes
    balance {balance}
    option httpchk GET {health}
    http-check expect status 200
{servers}
"""


class KeepAlive(StrEnum):
    """Which connections of haproxy stay open after a request."""

    BOTH = "both"  # those of clients and those to nodes: haproxy's default
    CLIENT = "client"
    NONE = "none"

    @property
    def option(self) -> str:
        """The line of haproxy's configuration."""
        match self:
            case KeepAlive.BOTH:
                return "option http-keep-alive"
            case KeepAlive.CLIENT:
                return "option http-server-close"
            case KeepAlive.NONE:
                return "option httpclose"


@dataclass(frozen=True, slots=True)
class Haproxy(Server):
    """The load balancer for clients. A node that fails its health check gets no requests."""

    nodes: tuple[int, ...]  # ports
    balance: str
    health: str
    maxconn: int | None = None  # of each node; None: no limit
    keep_alive: KeepAlive = KeepAlive.BOTH
    certificates: ServerCertificates | None = None  # None: it serves without TLS
    kind = "haproxy"
    programs = (HAPROXY,)

    def prepare(self, say: Say) -> None:  # noqa: ARG002
        """Write its configuration, and create certificates if it serves over TLS."""
        tls = ""
        if self.certificates is not None:
            self.certificates.make()
            tls = f" ssl crt {self.certificates.valid} alpn h2,http/1.1"
        limit = f" maxconn {self.maxconn}" if self.maxconn else ""
        servers = "\n".join(
            f"    server node-{number} {HOST}:{port} check inter 2s{limit}"
            for number, port in enumerate(self.nodes, 1)
        )
        path = self.statistics_socket
        text = CONF.format(
            request=REQUEST,
            host=self.site.host,
            port=self.site.port,
            tls=tls,
            headers=OVER_TLS if tls else "",
            keep_alive=self.keep_alive.option,
            balance=self.balance,
            health=self.health,
            servers=servers,
            statistics=f"    stats socket {path} mode 600 level admin" if path else "",
        )
        self.conf.write_text(text)

    def start(self) -> Process:
        """Start it in the foreground."""
        return self.run((HAPROXY.path(), "-db", "-f", str(self.conf)))

    def take_over(self, other: Process) -> Process:
        """Start a process that replaces another one, which ends once its connections are closed.

        Each has its own log file: haproxy does not append, so they would overwrite each other's
        lines.
        """
        arguments = (HAPROXY.path(), "-db", "-f", str(self.conf), "-sf", str(other.pid))
        return processes.start(Command(arguments, self._own_log(), self.site.folder))

    def _own_log(self) -> Path:
        names = (self.log.with_name(f"{self.name}-{number}.log") for number in count(2))
        return next(path for path in names if not path.exists())

    def healthy(self) -> bool:
        """Return whether a node answers through haproxy."""
        ca = self.certificates.ca if self.certificates is not None else None
        return answers(self.site, self.health, ca)

    def statistics(self) -> str:
        """Return the URL of its stats socket."""
        return self.statistics_url()

    def facts(self) -> Facts:
        """Return the version and the balancing algorithm."""
        version = HAPROXY.version("-v")
        return (
            ("nodes", str(len(self.nodes))),
            ("balancer", f"haproxy {version} ({self.balance})"),
            *(() if self.keep_alive is KeepAlive.BOTH else (("keep-alive", self.keep_alive),)),
            *((("maxconn per node", str(self.maxconn)),) if self.maxconn else ()),
            *((("TLS", "ended by haproxy"),) if self.certificates is not None else ()),
        )
