"""results.db: opened, brought to the present revision, its failures said in one line."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, create_engine, event, inspect, text
from sqlalchemy.exc import DatabaseError, IntegrityError

from loadstone.errors import EnvironmentUnusable
from loadstone.store.schema import REVISIONS

PATIENCE_S = 15.0  # how long another process may hold the database before we give up


def connect(path: Path, patience_s: float = PATIENCE_S) -> Engine:
    """Open the database, made or brought to the present revision where that is needed."""
    engine = create_engine(
        URL.create("sqlite", database=str(path)), connect_args={"timeout": patience_s}
    )
    event.listen(engine, "connect", _on_connect)
    event.listen(engine, "begin", _on_begin)
    try:
        _bring_up_to_date(engine, path)
    except BaseException:
        engine.dispose()
        raise
    return engine


@contextmanager
def reading(engine: Engine) -> Iterator[Connection]:
    """Give a connection that sees one state of the database."""
    with explained(engine), engine.begin() as connection:
        yield connection


@contextmanager
def writing(engine: Engine) -> Iterator[Connection]:
    """Give a connection whose changes are kept all together, or not at all."""
    with explained(engine), engine.connect() as bare:
        connection = bare.execution_options(loadstone_writes=True)
        with connection.begin():
            yield connection


@contextmanager
def explained(engine: Engine) -> Iterator[None]:
    """Turn what the database or the disk says into one line with the mend."""
    path = engine.url.database or ""
    try:
        yield
    except IntegrityError:
        raise  # two runs of one id, a trial of no finding: a bug, not the disk's fault
    except DatabaseError as problem:
        raise EnvironmentUnusable(_mend(path, str(problem.orig))) from problem
    except OSError as problem:
        where = problem.filename or path
        raise EnvironmentUnusable(f"cannot use {where}: {problem.strerror or problem}") from problem


def _mend(path: str, said: str) -> str:
    if "locked" in said:
        return f"{path} is locked by another process; try again when that has ended"
    if "full" in said:
        return f"{path} cannot grow: the disk is full; free some space or choose another --store"
    if "readonly" in said or "unable to open" in said:
        return f"{path} cannot be written; choose another folder with --store"
    if "not a database" in said or "malformed" in said:
        return f"{path} is damaged or no results database ({said}); move it away"
    return f"{path}: {said}"


def _on_connect(raw: Any, _record: object) -> None:
    # The driver's own transactions begin too late: read and write must see one state.
    raw.isolation_level = None
    raw.execute("PRAGMA foreign_keys = ON")


def _on_begin(connection: Connection) -> None:
    writes = connection.get_execution_options().get("loadstone_writes", False)
    # IMMEDIATE: two writers queue up here instead of failing in the middle.
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def _bring_up_to_date(engine: Engine, path: Path) -> None:
    with reading(engine) as connection:
        if _revision(connection, path) == REVISIONS[-1]:
            return
    with writing(engine) as connection:
        # Another process may have done it while this one waited for its turn.
        if _revision(connection, path) != REVISIONS[-1]:
            _upgrade(connection)


def _revision(connection: Connection, path: Path) -> str | None:
    tables = inspect(connection).get_table_names()
    if "alembic_version" not in tables:
        if tables:
            raise EnvironmentUnusable(
                f"{path} is a database of something else; choose another folder with --store"
            )
        return None
    found = connection.execute(text("SELECT version_num FROM alembic_version")).scalar()
    if found is not None and found not in REVISIONS:
        raise EnvironmentUnusable(
            f"{path} was written by a newer Loadstone (revision {found}, this one knows "
            f"{REVISIONS[-1]}); install that one or choose another folder with --store"
        )
    return found


def _upgrade(connection: Connection) -> None:
    from alembic import command
    from alembic.config import Config

    config = Config()
    folder = str(Path(__file__).parent / "migrations")
    config.set_main_option("script_location", folder.replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = connection
    command.upgrade(config, "head")
