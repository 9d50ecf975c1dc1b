"""PostgreSQL, on data of its own."""

import os
import signal
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

from loadstone.errors import EnvironmentUnusable
from loadstone.lab import logs, processes
from loadstone.lab.database import BUFFER_MB, CONNECTIONS, USER, Database
from loadstone.lab.part import Facts, Say
from loadstone.lab.ports import HOST
from loadstone.lab.processes import Command, Process
from loadstone.lab.programs import Program, unprivileged

FOLDERS = ("/usr/lib/postgresql/*/bin",)  # Debian keeps them off the PATH
SERVER = Program("postgres", "postgresql", FOLDERS)
INITDB = Program("initdb", "postgresql", FOLDERS)
SUPERUSER = "loadstone"
ACCESS = f"host all all {HOST}/32 scram-sha-256\n"
CREATE = f"CREATE ROLE {USER} LOGIN;\nCREATE DATABASE {USER} OWNER {USER};\n"


@dataclass(frozen=True, slots=True)
class Postgres(Database):
    """One server on loopback."""

    data: Path
    folder: Path  # of the deployment
    port: int
    password: str = field(repr=False)
    name: str = "postgres"
    ask = signal.SIGINT  # fast: connections are closed, nothing is lost
    programs = (SERVER, INITDB)
    packages = ("psycopg2-binary",)

    @property
    def _log(self) -> Path:
        return self.folder / "logs" / "postgres.log"

    @property
    def _tables(self) -> Path:
        return self.data / "postgres-data"

    def data_folder(self) -> Path:
        """Give the folder."""
        return self.data

    def connection(self) -> str:
        """Give SQLAlchemy's URL."""
        return f"postgresql+psycopg2://{USER}:{self.password}@{HOST}:{self.port}/{USER}"

    def prepare(self, say: Say) -> None:
        """Make a cluster where there is none; give its user a fresh password."""
        if not self._tables.exists():
            say("making PostgreSQL's data folder (once)")
            self.data.mkdir(parents=True, exist_ok=True)
            half = self.data / "half-made"
            self._run((INITDB.path(), "-D", str(half), "-A", "reject", "-U", SUPERUSER), "")
            (half / "pg_hba.conf").write_text(ACCESS)
            self._alone(half, CREATE)
            half.rename(self._tables)
        self._alone(self._tables, f"ALTER ROLE {USER} PASSWORD '{self.password}';\n")

    def start(self) -> Process:
        """Start it, without a socket in the file system; it refuses root."""
        options = {
            "listen_addresses": HOST,
            "unix_socket_directories": "",
            "max_connections": str(CONNECTIONS),
            "shared_buffers": f"{BUFFER_MB}MB",
        }
        chosen = (word for key, value in options.items() for word in ("-c", f"{key}={value}"))
        arguments = (SERVER.path(), "-D", str(self._tables), "-p", str(self.port), *chosen)
        return processes.start(Command(unprivileged(arguments), self._log, self.folder))

    def healthy(self) -> bool:
        """Its pid file says so, as pg_ctl reads it; it listens before it is ready."""
        try:
            lines = (self._tables / "postmaster.pid").read_text().splitlines()
        except FileNotFoundError:
            return False
        return len(lines) >= 8 and lines[7].strip() == "ready"

    def facts(self) -> Facts:
        """Version."""
        return (("database", f"PostgreSQL {SERVER.version('--version')}"),)

    def logs(self) -> tuple[Path, ...]:
        """One log."""
        return (self._log,)

    def _alone(self, tables: Path, sql: str) -> None:
        # Single-user mode needs no connection, so no password for the superuser.
        self._run((SERVER.path(), "--single", "-D", str(tables), "postgres"), sql)

    def _run(self, arguments: tuple[str, ...], told: str) -> None:
        done = subprocess.run(
            unprivileged(arguments),
            input=told.encode(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=processes.clean_environment(self.folder),
            cwd=os.sep,
            check=False,
        )
        with self._log.open("ab") as log:
            log.write(done.stdout.replace(self.password.encode(), b"***"))
        if done.returncode != 0:
            raise EnvironmentUnusable(
                f"postgres could not be prepared\n{logs.explain((self._log,))}"
            )
