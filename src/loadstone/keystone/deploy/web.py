"""The web servers by name: a further one is a file in lab/ and a line here."""

from collections.abc import Callable
from dataclasses import replace

from loadstone.keystone.deploy.settings import Web
from loadstone.lab import apache
from loadstone.lab.apache import Apache
from loadstone.lab.granian import Granian
from loadstone.lab.gunicorn import Gunicorn
from loadstone.lab.nginx import Nginx
from loadstone.lab.part import Application, Part, Site
from loadstone.lab.ports import Ports
from loadstone.lab.single import Single
from loadstone.lab.uwsgi import Uwsgi

Build = Callable[[Application, Site, Ports], tuple[Part, ...]]


def _nginx_uwsgi(application: Application, site: Site, ports: Ports) -> tuple[Part, ...]:
    behind = replace(site, port=ports.give(f"uwsgi{site.suffix}"))
    uwsgi = Uwsgi(application, behind, is_behind=True)
    return (uwsgi, Nginx(application, site, behind.port))


SERVERS: dict[Web, Build] = {
    Web.UWSGI: lambda application, site, _: (Uwsgi(application, site),),
    Web.NGINX_UWSGI: _nginx_uwsgi,
    Web.APACHE: lambda application, site, _: (Apache(application, site),),
    Web.GUNICORN: lambda application, site, _: (Gunicorn(application, site),),
    Web.GRANIAN: lambda application, site, _: (Granian(application, site),),
    Web.SINGLE: lambda application, site, _: (Single(application, site),),
}
# Where the environment must be made with a Python that is not Loadstone's.
INTERPRETERS: dict[Web, str] = {Web.APACHE: apache.INTERPRETER}
