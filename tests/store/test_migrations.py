import os
import subprocess
import sys
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory

import loadstone.store
from loadstone.errors import EnvironmentUnusable
from loadstone.store import database, location, postgresql, sqlite
from loadstone.store.schema import REVISIONS, metadata
from loadstone.store.store import Store


def test_the_migrations_end_in_the_tables_that_the_code_uses(store):
    with store._engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert compare_metadata(context, metadata) == []


def test_the_list_of_revisions_is_the_folder_of_migrations():
    config = Config()
    folder = Path(loadstone.store.__file__).parent / "migrations"
    config.set_main_option("script_location", str(folder))
    config.set_main_option("path_separator", "os")
    script = ScriptDirectory.from_config(config)
    assert [r.revision for r in reversed(list(script.walk_revisions()))] == list(REVISIONS)


def test_a_database_of_a_newer_version_is_refused_and_left_alone(place):
    with Store.open(place) as store, database.writing(store._engine) as connection:
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = '9999'")
    with pytest.raises(EnvironmentUnusable, match=r"newer Loadstone \(revision 9999"):
        Store.open(place)
    with database.reading(store._engine) as connection:
        found = connection.exec_driver_sql("SELECT version_num FROM alembic_version").scalar()
    assert found == "9999"
    store.close()


def test_a_database_of_something_else_is_refused(place):
    place.folder.mkdir()
    with database.writing(_engine(place)) as connection:
        connection.exec_driver_sql("CREATE TABLE songs (title TEXT)")
    connection.engine.dispose()
    with pytest.raises(EnvironmentUnusable, match="of something else"):
        Store.open(place)


def _engine(place):
    if place.database is None:
        return sqlite.engine(place.folder / database.FILE, 1.0)
    return postgresql.engine(place.database, 1.0)


@pytest.mark.processes
def test_a_present_database_is_opened_without_alembic(spoken):
    code = (
        "import sys\nfrom loadstone.store import location, store\n"
        "store.Store.open(location.usual()).close()\nprint('alembic' in sys.modules)"
    )
    said = [
        subprocess.run(
            [sys.executable, "-c", code],
            env=os.environ | {location.VARIABLE: spoken},
            check=True,
            capture_output=True,
            text=True,
        ).stdout.strip()
        for _ in range(2)
    ]
    assert said == ["True", "False"]
