"""Interface of all databases."""

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from urllib.parse import quote

from loadstone.lab import state
from loadstone.lab.parts.part import Facts, Part
from loadstone.lab.ports import HOST

USER = "keystone"  # the database user in MariaDB and PostgreSQL
MONITOR = "loadstone_monitor"  # the user that may read the server's counters, and nothing else
# One pool of connections per thread of each worker, plus the database's own connections.
CONNECTIONS = 400
BUFFER_MB = 256


class Flush(StrEnum):
    """When the transaction log is flushed to disk."""

    COMMIT = "commit"  # at each commit: the default of MariaDB and PostgreSQL
    SECOND = "second"  # about once a second


class Isolation(StrEnum):
    """Isolation level of transactions."""

    READ_COMMITTED = "read-committed"  # PostgreSQL's default
    REPEATABLE_READ = "repeatable-read"  # MariaDB's default


@dataclass(frozen=True, slots=True)
class DatabaseOptions:
    """Size limits of a database server, and how it keeps transactions."""

    connections: int = CONNECTIONS
    buffer_mb: int = BUFFER_MB
    flush: Flush = Flush.COMMIT
    isolation: Isolation | None = None  # None: the server's default

    def facts(self) -> Facts:
        """Return report rows for values that differ from the default."""
        usual = DatabaseOptions()
        rows = (
            ("database connections", self.connections, usual.connections),
            ("database buffer MB", self.buffer_mb, usual.buffer_mb),
            ("database flushes", self.flush, usual.flush),
            ("database isolation", self.isolation, usual.isolation),
        )
        return tuple((name, str(value)) for name, value, normal in rows if value != normal)


def monitor_password_file(folder: Path) -> Path:
    """Return the file that holds the password of MONITOR."""
    return state.secret_folder(folder) / "monitor-password"


def monitor_url(kind: str, folder: Path, port: int) -> str:
    """Return the URL at which a server's counters are read; it includes the password's file."""
    file = quote(str(monitor_password_file(folder)))
    return f"{kind}://{MONITOR}@{HOST}:{port}?password-file={file}"


class Database(Part):
    """A part that keeps its data in one folder, which can be copied while it is stopped."""

    __slots__ = ()
    data: Path

    def connection(self) -> str:
        """Return SQLAlchemy's URL, including the password if there is one."""
        raise NotImplementedError

    def is_readable(self) -> bool:
        """Return whether the installed server reads the data that are there."""
        return True
