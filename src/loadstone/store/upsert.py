"""Upserts, whose form depends on the database."""

from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, Table

if TYPE_CHECKING:
    from sqlalchemy.dialects import postgresql, sqlite


def upsert(connection: Connection, table: Table, row: Mapping[str, Any]) -> None:
    """Insert a row, or update the row with its key."""
    # A trial that is stored again with a new verdict keeps its samples.
    kept = ("samples_file",) if row.get("samples_file", "") is None else ()
    changed = tuple(name for name in row if name not in (*table.primary_key.columns.keys(), *kept))
    connection.execute(_statement(connection.dialect.name, table, changed), dict(row))


@cache  # for a few tables; building a statement takes longer than carrying it out
def _statement(
    dialect: str, table: Table, changed: tuple[str, ...]
) -> "sqlite.Insert | postgresql.Insert":
    statement = _insert(dialect, table)
    key = [column.name for column in table.primary_key]
    values = {name: statement.excluded[name] for name in changed}
    return statement.on_conflict_do_update(index_elements=key, set_=values)


def _insert(dialect: str, table: Table) -> "sqlite.Insert | postgresql.Insert":
    if dialect == "postgresql":
        from sqlalchemy.dialects import postgresql

        return postgresql.insert(table)
    from sqlalchemy.dialects import sqlite

    return sqlite.insert(table)
