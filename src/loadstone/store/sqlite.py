"""SQLite: how its database is opened, and what its errors mean."""

from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, create_engine, event
from sqlalchemy.exc import DBAPIError

from loadstone.errors import EnvironmentUnusable

IN_MEMORY = Path(":memory:")


def engine(path: Path, patience_s: float) -> Engine:
    """Return an engine that waits so long for another process that holds the database."""
    made = create_engine(
        URL.create("sqlite", database=str(path)), connect_args={"timeout": patience_s}
    )
    event.listen(made, "connect", _on_connect)
    event.listen(made, "begin", _on_begin)
    return made


def require_file(path: str) -> None:
    """Raise when the database was removed while it was in use."""
    if _is_gone(path):
        raise EnvironmentUnusable(_gone(path))


def explain(path: str, problem: DBAPIError) -> str:
    """Return one line that says what is wrong and what to do."""
    said = str(problem.orig)
    if _is_gone(path):
        return _gone(path)
    if "locked" in said:
        return f"{path} is locked by another process; try again when that has ended"
    if "full" in said:
        return f"{path} cannot grow: the disk is full; free some space or choose another --store"
    if "readonly" in said or "unable to open" in said:
        return f"{path} cannot be written; choose another folder with --store"
    if "not a database" in said or "malformed" in said:
        return f"{path} is damaged or no results database ({said}); move it away"
    return f"{path}: {said}"


def _is_gone(path: str) -> bool:
    return path != str(IN_MEMORY) and not Path(path).exists()


def _gone(path: str) -> str:
    return f"{path} is gone: it was removed while it was in use"


def _on_connect(raw: Any, _record: object) -> None:
    # The driver's own transactions begin too late: read and write must see one state.
    raw.isolation_level = None
    raw.execute("PRAGMA foreign_keys = ON")


def _on_begin(connection: Connection) -> None:
    writes = connection.get_execution_options().get("loadstone_writes", False)
    # IMMEDIATE: two writers queue up here instead of failing in the middle.
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")
