"""Upserts, whose form depends on the database."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, Table

if TYPE_CHECKING:
    from sqlalchemy.dialects import postgresql, sqlite


def upsert(connection: Connection, table: Table, row: Mapping[str, Any]) -> None:
    """Insert a row, or update the row with its key."""
    statement = _insert(connection, table).values(dict(row))
    changed = {name: statement.excluded[name] for name in row if name not in table.primary_key}
    if row.get("samples_file", "") is None:
        # A trial that is stored again with a new verdict keeps its samples.
        del changed["samples_file"]
    key = [column.name for column in table.primary_key]
    connection.execute(statement.on_conflict_do_update(index_elements=key, set_=changed))


def _insert(connection: Connection, table: Table) -> "sqlite.Insert | postgresql.Insert":
    if connection.dialect.name == "postgresql":
        from sqlalchemy.dialects import postgresql

        return postgresql.insert(table)
    from sqlalchemy.dialects import sqlite

    return sqlite.insert(table)
