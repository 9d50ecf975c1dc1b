"""The lab's MariaDB: read-only, as its superuser."""

import getpass
import subprocess
from pathlib import Path

from loadstone.errors import EnvironmentUnusable, InvalidInput
from loadstone.faults import parts
from loadstone.keystone.deploy import settings
from loadstone.keystone.deploy.database import storage_folder
from loadstone.lab.programs import Program

CLIENT = Program("mariadb", "mariadb-client")
PATIENCE_S = 30.0


def set_read_only(folder: Path, *, is_read_only: bool) -> None:
    """Make the database refuse writes, or take them again."""
    found = parts.known(folder)
    if not any(record.part == "mariadb" for record in found.records):
        raise InvalidInput(f"lab {folder.name} has no MariaDB: the one database made read-only")
    chosen = settings.read(found.settings)
    kind = f"{chosen.source.title}-{chosen.database}"
    # The socket's full path may be longer than the kernel allows.
    tables = storage_folder(folder, chosen) / kind / "mysql-data"
    words = (CLIENT.path(), "--no-defaults", "--socket=mariadb.sock", f"--user={getpass.getuser()}")
    done = subprocess.run(
        (*words, "--execute", f"SET GLOBAL read_only = {int(is_read_only)}"),
        cwd=tables,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    if done.returncode != 0:
        raise EnvironmentUnusable(
            f"mariadb of lab {folder.name} does not become "
            f"{'read-only' if is_read_only else 'writable'}: {done.stderr.strip()}"
        )
