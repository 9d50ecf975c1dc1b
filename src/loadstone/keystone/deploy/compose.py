"""Chooses the parts of a deployment from its settings: the only place that knows them all."""

from dataclasses import dataclass, field
from pathlib import Path

from loadstone import places
from loadstone.keystone.deploy.manage import Place
from loadstone.keystone.deploy.schema import Schema
from loadstone.keystone.deploy.service import Keystone
from loadstone.keystone.deploy.settings import Settings
from loadstone.lab import uwsgi
from loadstone.lab.environment import Environment
from loadstone.lab.part import Part, Site
from loadstone.lab.sqlite import Sqlite
from loadstone.lab.uwsgi import Uwsgi

RELEASES = Path(__file__).parent / "releases"


@dataclass(frozen=True, slots=True)
class Blueprint:
    """What the parts are made from."""

    folder: Path
    settings: Settings
    port: int
    url: str
    admin_password: str = field(repr=False)


def environment(folder: Path, settings: Settings) -> Environment:
    """Give the environment of a release."""
    pinned = RELEASES / f"{settings.release}.txt"
    return Environment(
        root=places.labs() / "environments",
        title=f"keystone-{settings.release}",
        packages=(f"keystone=={settings.release}", *uwsgi.PACKAGES),
        constraints=pinned if pinned.exists() else None,
        deployment=folder,
    )


def parts(blueprint: Blueprint) -> tuple[Part, ...]:
    """Give the parts in the order in which they start."""
    folder, settings = blueprint.folder, blueprint.settings
    packages = environment(folder, settings)
    place = Place(packages.python, folder, folder / "logs" / "prepare.log")
    kind = f"{settings.release}-sqlite"
    database = Sqlite(folder / "data" / kind)
    keystone = Keystone(
        place=place,
        settings=settings,
        url=blueprint.url,
        options=(("database", "connection", database.connection()),),
        admin_password=blueprint.admin_password,
    )
    schema = Schema(database, places.labs() / "templates" / kind, Sqlite, place)
    site = Site(folder, blueprint.port, settings.workers, settings.threads)
    web = Uwsgi(keystone.application(), site)
    return (packages, schema, database, keystone, web)
