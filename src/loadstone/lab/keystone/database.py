"""The supported databases, and where their data is kept."""

import hashlib
import os
import shutil
import stat
from collections.abc import Callable
from pathlib import Path

from loadstone.errors import EnvironmentUnusable, InvalidInput
from loadstone.lab.keystone import settings
from loadstone.lab.keystone.settings import DISK, TMPFS, LabSettings
from loadstone.lab.parts.database import Database, DatabaseOptions
from loadstone.lab.parts.mariadb import MariaDb
from loadstone.lab.parts.postgres import Postgres
from loadstone.lab.parts.server import Site
from loadstone.lab.parts.sqlite import Sqlite
from loadstone.lab.ports import Ports

SHARED_MEMORY = Path("/dev/shm")  # noqa: S108  # tmpfs on every Linux
DATABASE = "database"  # the purpose of its port
# Data folder, deployment, ports, password, size.
Build = Callable[[Path, Path, Ports, str, DatabaseOptions], Database]

DATABASES: dict[settings.DatabaseBackend, Build] = {
    settings.DatabaseBackend.SQLITE: lambda data, *_: Sqlite(data),
    settings.DatabaseBackend.MARIADB: lambda data, folder, ports, password, size: MariaDb(
        Site(folder, ports.allocate(DATABASE)), data, password, size
    ),
    settings.DatabaseBackend.POSTGRES: lambda data, folder, ports, password, size: Postgres(
        Site(folder, ports.allocate(DATABASE)), data, password, size
    ),
}


def storage_folder(folder: Path, storage: str | None) -> Path:
    """Return the folder for a deployment's data: its own, in memory, or chosen by the user."""
    if storage in (DISK, None):  # None: a service without this setting
        return folder / "data"
    # Two Loadstone homes may both have a deployment of this name.
    home = hashlib.sha256(str(folder).encode()).hexdigest()[:8]
    root = SHARED_MEMORY if storage == TMPFS else Path(storage)
    return root / f"loadstone-{folder.name}-{home}"


def drop_data(folder: Path, storage: str | None, kept: str | None = None) -> None:
    """Remove a deployment's data outside its folder, unless `kept` is the same storage."""
    data = storage_folder(folder, storage)
    is_kept = storage_folder(folder, kept).resolve() == data.resolve()
    if folder not in data.parents and not is_kept:
        shutil.rmtree(data, ignore_errors=True)  # the user's folder may be gone


def data_folder(folder: Path, chosen: LabSettings) -> Path:
    """Return the folder for the data of one release, or one provider, on one database server."""
    is_provider = chosen.service.is_provider
    owner = chosen.service.value if is_provider else chosen.source.title
    return storage_folder(folder, chosen.storage) / f"{owner}-{chosen.database}"


def rename_data(old: Path, new: Path) -> None:
    """Link the upgraded data folder under the name of its new release.

    The folder itself keeps its name, because a server has it open.
    """
    if old != new and not new.exists():
        new.symlink_to(old.name)


def require_not_upgraded(folder: Path, chosen: LabSettings) -> None:
    """Raise InvalidInput for a release whose data were upgraded to a later one."""
    data = data_folder(folder, chosen)
    if not data.exists():
        return
    later = {link.readlink().name: link for link in data.parent.iterdir() if link.is_symlink()}
    newest = data
    while newest.name in later:
        newest = later[newest.name]
    if newest != data:
        release = newest.name.removesuffix(f"-{chosen.database}")
        raise InvalidInput(
            f"lab {folder.name} was upgraded to {release}, and its data cannot go back to "
            f"{chosen.source.title}: start it with --with release={release}, or begin anew: "
            f"loadstone lab down {folder.name} --purge"
        )


def require_own(data: Path) -> None:
    """Refuse a data folder that another user created: anyone may write to /dev/shm."""
    try:
        found = data.lstat()
    except FileNotFoundError:
        return
    if found.st_uid != os.geteuid() or not stat.S_ISDIR(found.st_mode):
        raise EnvironmentUnusable(
            f"{data} is not a folder of this user (it belongs to user id {found.st_uid}); have it "
            "removed, or keep the data elsewhere: --with storage=disk, or =/FULL/PATH"
        )
