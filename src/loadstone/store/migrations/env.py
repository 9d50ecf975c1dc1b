"""Alembic's environment; the connection comes from `loadstone.store.database`, in a transaction."""

from alembic import context
from sqlalchemy import Connection

from loadstone.store.schema import metadata

connection: Connection = context.config.attributes["connection"]
context.configure(connection=connection, target_metadata=metadata, render_as_batch=True)
with context.begin_transaction():
    context.run_migrations()
