"""The services of the compute cloud as parts."""

import json
import shutil
import signal
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from loadstone.lab import processes
from loadstone.lab.keystone.compute import schemas
from loadstone.lab.keystone.compute.cloud import CloudLayout
from loadstone.lab.parts.application import LOADED, Application
from loadstone.lab.parts.part import Facts, Part
from loadstone.lab.parts.server import Server, Site
from loadstone.lab.parts.uwsgi import Uwsgi
from loadstone.lab.processes import Command, Process
from loadstone.system.say import Say

INSIDE = Path(__file__).parent / "inside"
# All of the same size: the driver is a fake. The task files of OpenStack's reliability tests use
# TestVM and m1.micro.
IMAGES = ("tiny", "TestVM")
FLAVORS = ("m1.nano", "m1.micro", "m1.tiny", "m1.small")
# Service -> module of its WSGI application, path that answers 200, threads.
WSGI = {
    "placement": ("placement.wsgi.api", "/", 4),
    "glance": ("glance.wsgi.api", "/healthcheck", 4),
    "neutron": ("neutron.wsgi.api", "/", 4),
    "nova": ("nova.wsgi.osapi_compute", "/", 8),
}
IN_ONE_PROCESS = "nova_all"  # API, conductor, scheduler and compute: inside/nova_all.py
# A service of Nova logs this when it listens to the message bus and nova-compute has its node
# (nova.service, at level DEBUG: configuration.LOG_LEVELS).
LISTENS = "Join ServiceGroup membership for this service"
ENTRY_POINTS = """\
[neutron.ml2.mechanism_drivers]
loadstone = loadstone_ml2:MechanismDriver
"""


@dataclass(frozen=True, slots=True)
class Configuration(Part):
    """Configuration files and applications."""

    cloud: CloudLayout
    settings: Facts
    name: str = "compute"

    def prepare(self, say: Say) -> None:  # noqa: ARG002
        """Write the files."""
        cloud = self.cloud
        schemas.write(cloud, cloud.configuration)
        pipelines = cloud.environment / "etc" / "nova" / "api-paste.ini"
        shutil.copy(pipelines, cloud.configuration)
        for name in ("nova", "neutron", "images", "staging", "tasks"):
            (cloud.data / name).mkdir(mode=0o700, parents=True, exist_ok=True)
        (cloud.folder / "run" / "locks").mkdir(exist_ok=True)
        # Python finds the driver by the entry points of an installed distribution.
        described = cloud.app / "loadstone_ml2-1.dist-info"
        described.mkdir(parents=True, exist_ok=True)
        (described / "METADATA").write_text("Metadata-Version: 2.1\nName: loadstone-ml2\n")
        (described / "entry_points.txt").write_text(ENTRY_POINTS)
        for path in INSIDE.glob("*.py"):
            shutil.copy(path, cloud.app)

    def facts(self) -> Facts:
        """Return the rows about the cloud."""
        return self.settings


@dataclass(frozen=True, slots=True)
class CloudApi(Uwsgi):
    """The API of one service, served by uWSGI."""

    service: str = ""
    starts_beside_others = True
    is_reported = False  # it is not measured

    @property
    def name(self) -> str:
        """Name of the service."""
        return self.service

    @property
    def statistics_socket(self) -> Path | None:
        """No socket."""
        return None


def api(cloud: CloudLayout, service: str, module: str | None = None) -> CloudApi:
    """Return the API of a service; `module` replaces the service's own application."""
    own, health, threads = WSGI[service]
    variables = {
        f"OS_{service.upper()}_CONFIG_DIR": str(cloud.configuration),
        "LOADSTONE_APPLICATION": own,
        "LOADSTONE_LOADED": LOADED,
        "LOADSTONE_PLACEMENT": cloud.url("placement"),
        **cloud.variables,
        **_FILES.get(service, {}),
    }
    application = Application(
        python=Path(cloud.program("python")),
        folder=cloud.app,
        module=module or "served",
        variables=tuple(variables.items()),
        health=health,
    )
    site = Site(cloud.folder, cloud.ports[service], workers=1, threads=threads)
    return CloudApi(site, application, service=service)


_FILES: Mapping[str, Mapping[str, str]] = {
    # The first one must be that of the pipelines.
    "nova": {"OS_NOVA_CONFIG_FILES": "api-paste.ini;nova.conf;nova-db.conf"},
    "neutron": {"OS_NEUTRON_CONFIG_FILES": "neutron.conf"},
}


@dataclass(frozen=True, slots=True)
class NovaService(Server):
    """A service of Nova in its own process, which listens only to the message bus."""

    cloud: CloudLayout
    service: str  # "nova-conductor"
    files: tuple[str, ...]  # its configuration
    starts_beside_others = True
    stop_signal = signal.SIGKILL  # its threads outlive a SIGTERM, and it has no state to lose

    @property
    def name(self) -> str:
        """Name of the service."""
        return self.service

    def start(self) -> Process:
        """Start the process."""
        folder = self.cloud.configuration
        files = (word for name in self.files for word in ("--config-file", str(folder / name)))
        return self.run((self.cloud.program(self.service), *files), self.cloud.variables)

    def healthy(self) -> bool:
        """Return whether its log says since its start that it listens."""
        return LISTENS in self.logged()


@dataclass(frozen=True, slots=True)
class NovaCompute(NovaService):
    """The compute service, which calls the conductor and Placement when it starts.

    If the conductor does not answer yet, it retries only after 10 s.
    """

    starts_beside_others = False


def nova_services(cloud: CloudLayout) -> tuple[NovaService, ...]:
    """Return the services of Nova beside its API: conductor, scheduler, compute."""
    site, with_database = Site(cloud.folder, 0), ("nova.conf", "nova-db.conf")
    return (
        NovaService(site, cloud, "nova-conductor", with_database),
        NovaService(site, cloud, "nova-scheduler", with_database),
        NovaCompute(site, cloud, "nova-compute", ("nova.conf",)),
    )


@dataclass(frozen=True, slots=True)
class _OnceOnly(Part):
    """A program that runs once for the data of a cloud."""

    cloud: CloudLayout
    marker: ClassVar[str]  # file that says that it has run
    purpose: ClassVar[str]
    failing: ClassVar[str]

    def prepare(self, say: Say) -> None:
        """Run the program, unless it has run."""
        done = self.cloud.data / self.marker
        if done.exists():
            return
        say(self.purpose)
        command = Command(self._arguments(), self._log, self.cloud.folder, self.cloud.variables)
        processes.complete(command, self.failing, self._stdin())
        done.touch()

    def logs(self) -> tuple[Path, ...]:
        """Return the log of the program."""
        return (self._log,)

    @property
    def _log(self) -> Path:
        return self.cloud.folder / "logs" / f"{self.name}.log"

    def _arguments(self) -> tuple[str, ...]:
        raise NotImplementedError

    def _stdin(self) -> str:
        return ""


@dataclass(frozen=True, slots=True)
class Discovery(_OnceOnly):
    """Registers the compute host in its cell."""

    name: str = "nova-discovery"
    marker = "host-discovered"
    purpose = "making the compute host known to its cell"
    failing = "the compute host could not be made known to its cell"

    def _arguments(self) -> tuple[str, ...]:
        folder = self.cloud.configuration
        files = ("nova.conf", "nova-db.conf")
        options = (word for name in files for word in ("--config-file", str(folder / name)))
        return (self.cloud.program("nova-manage"), *options, "cell_v2", "discover_hosts")


@dataclass(frozen=True, slots=True)
class Contents(_OnceOnly):
    """Tiny public images and some flavors."""

    admin_password: str = field(repr=False)
    name: str = "compute-contents"
    marker = "contents-made"
    purpose = f"making the images {', '.join(IMAGES)} and the flavors {', '.join(FLAVORS)}"
    failing = "the compute cloud's images and flavors could not be made"

    def _arguments(self) -> tuple[str, ...]:
        return (self.cloud.program("python"), str(INSIDE / "contents.py"))

    def _stdin(self) -> str:
        order = {
            "auth_url": self.cloud.auth_url,
            "password": self.admin_password,
            "images": IMAGES,
            "flavors": FLAVORS,
        }
        return json.dumps(order)
