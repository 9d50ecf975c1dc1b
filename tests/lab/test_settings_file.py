from pathlib import Path

import pytest

from loadstone.errors import InvalidInput
from loadstone.lab.keystone import settings
from loadstone.lab.keystone.settings import DatabaseBackend
from loadstone.lab.keystone.settings_file import read_file


def written(folder: Path, text: str) -> Path:
    path = folder / "lab.yaml"
    path.write_text(text)
    return path


def test_a_file_says_the_same_as_the_command_line(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        "database: mariadb\nworkers: 3\nconf:\n  token: {expiration: 60}\n  cache: {debug: true}\n",
    )
    chosen = settings.read([*read_file(path), ("workers", "4")])
    assert chosen.database is DatabaseBackend.MARIADB
    assert chosen.workers == 4
    assert chosen.conf == (("token", "expiration", "60"), ("cache", "debug", "true"))


def test_a_number_counts_as_it_is_written(tmp_path: Path) -> None:
    path = written(tmp_path, "workers: 010\nthreads: 2\nconf: {token: {expiration: 0o17}}\n")
    pairs = (("workers", "010"), ("threads", "2"), ("conf.token.expiration", "0o17"))
    assert read_file(path) == pairs
    with pytest.raises(InvalidInput, match="workers must be a whole number"):
        read_file(written(tmp_path, "workers: 1:30\n"))


@pytest.mark.parametrize(
    "text", ["", "- workers", "workers: [1]", "conf: 3", "conf: {token: 3}", "workers: {", "a: \0"]
)
def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, text: str) -> None:
    path = written(tmp_path, text)
    with pytest.raises(InvalidInput, match=r"lab\.yaml(:1)?: "):
        settings.read(read_file(path))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            "workers: 2\nworkerz: 4\n",
            ":2: the lab has no setting 'workerz'; did you mean 'workers'",
        ),
        ("workers: 2\nthreads: many\n", ":2: threads must be a whole number"),
        ("conf:\n  token:\n    expiration: [1]\n", ":3: conf.token.expiration must be one value"),
        (
            "conf:\n  ldap:\n    password: [Secret1]\n",
            ":3: conf.ldap.password must be one value, not [*]{3}",
        ),
        ("conf:\n  token: 3\n", ":1: conf must be sections of options"),
    ],
)
def test_a_mistake_has_its_line(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(InvalidInput, match=says):
        read_file(written(tmp_path, text))


def test_folders_of_another_machine_are_not_looked_for(tmp_path: Path) -> None:
    path = written(tmp_path, "release: /none/keystone\nstorage: /none\n")
    assert read_file(path) == (("release", "/none/keystone"), ("storage", "/none"))


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="No such file"):
        read_file(tmp_path / "none.yaml")
