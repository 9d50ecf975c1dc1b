"""Chooses the parts of a deployment from its settings: the only place that knows them all."""

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import assert_never

from loadstone import places
from loadstone.keystone.deploy import queens
from loadstone.keystone.deploy.cache import cache
from loadstone.keystone.deploy.database import DATABASES, storage_folder
from loadstone.keystone.deploy.directory import directory
from loadstone.keystone.deploy.manage import Place
from loadstone.keystone.deploy.schema import Schema
from loadstone.keystone.deploy.service import Keystone
from loadstone.keystone.deploy.settings import Identity, Option, Settings
from loadstone.keystone.deploy.web import INTERPRETERS, SERVERS
from loadstone.lab.application import Application
from loadstone.lab.database import Database
from loadstone.lab.environment import Environment
from loadstone.lab.haproxy import Haproxy
from loadstone.lab.part import Part
from loadstone.lab.ports import Ports
from loadstone.lab.server import Site

RELEASES = Path(__file__).parent / "releases"


@dataclass(frozen=True, slots=True)
class Blueprint:
    """What the parts are made from."""

    folder: Path
    settings: Settings
    ports: Ports
    port: int  # that clients speak to
    url: str
    admin_password: str = field(repr=False)
    database_password: str = field(repr=False)
    directory_password: str = field(repr=False)


def environment(folder: Path, settings: Settings) -> Environment:
    """Give the environment of a release."""
    pinned = RELEASES / f"{settings.release}.txt"
    is_old = settings.is_queens
    return Environment(
        root=places.labs() / "environments",
        title=f"keystone-{settings.release}",
        contents=(f"keystone=={settings.release}",),
        constraints=pinned if pinned.exists() else None,
        deployment=folder,
        interpreter=queens.python() if is_old else INTERPRETERS.get(settings.web),
        pip=queens.PIP if is_old else None,
    )


def parts(blueprint: Blueprint) -> tuple[Part, ...]:
    """Give the parts in the order in which they start."""
    folder, settings = blueprint.folder, blueprint.settings
    contents = environment(folder, settings)
    place = Place(contents.python, folder, folder / "logs" / "prepare.log")
    if settings.is_queens:
        place = replace(place, program=queens.PREPARE)
    template, data = _data(blueprint, place)
    caches, cache_options = cache(settings.cache, folder, blueprint.ports)
    directories, directory_options = _directory(blueprint)
    keystone = Keystone(
        place=place,
        settings=settings,
        url=blueprint.url,
        options=(*cache_options, *directory_options),
        secret_options=(("database", "connection", data.connection()),),
        admin_password=blueprint.admin_password,
    )
    web = _web(blueprint, keystone.application())
    servers = (template, data, *caches, *directories, keystone, *web)
    wanted = (package for part in servers for package in part.packages)
    if settings.is_queens:
        wanted = (queens.older(package) for package in wanted)
    contents = replace(contents, contents=(*contents.contents, *dict.fromkeys(wanted)))
    return (contents, *servers)


def _data(blueprint: Blueprint, place: Place) -> tuple[Schema, Database]:
    folder, settings = blueprint.folder, blueprint.settings
    kind = f"{settings.release}-{settings.database}"

    def build(data: Path) -> Database:
        make = DATABASES[settings.database]
        return make(data, folder, blueprint.ports, blueprint.database_password)

    database = build(storage_folder(folder, settings) / kind)
    template = places.labs() / "templates" / kind
    return Schema(database, template, build, place), database


def _directory(blueprint: Blueprint) -> tuple[tuple[Part, ...], tuple[Option, ...]]:
    match blueprint.settings.identity:
        case Identity.SQL:
            return (), ()
        case Identity.LDAP:
            return directory(blueprint.folder, blueprint.ports, blueprint.directory_password)
        case _:
            assert_never(blueprint.settings.identity)


def _web(blueprint: Blueprint, application: Application) -> tuple[Part, ...]:
    settings, ports = blueprint.settings, blueprint.ports
    site = Site(blueprint.folder, blueprint.port, settings.workers, settings.threads)
    build = SERVERS[settings.web]
    if settings.nodes == 1:
        return build(application, site, ports)
    nodes = [
        replace(site, port=ports.give(f"node-{number}"), suffix=f"-{number}")
        for number in range(1, settings.nodes + 1)
    ]
    servers = (part for node in nodes for part in build(application, node, ports))
    balanced = tuple(node.port for node in nodes)
    return (*servers, Haproxy(site, balanced, settings.balance, application.health))
