"""The lab's database: its data folder, its read-only mode, and how its statements are counted."""

import signal
import subprocess
from pathlib import Path

from loadstone.errors import EnvironmentUnusable, InvalidInput
from loadstone.faults import parts
from loadstone.lab import processes, state
from loadstone.lab.keystone import settings
from loadstone.lab.keystone.database import data_folder
from loadstone.lab.parts.postgres import STATEMENTS_ON
from loadstone.lab.programs import Program, own_user
from loadstone.lab.state import DeploymentState

CLIENT = Program("mariadb", "mariadb-client")
PATIENCE_S = 30.0
POSTGRES_CONF = "postgresql.auto.conf"  # is read last
READ_ONLY = "default_transaction_read_only = on  # loadstone fault"
# MariaDB's log of all statements, in a table.
LOG_OFF = "SET GLOBAL general_log = 0"
EMPTY_LOG = "TRUNCATE mysql.general_log; SET GLOBAL log_output = 'FILE'"


def kind(folder: Path) -> str:
    """Return the name of the database part: mariadb or postgres; raise InvalidInput without one."""
    return _kind(folder, parts.read_state(folder))


def _kind(folder: Path, deployment: DeploymentState) -> str:
    for record in deployment.records:
        if record.part in ("mariadb", "postgres"):
            return record.part
    raise InvalidInput(
        f"lab {folder.name} has no database server; it needs --with database=mariadb or postgres"
    )


def folder(lab: Path) -> Path:
    """Return the folder of the database's data."""
    return _folder(lab, parts.read_state(lab))


def _folder(lab: Path, deployment: DeploymentState) -> Path:
    tables = "mysql-data" if _kind(lab, deployment) == "mariadb" else "postgres-data"
    return data_folder(lab, settings.started(deployment)) / tables


def set_read_only(lab: Path, *, is_read_only: bool) -> None:
    """Make the database read-only or writable."""
    if kind(lab) == "mariadb":
        _set_mariadb(lab, is_read_only=is_read_only)
    else:
        set_postgres(lab, READ_ONLY, is_set=is_read_only)


def set_writable_at_rest(lab: Path) -> None:
    """Make the database of a stopped lab writable from its next start on."""
    deployment = state.read(lab)
    # MariaDB forgets the setting when it ends.
    if deployment is not None and _kind(lab, deployment) == "postgres":
        _write_postgres(_folder(lab, deployment), READ_ONLY, is_set=False)


def count_no_statements(lab: Path) -> None:
    """Let the database count no statements any more, and forget those that it has logged."""
    if kind(lab) == "mariadb":
        run_mariadb(lab, f"{LOG_OFF}; {EMPTY_LOG}")
    else:
        set_postgres(lab, STATEMENTS_ON, is_set=False)


def mariadb_command(sql: str) -> tuple[str, ...]:
    """Return the command that runs SQL as the administrator, in the folder of the data."""
    # The socket's full path may be longer than the kernel allows.
    return (
        *(CLIENT.path(), "--no-defaults", "--socket=mariadb.sock", f"--user={own_user()}"),
        *("--batch", "--skip-column-names", "--execute", sql),
    )


def run_mariadb(lab: Path, sql: str) -> str:
    """Run SQL in a lab's MariaDB; return its rows, a line each, with tabs between columns.

    Raises EnvironmentUnusable if it fails.
    """
    try:
        completed = subprocess.run(
            mariadb_command(sql),
            cwd=folder(lab),
            capture_output=True,
            text=True,
            errors="replace",
            timeout=PATIENCE_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise EnvironmentUnusable(
            f"mariadb of lab {lab.name} does not answer within {PATIENCE_S:.0f} s"
        ) from None
    except OSError as problem:
        raise EnvironmentUnusable(f"mariadb of lab {lab.name}: {problem}") from None
    if completed.returncode != 0:
        raise EnvironmentUnusable(f"mariadb of lab {lab.name}: {completed.stderr.strip()}")
    return completed.stdout


def _set_mariadb(lab: Path, *, is_read_only: bool) -> None:
    try:
        run_mariadb(lab, f"SET GLOBAL read_only = {int(is_read_only)}")
    except EnvironmentUnusable as problem:
        word = "read-only" if is_read_only else "writable"
        raise EnvironmentUnusable(f"{problem}; it does not become {word}") from None


def set_postgres(lab: Path, line: str, *, is_set: bool) -> None:
    """Add a line to PostgreSQL's configuration, or remove it; running sessions adopt it at once."""
    _write_postgres(folder(lab), line, is_set=is_set)
    # One that has ended reads the file when it starts. The file postmaster.pid would then have a
    # number that may be another process's by now.
    records = parts.read_state(lab).records
    servers = [one.process for one in records if one.part == "postgres" and one.process]
    processes.send(signal.SIGHUP, servers)


def _write_postgres(tables: Path, line: str, *, is_set: bool) -> None:
    conf = tables / POSTGRES_CONF
    try:
        others = [one for one in conf.read_text().splitlines() if one != line]
        conf.write_text("\n".join([*others, line] if is_set else others) + "\n")
    except OSError as problem:
        raise EnvironmentUnusable(f"the configuration of postgres: {problem}") from None
