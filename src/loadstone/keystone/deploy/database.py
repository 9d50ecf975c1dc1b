"""The databases by name, and where their data lies."""

import hashlib
from collections.abc import Callable
from pathlib import Path

from loadstone.keystone.deploy import settings
from loadstone.keystone.deploy.settings import DISK, TMPFS, Settings
from loadstone.lab.database import Database
from loadstone.lab.mariadb import MariaDb
from loadstone.lab.ports import Ports
from loadstone.lab.postgres import Postgres
from loadstone.lab.server import Site
from loadstone.lab.sqlite import Sqlite

SHARED_MEMORY = Path("/dev/shm")  # noqa: S108  # tmpfs on every Linux
# Data folder, deployment, ports, password.
Build = Callable[[Path, Path, Ports, str], Database]

DATABASES: dict[settings.Database, Build] = {
    settings.Database.SQLITE: lambda data, *_: Sqlite(data),
    settings.Database.MARIADB: lambda data, folder, ports, password: MariaDb(
        Site(folder, ports.give("database")), data, password
    ),
    settings.Database.POSTGRES: lambda data, folder, ports, password: Postgres(
        Site(folder, ports.give("database")), data, password
    ),
}


def storage_folder(folder: Path, chosen: Settings) -> Path:
    """Give the folder for a deployment's data: in its own, in memory, or where the user says."""
    if chosen.storage == DISK:
        return folder / "data"
    # Two homes of Loadstone may both have a deployment of this name.
    home = hashlib.sha256(str(folder).encode()).hexdigest()[:8]
    root = SHARED_MEMORY if chosen.storage == TMPFS else Path(chosen.storage)
    return root / f"loadstone-{folder.name}-{home}"
