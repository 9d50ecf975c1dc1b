"""Chooses the parts of the compute cloud from the settings."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from loadstone.lab.environment import ServiceEnvironment
from loadstone.lab.keystone.blueprint import Blueprint
from loadstone.lab.keystone.compute import schemas
from loadstone.lab.keystone.compute.cloud import IN_PROCESS, SERVICES, CloudLayout
from loadstone.lab.keystone.compute.database import ComputeDatabase
from loadstone.lab.keystone.compute.services import (
    IN_ONE_PROCESS,
    Configuration,
    Contents,
    Discovery,
    api,
    nova_services,
)
from loadstone.lab.keystone.database import storage_folder
from loadstone.lab.keystone.schema import Schema
from loadstone.lab.keystone.settings import Compute, LabSettings, MiddlewareCache
from loadstone.lab.parts.database import DatabaseOptions
from loadstone.lab.parts.memcached import Memcached
from loadstone.lab.parts.part import Facts, Part
from loadstone.lab.parts.rabbitmq import PortMapper, RabbitMq
from loadstone.lab.parts.server import Site
from loadstone.lab.parts.uwsgi import Uwsgi
from loadstone.system import paths

VERSIONS = {"nova": "34.0.0", "openstack-placement": "16.0.0", "glance": "33.0.0"} | {
    "neutron": "29.0.0",
    "keystonemiddleware": "13.0.1",
}
PACKAGES = ("PyMySQL", "python-memcached", "openstacksdk", *Uwsgi.packages)
TITLE = f"nova-{VERSIONS['nova']}"
TABLES = f"{TITLE}-tables"  # the same with any message bus
PINNED = Path(__file__).parent / "packages.txt"
SIZE_MB = 900  # 560 of packages, and the archives that the installer unpacks
DATABASE_SIZE = DatabaseOptions(connections=500, buffer_mb=64)


@dataclass(frozen=True, slots=True)
class ComputeCloud:
    """The cloud, and its parts in start order."""

    cloud: CloudLayout
    environment: Part  # created before anything starts: it needs the most disk space
    parts: tuple[Part, ...]


def compute(blueprint: Blueprint) -> ComputeCloud | None:
    """Return the compute cloud of a deployment; None if it has none."""
    settings = blueprint.settings
    if settings.compute is Compute.NONE:
        return None
    contents = environment(blueprint.folder)
    build = _database(blueprint)
    is_split = settings.compute is Compute.NOVA_SPLIT
    database = build(storage_folder(blueprint.folder, settings.storage) / TABLES)
    broker = _broker(blueprint) if is_split else ()
    mappers = (PortMapper(replace(one.site, port=one.mapper_port)) for one in broker)
    cache = _memcached(blueprint)
    cloud = CloudLayout(
        folder=blueprint.folder,
        data=database.state,
        environment=contents.folder,
        auth_url=blueprint.url,
        ports={service: blueprint.ports.allocate(service) for service in SERVICES},
        database=database,
        password=blueprint.services_password,
        bus=broker[-1].url() if broker else IN_PROCESS,
        tokens=settings.middleware_cache,
        memcached=cache[0].site.port if cache else None,
        sends_service_tokens=settings.service_tokens.is_on,
    )
    log = blueprint.folder / "logs" / "compute-schema.log"
    template = Schema(
        database,
        paths.labs() / "templates" / TABLES,
        build,
        partial(schemas.sync, cloud, log),
        log,
        name="compute-schema",
    )
    parts = (
        *(template, database, *cache, *mappers, *broker),
        Configuration(cloud, _facts(settings)),
        *(api(cloud, service) for service in ("placement", "glance", "neutron")),
        *_nova(cloud, is_split=is_split),
        Contents(cloud, blueprint.admin_password),
    )
    return ComputeCloud(cloud, contents, parts)


def _nova(cloud: CloudLayout, *, is_split: bool) -> tuple[Part, ...]:
    if not is_split:
        return (api(cloud, "nova", IN_ONE_PROCESS),)
    *beside, compute_service = nova_services(cloud)
    return (*beside, api(cloud, "nova"), compute_service, Discovery(cloud))


def _broker(blueprint: Blueprint) -> tuple[RabbitMq, ...]:
    ports = blueprint.ports
    mapper, distribution = (ports.allocate(name) for name in ("epmd", "rabbitmq-distribution"))
    where = Site(blueprint.folder, ports.allocate("rabbitmq"))
    return (RabbitMq(where, mapper, distribution, blueprint.services_password),)


def environment(folder: Path) -> ServiceEnvironment:
    """Return the environment of the services."""
    return ServiceEnvironment(
        root=paths.environments(),
        title=TITLE,
        contents=(*(f"{name}=={version}" for name, version in VERSIONS.items()), *PACKAGES),
        constraints=PINNED,
        deployment=folder,
        size_mb=SIZE_MB,
        name="compute-environment",
    )


def _database(blueprint: Blueprint) -> Callable[[Path], ComputeDatabase]:
    where = Site(blueprint.folder, blueprint.ports.allocate("compute-database"))
    return lambda data: ComputeDatabase(where, data, blueprint.database_password, DATABASE_SIZE)


@dataclass(frozen=True, slots=True)
class MiddlewareMemcached(Memcached):
    """Caches validated tokens for the services."""

    kind = "compute-memcached"
    is_reported = False  # it is not Keystone's


def _memcached(blueprint: Blueprint) -> tuple[Memcached, ...]:
    """Return the cache for validated tokens, if configured; Keystone has its own cache."""
    if blueprint.settings.middleware_cache is not MiddlewareCache.MEMCACHED:
        return ()
    site = Site(blueprint.folder, blueprint.ports.allocate("compute-memcached"))
    return (MiddlewareMemcached(site),)


def _facts(settings: LabSettings) -> Facts:
    versions = ", ".join(f"{name.removeprefix('openstack-')} {v}" for name, v in VERSIONS.items())
    return (
        ("compute", f"{settings.compute} ({versions})"),
        ("middleware cache", str(settings.middleware_cache)),
        ("service tokens", str(settings.service_tokens)),
    )
