"""MariaDB, on data of its own."""

import getpass
from dataclasses import dataclass, field
from pathlib import Path

from loadstone.lab import processes, state
from loadstone.lab.database import BUFFER_MB, CONNECTIONS, USER, Database
from loadstone.lab.part import Facts, Say
from loadstone.lab.ports import HOST
from loadstone.lab.processes import Command, Process
from loadstone.lab.programs import Program
from loadstone.lab.server import Server

SERVER = Program("mariadbd", "mariadb-server")
INSTALL = Program("mariadb-install-db", "mariadb-server")
# The server carries it out before it takes connections: a fresh password needs no client.
INIT = f"""\
CREATE DATABASE IF NOT EXISTS {USER} CHARACTER SET utf8mb4;
CREATE OR REPLACE USER {USER}@'{HOST}' IDENTIFIED BY '{{password}}';
GRANT ALL ON {USER}.* TO {USER}@'{HOST}';
"""


@dataclass(frozen=True, slots=True)
class MariaDb(Server, Database):
    """One server on loopback."""

    data: Path
    password: str = field(repr=False)
    kind = "mariadb"
    programs = (SERVER, INSTALL)
    packages = ("PyMySQL",)

    @property
    def _init(self) -> Path:
        return state.secret_folder(self.site.folder) / "mariadb.sql"

    @property
    def _tables(self) -> Path:
        return self.data / "mysql-data"

    def connection(self) -> str:
        """Give SQLAlchemy's URL."""
        where = f"{HOST}:{self.site.port}/{USER}?charset=utf8mb4"
        return f"mysql+pymysql://{USER}:{self.password}@{where}"

    def prepare(self, say: Say) -> None:
        """Make the server's own tables where there are none; write what it does at its start."""
        if not self._tables.exists():
            say("making MariaDB's data folder (once)")
            self._install()
        state.write_secret(self._init, INIT.format(password=self.password))

    def start(self) -> Process:
        """Start it; its socket lies in its data folder, named shortly as sockets must be."""
        arguments = (
            *(SERVER.path(), "--no-defaults", f"--user={getpass.getuser()}"),
            *(f"--datadir={self._tables}", "--socket=mariadb.sock", "--pid-file=mariadb.pid"),
            *(f"--port={self.site.port}", f"--bind-address={HOST}", "--skip-name-resolve"),
            *(f"--max-connections={CONNECTIONS}", f"--innodb-buffer-pool-size={BUFFER_MB}M"),
            f"--init-file={self._init}",
        )
        return self.run(arguments)

    def facts(self) -> Facts:
        """Version."""
        return (("database", f"MariaDB {SERVER.version('--version')}"),)

    def _install(self) -> None:
        self.data.mkdir(parents=True, exist_ok=True)
        half = self.data / "half-made"
        arguments = (
            *(INSTALL.path(), "--no-defaults", f"--user={getpass.getuser()}", "--skip-test-db"),
            *(f"--datadir={half}", "--auth-root-authentication-method=socket"),
        )
        command = Command(arguments, self.log, self.site.folder)
        processes.complete(command, "mariadb could not be prepared")
        half.rename(self._tables)
