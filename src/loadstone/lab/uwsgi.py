"""uWSGI, from the `pyuwsgi` wheel: no compiler is needed."""

import signal
from dataclasses import dataclass
from pathlib import Path

from loadstone.lab import processes
from loadstone.lab.part import Application, Facts, Say, Site, answers
from loadstone.lab.ports import HOST
from loadstone.lab.processes import Command, Process

VERSION = "2.0.30"
PACKAGES = (f"pyuwsgi=={VERSION}.post1",)

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


@dataclass(frozen=True, slots=True)
class Uwsgi:
    """uWSGI as the web server itself, or behind one on a socket."""

    application: Application
    site: Site
    socket: Path | None = None  # speaks the uwsgi protocol there, in place of HTTP on the port
    ask: signal.Signals = signal.SIGTERM

    @property
    def name(self) -> str:
        """The word for it."""
        return f"uwsgi{self.site.name}"

    @property
    def _log(self) -> Path:
        return self.site.logs / f"{self.name}.log"

    @property
    def _ini(self) -> Path:
        return self.site.run / f"{self.name}.ini"

    def prepare(self, say: Say) -> None:  # noqa: ARG002  # too quick to be told of
        """Write its configuration."""
        listen = (
            HTTP.format(host=HOST, port=self.site.port)
            if self.socket is None
            else f"socket = {self.socket}"
        )
        prefix = self.application.python.parent.parent
        text = INI.format(
            listen=listen, app=self.application, prefix=prefix, site=self.site, backlog=backlog()
        )
        self._ini.parent.mkdir(parents=True, exist_ok=True)
        self._ini.write_text(text)

    def start(self) -> Process:
        """Start the master."""
        program = self.application.python.parent / "uwsgi"
        return processes.start(
            Command(
                (str(program), "--ini", str(self._ini)),
                self._log,
                self.site.folder,
                dict(self.application.variables),
            )
        )

    def healthy(self) -> bool:
        """Every worker has loaded, and the first answer is 200."""
        # A worker that still loads neither serves nor obeys a SIGTERM.
        loaded = self._log.read_text(errors="replace").count("WSGI app 0 (mountpoint='') ready")
        if loaded < self.site.workers:
            return False
        return self.socket is not None or answers(self.site.port, self.application.health)

    def facts(self) -> Facts:
        """Version, and how it speaks HTTP."""
        how = (
            "http-socket, a new connection each request" if self.socket is None else "uwsgi socket"
        )
        return (("web server", f"uwsgi {VERSION} ({how})"),)

    def logs(self) -> tuple[Path, ...]:
        """One log."""
        return (self._log,)


def backlog() -> int:
    """Give the longest queue that this machine allows; uWSGI ends when it is asked for more."""
    try:
        allowed = int(Path("/proc/sys/net/core/somaxconn").read_text())
    except OSError:
        allowed = 128  # what Linux allowed before 5.4
    return min(BACKLOG, allowed)
