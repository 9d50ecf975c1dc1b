"""PostgreSQL, on data of its own."""

import signal
from dataclasses import dataclass, field
from pathlib import Path

from loadstone.lab import processes
from loadstone.lab.database import BUFFER_MB, CONNECTIONS, USER, Database
from loadstone.lab.part import Facts, Say
from loadstone.lab.ports import HOST
from loadstone.lab.processes import Command, Process
from loadstone.lab.programs import Program, unprivileged
from loadstone.lab.server import Server

FOLDERS = ("/usr/lib/postgresql/*/bin",)  # Debian keeps them off the PATH
SERVER = Program("postgres", "postgresql", FOLDERS)
INITDB = Program("initdb", "postgresql", FOLDERS)
SUPERUSER = "loadstone"
ACCESS = f"host all all {HOST}/32 scram-sha-256\n"
CREATE = f"CREATE ROLE {USER} LOGIN;\nCREATE DATABASE {USER} OWNER {USER};\n"


@dataclass(frozen=True, slots=True)
class Postgres(Server, Database):
    """One server on loopback."""

    data: Path
    password: str = field(repr=False)
    kind = "postgres"
    ask = signal.SIGINT  # fast: connections are closed, nothing is lost
    programs = (SERVER, INITDB)
    packages = ("psycopg2-binary",)

    @property
    def _tables(self) -> Path:
        return self.data / "postgres-data"

    def connection(self) -> str:
        """Give SQLAlchemy's URL."""
        return f"postgresql+psycopg2://{USER}:{self.password}@{HOST}:{self.site.port}/{USER}"

    def prepare(self, say: Say) -> None:
        """Make a cluster where there is none; give its user a fresh password."""
        if not self._tables.exists():
            say("making PostgreSQL's data folder (once)")
            self.data.mkdir(parents=True, exist_ok=True)
            half = self.data / "half-made"
            self._run((INITDB.path(), "-D", str(half), "-A", "reject", "-U", SUPERUSER))
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
        arguments = (SERVER.path(), "-D", str(self._tables), "-p", str(self.site.port), *chosen)
        return self.run(unprivileged(arguments))

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

    def _alone(self, tables: Path, sql: str) -> None:
        # Single-user mode needs no connection, so no password for the superuser. A statement that
        # fails is not logged: there may be a password in it.
        quiet = ("-c", "log_min_error_statement=panic")
        self._run((SERVER.path(), "--single", *quiet, "-D", str(tables), "postgres"), sql)

    def _run(self, arguments: tuple[str, ...], told: str = "") -> None:
        command = Command(unprivileged(arguments), self.log, self.site.folder)
        processes.complete(command, "postgres could not be prepared", told)
