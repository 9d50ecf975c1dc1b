"""SQLite: a file, opened by the service itself."""

import signal
import sqlite3
from dataclasses import dataclass
from pathlib import Path

from loadstone.lab.part import Facts, Say
from loadstone.lab.processes import Process


@dataclass(frozen=True, slots=True)
class Sqlite:
    """A database in a file of its own folder."""

    data: Path
    name: str = "sqlite"
    ask: signal.Signals = signal.SIGTERM

    def connection(self) -> str:
        """Give SQLAlchemy's URL."""
        return f"sqlite:///{self.data / 'keystone.db'}"

    def prepare(self, say: Say) -> None:  # noqa: ARG002  # too quick to be told of
        """Make the folder."""
        self.data.mkdir(parents=True, exist_ok=True)

    def start(self) -> Process | None:
        """No process."""
        return None

    def healthy(self) -> bool:
        """A file serves."""
        return True

    def facts(self) -> Facts:
        """The library's version: the environment's Python is Loadstone's own."""
        version = sqlite3.sqlite_version
        return (("database", f"SQLite {version}"), ("storage", "disk"))

    def logs(self) -> tuple[Path, ...]:
        """None."""
        return ()
