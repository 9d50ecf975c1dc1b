"""The lab's database: its data folder and its read-only mode."""

import getpass
import os
import signal
import subprocess
from pathlib import Path

from loadstone.errors import EnvironmentUnusable, InvalidInput
from loadstone.faults import parts
from loadstone.keystone.deploy import settings
from loadstone.keystone.deploy.database import data_folder
from loadstone.lab.programs import Program

CLIENT = Program("mariadb", "mariadb-client")
PATIENCE_S = 30.0
READ_ONLY = "default_transaction_read_only = on  # loadstone fault"


def kind(folder: Path) -> str:
    """Return the name of the database part: mariadb or postgres; raise InvalidInput without one."""
    for record in parts.read_state(folder).records:
        if record.part in ("mariadb", "postgres"):
            return record.part
    raise InvalidInput(
        f"lab {folder.name} has no database server; it needs --with database=mariadb or postgres"
    )


def folder(lab: Path) -> Path:
    """Return the folder of the database's data."""
    tables = "mysql-data" if kind(lab) == "mariadb" else "postgres-data"
    chosen = settings.read(parts.read_state(lab).settings)
    return data_folder(lab, chosen) / tables


def set_read_only(lab: Path, *, is_read_only: bool) -> None:
    """Make the database read-only or writable."""
    if kind(lab) == "mariadb":
        _set_mariadb(lab, is_read_only=is_read_only)
    else:
        _set_postgres(folder(lab), is_read_only=is_read_only)


def _set_mariadb(lab: Path, *, is_read_only: bool) -> None:
    # The socket's full path may be longer than the kernel allows.
    client = (
        CLIENT.path(),
        "--no-defaults",
        "--socket=mariadb.sock",
        f"--user={getpass.getuser()}",
    )
    completed = subprocess.run(
        (*client, "--execute", f"SET GLOBAL read_only = {int(is_read_only)}"),
        cwd=folder(lab),
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    if completed.returncode != 0:
        raise EnvironmentUnusable(
            f"mariadb of lab {lab.name} does not become "
            f"{'read-only' if is_read_only else 'writable'}: {completed.stderr.strip()}"
        )


def _set_postgres(tables: Path, *, is_read_only: bool) -> None:
    """Set PostgreSQL's default transaction mode; running sessions adopt it at once."""
    conf = tables / "postgresql.auto.conf"  # is read last
    others = [line for line in conf.read_text().splitlines() if line != READ_ONLY]
    lines = [*others, READ_ONLY] if is_read_only else others
    conf.write_text("\n".join(lines) + "\n")
    pid = int((tables / "postmaster.pid").read_text().split()[0])
    try:
        os.kill(pid, signal.SIGHUP)
    except ProcessLookupError:
        return  # it reads the file when it starts
