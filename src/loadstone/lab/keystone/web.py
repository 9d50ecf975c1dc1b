"""The supported web servers. To add one, write a file in lab/ and add a line here."""

from collections.abc import Callable
from dataclasses import replace
from enum import StrEnum

from loadstone.lab.parts import apache
from loadstone.lab.parts.apache import Apache
from loadstone.lab.parts.application import Application
from loadstone.lab.parts.granian import Granian
from loadstone.lab.parts.gunicorn import Gunicorn
from loadstone.lab.parts.nginx import Nginx
from loadstone.lab.parts.part import Part
from loadstone.lab.parts.server import Site
from loadstone.lab.parts.single import Single
from loadstone.lab.parts.uwsgi import Uwsgi
from loadstone.lab.ports import HOST, Ports

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
