"""The supported web servers. To add one, write a file in lab/ and add a line here."""

from collections.abc import Callable
from dataclasses import replace
from enum import StrEnum

from loadstone.lab import apache
from loadstone.lab.apache import Apache
from loadstone.lab.application import Application
from loadstone.lab.granian import Granian
from loadstone.lab.gunicorn import Gunicorn
from loadstone.lab.nginx import Nginx
from loadstone.lab.part import Part
from loadstone.lab.ports import HOST, Ports
from loadstone.lab.server import Site
from loadstone.lab.single import Single
from loadstone.lab.uwsgi import Uwsgi

Build = Callable[[Application, Site, Ports], tuple[Part, ...]]


class Web(StrEnum):
    """The web server."""

    UWSGI = "uwsgi"
    NGINX_UWSGI = "nginx-uwsgi"
    APACHE = "apache"
    GUNICORN = "gunicorn"
    GRANIAN = "granian"
    SINGLE = "single"  # one process, one thread


def _nginx_uwsgi(application: Application, site: Site, ports: Ports) -> tuple[Part, ...]:
    behind = replace(site, host=HOST, port=ports.allocate(f"uwsgi{site.suffix}"))
    uwsgi = Uwsgi(behind, application, is_behind=True)
    return (uwsgi, Nginx(site, behind.port, application.health))


SERVERS: dict[Web, Build] = {
    Web.UWSGI: lambda application, site, _: (Uwsgi(site, application),),
    Web.NGINX_UWSGI: _nginx_uwsgi,
    Web.APACHE: lambda application, site, ports: (
        Apache(site, application, ports.allocate(f"apache-status{site.suffix}")),
    ),
    Web.GUNICORN: lambda application, site, _: (Gunicorn(site, application),),
    Web.GRANIAN: lambda application, site, _: (Granian(site, application),),
    Web.SINGLE: lambda application, site, _: (Single(site, application),),
}
# For environments that must be made with a Python other than Loadstone's.
INTERPRETERS: dict[Web, str] = {Web.APACHE: apache.INTERPRETER}
