"""SQLite: a file that the service itself opens."""

import sqlite3
from dataclasses import dataclass
from pathlib import Path

from loadstone.lab.parts.database import Database
from loadstone.lab.parts.part import Facts
from loadstone.system.say import Say


@dataclass(frozen=True, slots=True)
class Sqlite(Database):
    """A database file in a folder of its own."""

    data: Path
    name: str = "sqlite"

    def connection(self) -> str:
        """Return SQLAlchemy's URL."""
        return f"sqlite:///{self.data / 'keystone.db'}"

    def prepare(self, say: Say) -> None:  # noqa: ARG002  # too quick for a message
        """Create the folder."""
        self.data.mkdir(parents=True, exist_ok=True)

    def facts(self) -> Facts:
        """Return the version of SQLite in Loadstone's own Python."""
        return (("database", f"SQLite {sqlite3.sqlite_version}"),)
