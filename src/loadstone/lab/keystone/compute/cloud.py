"""Addresses and accounts of the compute cloud's services."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from loadstone.lab import state
from loadstone.lab.keystone.compute.database import ComputeDatabase
from loadstone.lab.keystone.manage import ServiceAccount
from loadstone.lab.keystone.settings import MiddlewareCache
from loadstone.lab.ports import HOST

# oslo.messaging's driver within one process. It uses only the URL's scheme, but Nova parses the URL
# for its cell and requires all parts.
IN_PROCESS = "fake://lab:lab@localhost:1/"
# Service -> type in the catalog, path of its API.
SERVICES = {
    "placement": ("placement", ""),
    "glance": ("image", ""),
    "neutron": ("network", ""),
    "nova": ("compute", "/v2.1"),
}


# Prefixes of the names of parts that are not Keystone's.
_PARTS = (*SERVICES, "compute", "epmd", "rabbitmq")


def is_beside_keystone(part: str) -> bool:
    """Return whether a part belongs to the compute cloud."""
    return part.startswith(_PARTS)


@dataclass(frozen=True, slots=True)
class CloudLayout:
    """Paths, ports and accounts of a compute cloud."""

    folder: Path  # of the deployment
    data: Path  # images, and Nova's state
    environment: Path  # with bin and etc
    auth_url: str
    ports: Mapping[str, int]  # by service
    database: ComputeDatabase
    password: str = field(repr=False)  # of the services' accounts
    bus: str = field(default=IN_PROCESS, repr=False)  # URL of the message bus
    tokens: MiddlewareCache = MiddlewareCache.LOCAL
    memcached: int | None = None  # its port, if tokens are kept there
    sends_service_tokens: bool = True

    @property
    def configuration(self) -> Path:
        """Folder of the configuration files, which contain passwords."""
        return state.secret_folder(self.folder) / "compute"

    @property
    def app(self) -> Path:
        """Folder of the applications."""
        return self.folder / "compute-app"

    @property
    def variables(self) -> dict[str, str]:
        """Environment variables for all of its programs."""
        # stevedore caches entry points there.
        return {"PYTHONWARNINGS": "ignore", "XDG_CACHE_HOME": str(self.environment / "cache")}

    def program(self, name: str) -> str:
        """Return the path of a program of the environment."""
        return str(self.environment / "bin" / name)

    def url(self, service: str) -> str:
        """Return the URL of a service as the catalog has it."""
        return f"http://{HOST}:{self.ports[service]}{SERVICES[service][1]}"

    def accounts(self) -> tuple[ServiceAccount, ...]:
        """Return the services' users and their entries of the catalog."""
        return tuple(
            ServiceAccount(name, kind, self.url(name), self.password)
            for name, (kind, _) in SERVICES.items()
        )
