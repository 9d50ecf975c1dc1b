"""uWSGI from the `pyuwsgi` wheel, which needs no compiler."""

from dataclasses import dataclass
from pathlib import Path

from loadstone.lab.parts.application import ApplicationServer
from loadstone.lab.parts.part import Facts
from loadstone.lab.processes import Process
from loadstone.lab.programs import Program
from loadstone.system.say import Say

VERSION = "2.0.30"
ACCESS = "-access.log"

# lazy-apps: each worker loads the application itself, as in real deployments. need-app and no-
# orphans: a server without an application or master ends instead of answering 500.
INI = """\
[uwsgi]
{listen}
pythonpath = {app.folder}
module = {app.module}:application
virtualenv = {prefix}
master = true
processes = {site.workers}
threads = {site.threads}
enable-threads = true
lazy-apps = true
thunder-lock = true
{requests}
die-on-term = true
need-app = true
no-orphans = true
buffer-size = 65535
listen = {backlog}
{statistics}
"""
# Length of the listen queue. With uWSGI's default of 100 the kernel drops further connections, and
# clients retry only after 1 s, which would look like latency of the service.
BACKLOG = 1024
# http-socket closes idle connections silently; clients that pool them then see resets.
HTTP = "http-socket = {host}:{port}\nadd-header = Connection: close"
BEHIND = "socket = {host}:{port}"
# Start of the request in ms since 1970, method, path, status, User-Agent.
ACCESS_LOG = """\
req-logger = file:{path}
log-format = %(tmsecs) %(method) %(uri) %(status) %(uagent)"""


@dataclass(frozen=True, slots=True)
class Uwsgi(ApplicationServer):
    """uWSGI as the web server itself, or behind nginx."""

    is_behind: bool = False  # speak the uwsgi protocol instead of HTTP
    kind = "uwsgi"
    packages = (f"pyuwsgi=={VERSION}.post1",)

    def prepare(self, say: Say) -> None:  # noqa: ARG002
        """Write the configuration."""
        path = self.statistics_socket
        text = INI.format(
            listen=(BEHIND if self.is_behind else HTTP).format(
                host=self.site.host, port=self.site.port
            ),
            app=self.application,
            prefix=self.application.python.parent.parent,
            site=self.site,
            backlog=backlog(self.site.backlog or BACKLOG),
            requests=ACCESS_LOG.format(path=self.access_log)
            if self.application.logs_requests
            else "disable-logging = true",
            # It shows requests with their tokens, so only the owner may read it.
            statistics=f"stats = {path}\nchmod-socket = 600" if path else "",
        )
        self.conf.write_text(text)

    @property
    def access_log(self) -> Path:
        """Path of the access log, written if the application logs requests."""
        return access_log(self.site.folder, self.name)

    def start(self) -> Process:
        """Start the master."""
        return self.serve(self.application.program("uwsgi"), "--ini", str(self.conf))

    def healthy(self) -> bool:
        """Return whether every worker has loaded and the server answers."""
        return self.has_loaded() if self.is_behind else ApplicationServer.healthy(self)

    def statistics(self) -> str:
        """Return the URL of its stats server."""
        return self.statistics_url()

    def facts(self) -> Facts:
        """Return the version and the protocol."""
        version = Program(self.application.program("uwsgi"), "").version("--version")
        chosen = self.site.backlog
        queue = (("listen queue", str(backlog(chosen))),) if chosen is not None else ()
        if self.is_behind:
            return (("application server", f"uwsgi {version}"), *queue)
        server = f"uwsgi {version} (http-socket, a new connection each request)"
        return (("web server", server), *queue)


def access_log(folder: Path, name: str) -> Path:
    """Return the path of a server's log of requests."""
    return folder / "logs" / f"{name}{ACCESS}"


def backlog(wanted: int = BACKLOG) -> int:
    """Return `wanted`, limited by the machine's maximum, above which uWSGI refuses to start."""
    try:
        allowed = int(Path("/proc/sys/net/core/somaxconn").read_text())
    except OSError:
        allowed = 128  # Linux's default before 5.4
    return min(wanted, allowed)
