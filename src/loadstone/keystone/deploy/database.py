"""The supported databases, and where their data is kept."""

import hashlib
import os
import stat
from collections.abc import Callable
from pathlib import Path

from loadstone.errors import EnvironmentUnusable
from loadstone.keystone.deploy import settings
from loadstone.keystone.deploy.settings import DISK, TMPFS, LabSettings
from loadstone.lab.database import Database, DatabaseSize
from loadstone.lab.mariadb import MariaDb
from loadstone.lab.ports import Ports
from loadstone.lab.postgres import Postgres
from loadstone.lab.server import Site
from loadstone.lab.sqlite import Sqlite

SHARED_MEMORY = Path("/dev/shm")  # noqa: S108  # tmpfs on every Linux
# Data folder, deployment, ports, password, size.
Build = Callable[[Path, Path, Ports, str, DatabaseSize], Database]

DATABASES: dict[settings.DatabaseBackend, Build] = {
    settings.DatabaseBackend.SQLITE: lambda data, *_: Sqlite(data),
    settings.DatabaseBackend.MARIADB: lambda data, folder, ports, password, size: MariaDb(
        Site(folder, ports.give("database")), data, password, size
    ),
    settings.DatabaseBackend.POSTGRES: lambda data, folder, ports, password, size: Postgres(
        Site(folder, ports.give("database")), data, password, size
    ),
}


def storage_folder(folder: Path, chosen: LabSettings) -> Path:
    """Return the folder for a deployment's data: its own, in memory, or chosen by the user."""
    if chosen.storage == DISK:
        return folder / "data"
    # Two Loadstone homes may both have a deployment of this name.
    home = hashlib.sha256(str(folder).encode()).hexdigest()[:8]
    root = SHARED_MEMORY if chosen.storage == TMPFS else Path(chosen.storage)
    return root / f"loadstone-{folder.name}-{home}"


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
