"""Folders of stores that commands cannot read."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from loadstone.cli import loadstone
from loadstone.cli.stored import existing
from loadstone.store.location import read


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LOADSTONE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("LOADSTONE_CONFIG", "-")
    monkeypatch.delenv("LOADSTONE_STORE", raising=False)


def refused(*words: str) -> str:
    done = CliRunner().invoke(loadstone, ["results", "list", *words], standalone_mode=False)
    assert done.exception is not None, done.stdout
    return getattr(done.exception, "message", "") or str(done.exception)


def test_a_file_is_no_store_wherever_it_is_named(tmp_path: Path, monkeypatch) -> None:
    (tmp_path / "notes").write_text("")
    assert "notes is a file; name a folder" in refused("--store", "notes")
    monkeypatch.setenv("LOADSTONE_STORE", "notes")
    assert refused() == "notes is a file; name a folder with --store"
    monkeypatch.delenv("LOADSTONE_STORE")
    monkeypatch.setenv("LOADSTONE_HOME", str(tmp_path / "notes"))
    assert refused() == f"{tmp_path / 'notes'} is a file; name a folder with --store"


def test_a_folder_that_may_not_be_entered_is_named(tmp_path: Path, monkeypatch) -> None:
    exists = Path.exists

    def of_somebody_else(path: Path) -> bool:
        if path.is_relative_to("theirs") or path.is_relative_to(tmp_path / "home"):
            raise PermissionError(13, "Permission denied", str(path))
        return exists(path)

    monkeypatch.setattr(Path, "exists", of_somebody_else)
    assert refused("--store", "theirs") == "theirs: Permission denied"
    usual = tmp_path / "home/results"
    assert refused() == f"{usual}: Permission denied; choose another with --store"


def test_a_postgresql_store_can_be_read_without_the_folder_of_its_files(
    tmp_path: Path, monkeypatch
) -> None:
    (tmp_path / "files").mkdir()
    exists = Path.exists

    def below_a_folder_of_somebody_else(path: Path) -> bool:
        if path.parent == tmp_path / "files":
            raise PermissionError(13, "Permission denied", str(path))
        return exists(path)

    monkeypatch.setattr(Path, "exists", below_a_folder_of_somebody_else)
    location = read(f"postgresql://ann@db.example/results?files={tmp_path / 'files'}")
    assert existing(location) == location
