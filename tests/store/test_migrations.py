from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory

import loadstone.store
from loadstone.errors import EnvironmentUnusable
from loadstone.store import Store
from loadstone.store.schema import REVISIONS, metadata


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


def test_a_database_of_a_newer_version_is_refused_and_left_alone(tmp_path):
    with Store.open(tmp_path) as store, store._engine.begin() as connection:
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = '9999'")
    before = (tmp_path / "results.db").read_bytes()
    with pytest.raises(EnvironmentUnusable, match=r"newer Loadstone \(revision 9999"):
        Store.open(tmp_path)
    assert (tmp_path / "results.db").read_bytes() == before


def test_a_database_of_something_else_is_refused(tmp_path):
    import sqlite3

    with sqlite3.connect(tmp_path / "results.db") as other:
        other.execute("CREATE TABLE songs (title TEXT)")
    other.close()
    with pytest.raises(EnvironmentUnusable, match="of something else"):
        Store.open(tmp_path)


def test_a_present_database_is_opened_without_alembic(tmp_path):
    import subprocess
    import sys

    code = (
        "import sys\nfrom pathlib import Path\nfrom loadstone.store import Store\n"
        "Store.open(Path(sys.argv[1])).close()\nprint('alembic' in sys.modules)"
    )
    said = [
        subprocess.run(
            [sys.executable, "-c", code, tmp_path], check=True, capture_output=True, text=True
        ).stdout.strip()
        for _ in range(2)
    ]
    assert said == ["True", "False"]
