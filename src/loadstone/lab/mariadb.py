"""MariaDB, on data of its own."""

import getpass
import os
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

from loadstone.errors import EnvironmentUnusable
from loadstone.lab import logs, processes, state
from loadstone.lab.database import BUFFER_MB, CONNECTIONS, USER, Database
from loadstone.lab.part import Facts, Say, listens
from loadstone.lab.ports import HOST
from loadstone.lab.processes import Command, Process
from loadstone.lab.programs import Program

SERVER = Program("mariadbd", "mariadb-server")
INSTALL = Program("mariadb-install-db", "mariadb-server")
# The server carries it out before it takes connections: a fresh password needs no client.
INIT = f"""\
CREATE DATABASE IF NOT EXISTS {USER} CHARACTER SET utf8mb4;
CREATE OR REPLACE USER {USER}@'{HOST}' IDENTIFIED BY '{{password}}';
GRANT ALL ON {USER}.* TO {USER}@'{HOST}';
"""


@dataclass(frozen=True, slots=True)
class MariaDb(Database):
    """One server on loopback."""

    data: Path
    folder: Path  # of the deployment
    port: int
    password: str = field(repr=False)
    name: str = "mariadb"
    programs = (SERVER, INSTALL)
    packages = ("PyMySQL",)

    @property
    def _log(self) -> Path:
        return self.folder / "logs" / "mariadb.log"

    @property
    def _init(self) -> Path:
        return state.secret_folder(self.folder) / "mariadb.sql"

    @property
    def _tables(self) -> Path:
        return self.data / "mysql-data"

    def data_folder(self) -> Path:
        """Give the folder."""
        return self.data

    def connection(self) -> str:
        """Give SQLAlchemy's URL."""
        where = f"{HOST}:{self.port}/{USER}?charset=utf8mb4"
        return f"mysql+pymysql://{USER}:{self.password}@{where}"

    def prepare(self, say: Say) -> None:
        """Make the server's own tables where there are none; write what it does at its start."""
        if not self._tables.exists():
            say("making MariaDB's data folder (once)")
            self._install()
        state.replace_file(self._init, INIT.format(password=self.password))

    def start(self) -> Process:
        """Start it; its socket lies in its data folder, named shortly as sockets must be."""
        arguments = (
            *(SERVER.path(), "--no-defaults", f"--user={getpass.getuser()}"),
            *(f"--datadir={self._tables}", "--socket=mariadb.sock", "--pid-file=mariadb.pid"),
            *(f"--port={self.port}", f"--bind-address={HOST}", "--skip-name-resolve"),
            *(f"--max-connections={CONNECTIONS}", f"--innodb-buffer-pool-size={BUFFER_MB}M"),
            f"--init-file={self._init}",
        )
        return processes.start(Command(arguments, self._log, self.folder))

    def healthy(self) -> bool:
        """It takes connections."""
        return listens(self.port)

    def facts(self) -> Facts:
        """Version."""
        return (("database", f"MariaDB {SERVER.version('--version')}"),)

    def logs(self) -> tuple[Path, ...]:
        """One log."""
        return (self._log,)

    def _install(self) -> None:
        self.data.mkdir(parents=True, exist_ok=True)
        half = self.data / "half-made"
        arguments = (
            *(INSTALL.path(), "--no-defaults", f"--user={getpass.getuser()}", "--skip-test-db"),
            *(f"--datadir={half}", "--auth-root-authentication-method=socket"),
        )
        with self._log.open("ab") as log:
            done = subprocess.run(
                arguments,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=processes.clean_environment(self.folder),
                cwd=os.sep,
                check=False,
            )
        if done.returncode != 0:
            raise EnvironmentUnusable(
                f"mariadb could not be prepared\n{logs.explain((self._log,))}"
            )
        half.rename(self._tables)
