"""Data of PostgreSQL that another major version has made."""

from pathlib import Path

import pytest

from loadstone.errors import EnvironmentUnusable
from loadstone.lab.keystone.schema import COMPLETE, Schema
from loadstone.lab.parts.postgres import Postgres
from loadstone.lab.parts.server import Site
from loadstone.lab.programs import Program


def data_of(version: str, data: Path) -> Postgres:
    (data / "postgres-data").mkdir(parents=True)
    (data / "postgres-data" / "PG_VERSION").write_text(f"{version}\n")
    return Postgres(Site(data.parent / "mine", 15000), data, "secret")


@pytest.mark.parametrize(
    ("made", "installed", "is_readable"),
    [
        ("15", "15.8", True),
        ("15", "17.1", False),
        ("9.6", "9.6.24", True),
        ("1", "15.8", False),
        ("18", "?", True),
    ],
)
def test_data_are_read_by_the_same_major_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, made: str, installed: str, is_readable: bool
) -> None:
    monkeypatch.setattr(Program, "version", lambda *_: installed)
    assert data_of(made, tmp_path / "data").is_readable() is is_readable


def test_a_lab_of_another_version_is_refused_with_the_way_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Program, "version", lambda *_: "17.1")
    with pytest.raises(EnvironmentUnusable, match=r"15, which 17.1 .*lab down mine --purge"):
        data_of("15", tmp_path / "data").prepare(print)


def test_a_template_of_another_version_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Program, "version", lambda *_: "17.1")
    template = tmp_path / "templates" / "30.0.0-postgres"
    data_of("15", template / "data")
    (template / COMPLETE).touch()
    made: list[Path] = []

    def make(_: object, database: Postgres, __: object) -> None:
        made.append(database.data)
        database.data.mkdir(parents=True)

    monkeypatch.setattr(Schema, "_make", make)
    site = Site(tmp_path, 15000)
    own = Postgres(site, tmp_path / "data", "secret")
    schema = Schema(
        *(own, template, lambda data: Postgres(site, data, "secret")),
        *(lambda *_: None, tmp_path / "log"),
    )
    schema.prepare(lambda _: None)
    assert made == [template / "data"]
    assert own.data.exists()
    assert not (own.data / "postgres-data").exists()
