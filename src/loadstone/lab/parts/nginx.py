"""nginx, in front of an application server that speaks the uwsgi protocol."""

import os
import resource
from dataclasses import dataclass

from loadstone.lab.parts.part import Facts
from loadstone.lab.parts.server import Server, answers
from loadstone.lab.ports import HOST
from loadstone.lab.processes import Process
from loadstone.lab.programs import Program
from loadstone.system.say import Say

NGINX = Program("nginx", "nginx-light")
CONNECTIONS = 4096  # those of clients and those to the application server
CONF = """\
daemon off;
pid {run}/{name}.pid;
worker_processes 1;
worker_rlimit_nofile {descriptors};
{user}
events {{ worker_connections {connections}; }}
http {{
    access_log off;
    client_body_temp_path {run}/{name}-body;
    proxy_temp_path {run}/{name}-proxy;
    uwsgi_temp_path {run}/{name}-uwsgi;
    fastcgi_temp_path {run}/{name}-fastcgi;
    scgi_temp_path {run}/{name}-scgi;
    server {{
        listen {site.host}:{site.port} backlog=1024;
        location / {{
            include /etc/nginx/uwsgi_params;
            uwsgi_pass {host}:{behind};
        }}
    }}
{statistics}
}}
"""

STATISTICS = """\
    server {{
        listen unix:{path};
        location = /stub_status {{ stub_status; }}
    }}
"""


@dataclass(frozen=True, slots=True)
class Nginx(Server):
    """The web server for clients."""

    behind: int  # port of the application server
    health: str
    kind = "nginx"
    programs = (NGINX, Program("/etc/nginx/uwsgi_params", "nginx-common"))

    def prepare(self, say: Say) -> None:  # noqa: ARG002
        """Write its configuration."""
        path = self.statistics_socket
        text = CONF.format(
            run=self.conf.parent,
            name=self.name,
            user="user root;" if os.geteuid() == 0 else "",
            connections=CONNECTIONS,
            descriptors=_descriptors(),
            host=HOST,
            site=self.site,
            behind=self.behind,
            statistics=STATISTICS.format(path=path) if path else "",
        )
        self.conf.write_text(text)

    def start(self) -> Process:
        """Start the master. Without -e it would write to /var/log before it reads its file."""
        if self.statistics_socket is not None:
            self.statistics_socket.unlink(missing_ok=True)  # left by a server that was killed
        return self.run((NGINX.path(), "-e", str(self.log), "-c", str(self.conf)))

    def healthy(self) -> bool:
        """Return whether the application answers through nginx."""
        return answers(self.site, self.health)

    def statistics(self) -> str:
        """Return the URL of stub_status."""
        return self.statistics_url()

    def facts(self) -> Facts:
        """Version."""
        return (("web server", f"nginx {NGINX.version('-v')}"),)


def _descriptors() -> int:
    """Return how many files a worker may open: enough for its connections, if that is allowed.

    Of a login shell's usual 1024, nginx would run out at 500 clients.
    """
    most, allowed = 2 * CONNECTIONS, resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    return most if allowed == resource.RLIM_INFINITY else min(most, allowed)
