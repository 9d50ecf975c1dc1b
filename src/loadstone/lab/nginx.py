"""nginx, in front of an application server that speaks the uwsgi protocol."""

import os
from dataclasses import dataclass
from pathlib import Path

from loadstone.lab import processes
from loadstone.lab.part import Application, Facts, Part, Say, Site, answers
from loadstone.lab.ports import HOST
from loadstone.lab.processes import Command, Process
from loadstone.lab.programs import Program

NGINX = Program("nginx", "nginx-light")
CONF = """\
daemon off;
pid {run}/{name}.pid;
worker_processes 1;
{user}
events {{ worker_connections 4096; }}
http {{
    access_log off;
    client_body_temp_path {run}/{name}-body;
    proxy_temp_path {run}/{name}-proxy;
    uwsgi_temp_path {run}/{name}-uwsgi;
    fastcgi_temp_path {run}/{name}-fastcgi;
    scgi_temp_path {run}/{name}-scgi;
    server {{
        listen {host}:{port} backlog=1024;
        location / {{
            include /etc/nginx/uwsgi_params;
            uwsgi_pass {host}:{behind};
        }}
    }}
}}
"""


@dataclass(frozen=True, slots=True)
class Nginx(Part):
    """The web server that clients speak to."""

    application: Application
    site: Site
    behind: int  # port of the application server
    programs = (NGINX, Program("/etc/nginx/uwsgi_params", "nginx-common"))

    @property
    def name(self) -> str:
        """The word for it."""
        return f"nginx{self.site.suffix}"

    @property
    def _conf(self) -> Path:
        return self.site.run / f"{self.name}.conf"

    @property
    def _log(self) -> Path:
        return self.site.logs / f"{self.name}.log"

    def prepare(self, say: Say) -> None:  # noqa: ARG002
        """Write its configuration."""
        text = CONF.format(
            run=self.site.run,
            name=self.name,
            user="user root;" if os.geteuid() == 0 else "",
            host=HOST,
            port=self.site.port,
            behind=self.behind,
        )
        self._conf.write_text(text)

    def start(self) -> Process:
        """Start the master; -e, for it would write to /var/log before it has read its file."""
        arguments = (NGINX.path(), "-e", str(self._log), "-c", str(self._conf))
        return processes.start(Command(arguments, self._log, self.site.folder))

    def healthy(self) -> bool:
        """What stands behind it answers through it."""
        return answers(self.site.port, self.application.health)

    def facts(self) -> Facts:
        """Version."""
        return (("web server", f"nginx {NGINX.version('-v')}"),)

    def logs(self) -> tuple[Path, ...]:
        """One log."""
        return (self._log,)
