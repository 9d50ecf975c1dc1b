"""Connections to a store's database, its migration, and its errors as one line."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import Connection, Engine, inspect, text
from sqlalchemy.exc import DBAPIError, IntegrityError

from loadstone.errors import EnvironmentUnusable, StoreUnusable
from loadstone.store import postgresql, sqlite
from loadstone.store.location import StoreLocation, secrets, without_secrets
from loadstone.store.schema import REVISIONS

FILE = "results.db"
PATIENCE_S = 15.0  # how long to wait for another process that locks the database


def connect(location: StoreLocation, patience_s: float = PATIENCE_S) -> Engine:
    """Open the database; create it or migrate it to the current revision if needed."""
    if location.database is not None:
        return _opened(postgresql.engine(location.database, patience_s))
    return _opened(sqlite.engine(location.folder / FILE, patience_s))


def connect_to_read(location: StoreLocation) -> Engine:
    """Open the database as `connect` does; an absent one becomes an empty one in memory."""
    if location.database is None and not (location.folder / FILE).exists():
        return _opened(sqlite.engine(sqlite.IN_MEMORY, PATIENCE_S))
    return connect(location)


def known_secrets(engine: Engine) -> frozenset[str]:
    """Return the secrets of the database's URL and its password."""
    if not is_postgresql(engine):
        return frozenset()
    with reading(engine) as connection:
        return secrets(engine.url) | {postgresql.password(connection)}


def is_postgresql(engine: Engine) -> bool:
    """Return whether this is a PostgreSQL database and not a file in the store's folder."""
    return engine.dialect.name == "postgresql"


def is_in_memory(engine: Engine) -> bool:
    """Return whether this stands for a database that is absent."""
    return engine.url.database == str(sqlite.IN_MEMORY)


@contextmanager
def reading(engine: Engine) -> Iterator[Connection]:
    """Return a connection for reads, with one consistent snapshot."""
    with explained(engine), engine.begin() as connection:
        yield connection


@contextmanager
def writing(engine: Engine) -> Iterator[Connection]:
    """Return a connection whose changes are committed together, or not at all."""
    with explained(engine), engine.connect() as bare:
        connection = bare.execution_options(loadstone_writes=True)
        with connection.begin():
            yield connection


@contextmanager
def explained(engine: Engine) -> Iterator[None]:
    """Turn errors of the database or the disk into StoreUnusable with a remedy."""
    try:
        yield
    except IntegrityError:
        raise  # a duplicate run id or a missing parent row is a bug
    except DBAPIError as problem:
        explain = postgresql.explain if is_postgresql(engine) else sqlite.explain
        raise StoreUnusable(explain(name(engine), problem)) from problem
    except OSError as problem:
        if not is_postgresql(engine):
            sqlite.require_file(engine.url.database or "")
        where = problem.filename or name(engine)
        raise StoreUnusable(f"cannot use {where}: {problem.strerror or problem}") from problem


def name(engine: Engine) -> str:
    """Return the database's file or URL, for messages."""
    if is_postgresql(engine):
        return without_secrets(engine.url)
    return engine.url.database or ""


def _opened(engine: Engine) -> Engine:
    try:
        _bring_up_to_date(engine)
    except BaseException:
        engine.dispose()
        raise
    return engine


def _bring_up_to_date(engine: Engine) -> None:
    with reading(engine) as connection:
        if _revision(connection) == REVISIONS[-1]:
            return
    with writing(engine) as connection:
        if is_postgresql(engine):
            postgresql.lock_migration(connection)
        # Another process may have migrated while this one waited for the lock.
        if _revision(connection) != REVISIONS[-1]:
            upgrade(connection)


def _revision(connection: Connection) -> str | None:
    where = name(connection.engine)
    tables = inspect(connection).get_table_names()
    if "alembic_version" not in tables:
        if tables:
            raise EnvironmentUnusable(
                f"{where} is a database of something else; choose another with --store"
            )
        return None
    found = connection.execute(text("SELECT version_num FROM alembic_version")).scalar()
    if found is not None and found not in REVISIONS:
        raise EnvironmentUnusable(
            f"{where} was written by a newer Loadstone (revision {found}, this one knows "
            f"{REVISIONS[-1]}); install that one or choose another store with --store"
        )
    return found


def upgrade(connection: Connection, revision: str = "head") -> None:
    """Migrate the tables to a revision."""
    from alembic import command
    from alembic.config import Config

    config = Config()
    folder = str(Path(__file__).parent / "migrations")
    config.set_main_option("script_location", folder.replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = connection
    command.upgrade(config, revision)
