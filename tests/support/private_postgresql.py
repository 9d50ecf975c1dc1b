"""A PostgreSQL server of the tests' own, on loopback."""

import itertools
import os
import signal
import subprocess
from pathlib import Path

import psycopg

from loadstone.lab import ports
from loadstone.lab.parts.postgres import INITDB, SERVER
from loadstone.lab.programs import check, unprivileged

USER = "team"
PASSWORD = "pg@word/that-must-not be seen"
IN_URL = "pg%40word%2Fthat-must-not%20be%20seen"


class PrivatePostgresql:
    """A server that can be stopped and started again; each test has a database of its own."""

    def __init__(self, folder: Path) -> None:
        check((SERVER, INITDB))
        self._data = folder / "data"
        self.port = ports.choose()
        self._numbers = itertools.count(1)
        self._process: subprocess.Popen[str] | None = None
        secret = folder / "password"
        secret.write_text(PASSWORD)
        access = ("-A", "scram-sha-256", "-U", USER, f"--pwfile={secret}")
        words = (INITDB.path(), "-D", str(self._data), "--no-sync", *access)
        subprocess.run(unprivileged(words), check=True, capture_output=True, cwd=folder)

    def start(self) -> None:
        options = {
            "listen_addresses": ports.HOST,
            "unix_socket_directories": "",
            "fsync": "off",
            "log_min_messages": "log",
        }
        settings = [word for name, value in options.items() for word in ("-c", f"{name}={value}")]
        words = (SERVER.path(), "-D", str(self._data), "-p", str(self.port), *settings)
        self._process = subprocess.Popen(
            unprivileged(words), stderr=subprocess.PIPE, text=True, env=os.environ | {"LC_ALL": "C"}
        )
        assert self._process.stderr is not None
        for line in self._process.stderr:
            if "ready to accept connections" in line:
                return
        raise RuntimeError("PostgreSQL did not start")

    def stop(self) -> None:
        """End all its connections and the server."""
        if self._process is not None:
            self._process.send_signal(signal.SIGINT)
            self._process.communicate(timeout=30)
            self._process = None

    def connect(self, database: str = "postgres") -> psycopg.Connection:
        return psycopg.connect(
            host=ports.HOST,
            port=self.port,
            user=USER,
            password=PASSWORD,
            dbname=database,
            autocommit=True,
        )

    def new_database(self) -> str:
        """Make an empty database and return its name."""
        name = f"results{next(self._numbers)}"
        with self.connect() as connection:
            connection.execute(f"CREATE DATABASE {name}")
        return name

    def url(self, database: str, files: Path, password: str = IN_URL) -> str:
        secret = f":{password}" if password else ""
        return f"postgresql://{USER}{secret}@{ports.HOST}:{self.port}/{database}?files={files}"
