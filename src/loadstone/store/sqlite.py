"""SQLite: its engine and its error messages."""

import os
from contextlib import suppress
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, create_engine, event
from sqlalchemy.exc import DBAPIError

from loadstone.errors import EnvironmentUnusable
from loadstone.system import files

IN_MEMORY = Path(":memory:")


def engine(path: Path, patience_s: float) -> Engine:
    """Return an engine that waits up to `patience_s` for a lock of another process.

    A file that it creates is readable by its owner only, and so are SQLite's files beside it.
    """
    if path != IN_MEMORY:
        with suppress(OSError):  # it exists, or the first statement fails with a better message
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, files.PRIVATE))
    created = create_engine(
        URL.create("sqlite", database=str(path)), connect_args={"timeout": patience_s}
    )
    event.listen(created, "connect", _on_connect)
    event.listen(created, "begin", _on_begin)
    return created


def require_file(path: str) -> None:
    """Raise EnvironmentUnusable if the database file was removed while in use."""
    if _is_gone(path):
        raise EnvironmentUnusable(_gone(path))


def explain(path: str, problem: DBAPIError) -> str:
    """Return an error as one line with a remedy."""
    message = str(problem.orig)
    if _is_gone(path):
        return _gone(path)
    if "locked" in message:
        return f"{path} is locked by another process; try again when that has ended"
    if "full" in message:
        return f"{path} cannot grow: the disk is full; free some space or choose another --store"
    if "readonly" in message or "unable to open" in message:
        return f"{path} cannot be written; choose another folder with --store"
    if "not a database" in message or "malformed" in message:
        return (
            f"{path} is damaged, or is not a database of results ({message}); move it away, and "
            "`loadstone results recover` restores the results from the files beside it"
        )
    return f"{path}: {message}"


def _is_gone(path: str) -> bool:
    return path != str(IN_MEMORY) and not Path(path).exists()


def _gone(path: str) -> str:
    return f"{path} is gone: it was removed while it was in use"


def _on_connect(raw: Any, _record: object) -> None:
    # SQLAlchemy begins transactions itself: the driver would do so only at the first write.
    raw.isolation_level = None
    raw.execute("PRAGMA foreign_keys = ON")


def _on_begin(connection: Connection) -> None:
    writes = connection.get_execution_options().get("loadstone_writes", False)
    # IMMEDIATE: a second writer waits here instead of failing later in its transaction.
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")
