"""MariaDB with its own data folder."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

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
from loadstone.lab.programs import Program, own_user
from loadstone.system.say import Say

SERVER = Program("mariadbd", "mariadb-server")
INSTALL = Program("mariadb-install-db", "mariadb-server")
FLUSHES = {Flush.COMMIT: 1, Flush.SECOND: 2}
# The server runs this file before it accepts connections, so no client is needed to set a password.
# It also empties the log of counted statements, which has their values and outlives a stop.
INIT = f"""\
CREATE OR REPLACE USER {USER}@'{HOST}' IDENTIFIED BY '{{password}}';
{{schemas}}
CREATE OR REPLACE USER {MONITOR}@'{HOST}' IDENTIFIED BY '{{password}}';
GRANT PROCESS ON *.* TO {MONITOR}@'{HOST}';
TRUNCATE mysql.general_log;
"""
SCHEMA = f"""\
CREATE DATABASE IF NOT EXISTS {{name}} CHARACTER SET {{charset}};
GRANT ALL ON {{name}}.* TO {USER}@'{HOST}';"""


@dataclass(frozen=True, slots=True)
class MariaDb(Server, Database):
    """One server on loopback."""

    data: Path
    password: str = field(repr=False)
    options: DatabaseOptions = field(default_factory=DatabaseOptions)
    kind = "mariadb"
    schemas: ClassVar[tuple[str, ...]] = (USER,)
    charset: ClassVar[str] = "utf8mb4"
    programs = (SERVER, INSTALL)
    packages = ("PyMySQL",)

    @property
    def _init(self) -> Path:
        return state.secret_folder(self.site.folder) / f"{self.name}.sql"

    @property
    def _tables(self) -> Path:
        return self.data / "mysql-data"

    def connection(self) -> str:
        """Return SQLAlchemy's URL."""
        return self.connection_to(self.schemas[0])

    def connection_to(self, schema: str) -> str:
        """Return SQLAlchemy's URL of one of the schemas."""
        where = f"{HOST}:{self.site.port}/{schema}?charset={self.charset}"
        return f"mysql+pymysql://{USER}:{self.password}@{where}"

    def prepare(self, say: Say) -> None:
        """Create the system tables if missing; write the SQL to run at the start."""
        if not self._tables.exists():
            say("making MariaDB's data folder (once)")
            self._install()
        schemas = (SCHEMA.format(name=name, charset=self.charset) for name in self.schemas)
        init = INIT.format(password=self.password, schemas="\n".join(schemas))
        state.write_secret(self._init, init)
        state.write_secret(monitor_password_file(self.site.folder), self.password)

    def start(self) -> Process:
        """Start the server. Its socket has a short name because paths of sockets are limited."""
        isolation = self.options.isolation.upper() if self.options.isolation else ""
        arguments = (
            *(SERVER.path(), "--no-defaults", f"--user={own_user()}"),
            *(f"--datadir={self._tables}", "--socket=mariadb.sock", "--pid-file=mariadb.pid"),
            *(f"--port={self.site.port}", f"--bind-address={HOST}", "--skip-name-resolve"),
            f"--max-connections={self.options.connections}",
            f"--innodb-buffer-pool-size={self.options.buffer_mb}M",
            f"--innodb-flush-log-at-trx-commit={FLUSHES[self.options.flush]}",
            *((f"--transaction-isolation={isolation}",) if isolation else ()),
            f"--init-file={self._init}",
        )
        return self.run(arguments)

    def statistics(self) -> str:
        """Return the URL of its status variables."""
        return monitor_url(self.kind, self.site.folder, self.site.port)

    def facts(self) -> Facts:
        """Return the version, and the size if it is not the default."""
        return (("database", f"MariaDB {SERVER.version('--version')}"), *self.options.facts())

    def _install(self) -> None:
        self.data.mkdir(parents=True, exist_ok=True)
        half = self.data / "half-made"
        arguments = (
            *(INSTALL.path(), "--no-defaults", f"--user={own_user()}", "--skip-test-db"),
            *(f"--datadir={half}", "--auth-root-authentication-method=socket"),
        )
        command = Command(arguments, self.log, self.site.folder)
        processes.complete(command, "mariadb could not be prepared")
        half.rename(self._tables)
