"""SQLite: a file, opened by the service itself."""

import sqlite3
from dataclasses import dataclass
from pathlib import Path

from loadstone.lab.database import Database
from loadstone.lab.part import Facts, Say


@dataclass(frozen=True, slots=True)
class Sqlite(Database):
    """A database in a file of its own folder."""

    data: Path
    name: str = "sqlite"

    def connection(self) -> str:
        """Give SQLAlchemy's URL."""
        return f"sqlite:///{self.data / 'keystone.db'}"

    def prepare(self, say: Say) -> None:  # noqa: ARG002  # too quick to be told of
        """Make the folder."""
        self.data.mkdir(parents=True, exist_ok=True)

    def facts(self) -> Facts:
        """The library's version: the environment's Python is Loadstone's own."""
        return (("database", f"SQLite {sqlite3.sqlite_version}"),)
