"""PostgreSQL with its own data folder."""

import signal
from dataclasses import dataclass, field
from pathlib import Path

from loadstone.errors import EnvironmentUnusable
from loadstone.lab import processes, state
from loadstone.lab.parts.database import (
    MONITOR,
    USER,
    Database,
    DatabaseOptions,
    Flush,
    monitor_password_file,
    monitor_url,
)
from loadstone.lab.parts.part import Facts
from loadstone.lab.parts.server import Server
from loadstone.lab.ports import HOST
from loadstone.lab.processes import Command, Process
from loadstone.lab.programs import UNKNOWN, Program, unprivileged
from loadstone.system.say import Say

FOLDERS = ("/usr/lib/postgresql/*/bin",)  # Debian keeps them off the PATH
SERVER = Program("postgres", "postgresql", FOLDERS)
INITDB = Program("initdb", "postgresql", FOLDERS)
SUPERUSER = "loadstone"
ACCESS = f"host all all {HOST}/32 scram-sha-256\n"
CREATE = f"CREATE ROLE {USER} LOGIN;\nCREATE DATABASE {USER} OWNER {USER};\n"
# Statements end with the line in single-user mode.
CREATE_MONITOR = (
    f"DO $$BEGIN IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = '{MONITOR}') "
    f"THEN CREATE ROLE {MONITOR} LOGIN; END IF; END$$;\nGRANT pg_monitor TO {MONITOR};\n"
)
# Counts statements by shape. It is loaded with the server, and counts when `observers.statements`
# sets STATEMENTS_ON; without it, only the cost of an identifier for each statement is paid.
STATEMENTS = "pg_stat_statements"
STATEMENTS_ON = f"{STATEMENTS}.track = top"
STATEMENTS_OFF = f"{STATEMENTS}.track = none"
CREATE_STATEMENTS = f"CREATE EXTENSION IF NOT EXISTS {STATEMENTS};\n"


@dataclass(frozen=True, slots=True)
class Postgres(Server, Database):
    """One server on loopback."""

    data: Path
    password: str = field(repr=False)
    options: DatabaseOptions = field(default_factory=DatabaseOptions)
    kind = "postgres"
    stop_signal = signal.SIGINT  # fast: connections are closed, nothing is lost
    programs = (SERVER, INITDB)
    packages = ("psycopg2-binary",)

    @property
    def _tables(self) -> Path:
        return self.data / "postgres-data"

    @property
    def _pid_file(self) -> Path:
        return self._tables / "postmaster.pid"

    def connection(self) -> str:
        """Return SQLAlchemy's URL."""
        return f"postgresql+psycopg2://{USER}:{self.password}@{HOST}:{self.site.port}/{USER}"

    def is_readable(self) -> bool:
        """Return whether the data are of the installed major version, or there are none."""
        made, installed = self._data_version(), SERVER.version("--version")
        return made is None or installed == UNKNOWN or f"{installed}.".startswith(f"{made}.")

    def prepare(self, say: Say) -> None:
        """Create a cluster if there is none; set a new password."""
        if not self.is_readable():
            name = self.site.folder.name
            raise EnvironmentUnusable(
                f"the data of lab {name} are of PostgreSQL {self._data_version()}, which "
                f"{SERVER.version('--version')} does not read; begin anew: "
                f"loadstone lab down {name} --purge"
            )
        if not self._tables.exists():
            say("making PostgreSQL's data folder (once)")
            self.data.mkdir(parents=True, exist_ok=True)
            half = self.data / "half-made"
            self._run((INITDB.path(), "-D", str(half), "-A", "reject", "-U", SUPERUSER))
            (half / "pg_hba.conf").write_text(ACCESS)
            self._alone(half, CREATE)
            half.rename(self._tables)
        self._unlock()
        passwords = (f"ALTER ROLE {user} PASSWORD '{self.password}';\n" for user in (USER, MONITOR))
        statements = CREATE_STATEMENTS if has_statements() else ""
        self._alone(self._tables, CREATE_MONITOR + statements + "".join(passwords))
        if statements:
            self._count_no_statements()
        state.write_secret(monitor_password_file(self.site.folder), self.password)

    def start(self) -> Process:
        """Start the server without a Unix socket. It refuses to run as root."""
        chosen = {
            "listen_addresses": HOST,
            "unix_socket_directories": "",
            "max_connections": str(self.options.connections),
            "shared_buffers": f"{self.options.buffer_mb}MB",
            "track_wal_io_timing": "on",  # two clock readings per fsync
            "synchronous_commit": "on" if self.options.flush is Flush.COMMIT else "off",
        }
        if self.options.isolation is not None:
            isolation = self.options.isolation.replace("-", " ")
            chosen["default_transaction_isolation"] = isolation
        if has_statements():
            chosen["shared_preload_libraries"] = STATEMENTS
        self._unlock()
        words = (word for key, value in chosen.items() for word in ("-c", f"{key}={value}"))
        arguments = (SERVER.path(), "-D", str(self._tables), "-p", str(self.site.port), *words)
        return self.run(unprivileged(arguments))

    def healthy(self) -> bool:
        """Read the pid file, as pg_ctl does: the server listens before it is ready."""
        try:
            lines = self._pid_file.read_text().splitlines()
        except FileNotFoundError:
            return False
        return len(lines) >= 8 and lines[7].strip() == "ready"

    def statistics(self) -> str:
        """Return the URL of its statistics views."""
        return monitor_url(self.kind, self.site.folder, self.site.port)

    def facts(self) -> Facts:
        """Return the version, and the size if it is not the default."""
        return (("database", f"PostgreSQL {SERVER.version('--version')}"), *self.options.facts())

    def _data_version(self) -> str | None:
        try:
            return (self._tables / "PG_VERSION").read_text().strip()
        except FileNotFoundError:
            return None

    def _unlock(self) -> None:
        """Remove the pid file of a server that was killed.

        After a reboot, another process may have its pid: the server would refuse to start.
        """
        self._pid_file.unlink(missing_ok=True)

    def _count_no_statements(self) -> None:
        """Set the default. An option of the server's command would prevail over a reload."""
        conf, changed = self._tables / "postgresql.conf", self._tables / "postgresql.auto.conf"
        text = conf.read_text()
        if STATEMENTS_OFF not in text:
            conf.write_text(f"{text}\n{STATEMENTS_OFF}\n")
        # Left by a measurement that was killed, and whose deployment ended before it was undone.
        changed.write_text(changed.read_text().replace(f"{STATEMENTS_ON}\n", ""))

    def _alone(self, tables: Path, sql: str) -> None:
        # Single-user mode needs no connection, so the superuser has no password. Failing statements
        # are not logged, because they may contain a password.
        quiet = ("-c", "log_min_error_statement=panic")
        self._run((SERVER.path(), "--single", *quiet, "-D", str(tables), "postgres"), sql)

    def _run(self, arguments: tuple[str, ...], stdin: str = "") -> None:
        command = Command(unprivileged(arguments), self.log, self.site.folder)
        processes.complete(command, "postgres could not be prepared", stdin)


def has_statements() -> bool:
    """Return whether the module that counts statements is installed beside the server.

    Debian has it in the server's package, others in one of their own (postgresql-contrib).
    """
    return (Path(SERVER.path()).resolve().parent.parent / "lib" / f"{STATEMENTS}.so").exists()
