"""uWSGI, from the `pyuwsgi` wheel: no compiler is needed."""

from dataclasses import dataclass
from pathlib import Path

from loadstone.lab.application import ApplicationServer
from loadstone.lab.part import Facts, Say
from loadstone.lab.ports import HOST
from loadstone.lab.processes import Process
from loadstone.lab.programs import Program

VERSION = "2.0.30"

# lazy-apps: each worker loads for itself, as deployments do. need-app and no-orphans: a server
# without an application, or without its master, ends instead of answering 500.
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
disable-logging = true
die-on-term = true
need-app = true
no-orphans = true
buffer-size = 65535
listen = {backlog}
"""
# Connections that may wait to be taken up. With uWSGI's 100 the kernel drops what comes beyond, and
# clients try again only after 1 s, which would be taken for the service's own latency.
BACKLOG = 1024
# http-socket closes idle connections without saying so, and clients that pool them then see resets.
HTTP = "http-socket = {host}:{port}\nadd-header = Connection: close"
BEHIND = "socket = {host}:{port}"


@dataclass(frozen=True, slots=True)
class Uwsgi(ApplicationServer):
    """uWSGI as the web server itself, or behind one."""

    is_behind: bool = False  # speaks the uwsgi protocol on its port, in place of HTTP
    kind = "uwsgi"
    packages = (f"pyuwsgi=={VERSION}.post1",)

    def prepare(self, say: Say) -> None:  # noqa: ARG002
        """Write its configuration."""
        text = INI.format(
            listen=(BEHIND if self.is_behind else HTTP).format(host=HOST, port=self.site.port),
            app=self.application,
            prefix=self.application.python.parent.parent,
            site=self.site,
            backlog=backlog(),
        )
        self.conf.write_text(text)

    def start(self) -> Process:
        """Start the master."""
        return self.serve(self.application.program("uwsgi"), "--ini", str(self.conf))

    def healthy(self) -> bool:
        """Every worker has loaded, and it serves."""
        return self.has_loaded() if self.is_behind else ApplicationServer.healthy(self)

    def facts(self) -> Facts:
        """Version, and how it is spoken to."""
        version = Program(self.application.program("uwsgi"), "").version("--version")
        if self.is_behind:
            return (("application server", f"uwsgi {version}"),)
        return (("web server", f"uwsgi {version} (http-socket, a new connection each request)"),)


def backlog() -> int:
    """Give the longest queue that this machine allows; uWSGI ends when it is asked for more."""
    try:
        allowed = int(Path("/proc/sys/net/core/somaxconn").read_text())
    except OSError:
        allowed = 128  # what Linux allowed before 5.4
    return min(BACKLOG, allowed)
