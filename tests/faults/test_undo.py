"""What is written down to be undone, and Fernet keys."""

from pathlib import Path

import pytest

from loadstone.errors import EnvironmentUnusable
from loadstone.faults import keys
from loadstone.faults.journal import FILE, Undo, UndoJournal, UndoStep
from loadstone.faults.undo import undo_all
from loadstone.lab import processes


def test_what_is_to_be_undone_survives_the_process_that_did_it(tmp_path: Path) -> None:
    repository = tmp_path / "fernet"
    repository.mkdir()
    (repository / "0").write_text("staged")
    (repository / "1").write_text("primary")
    keys.copy(repository)
    UndoJournal(tmp_path).add(UndoStep(Undo.KEYS, str(repository), processes.boot_id()))
    keys.rotate(repository)
    assert (repository / "2").read_text() == "staged"
    assert (repository / "0").read_text() not in ("staged", "primary")
    assert undo_all(tmp_path) == (f"keys {repository}",)
    assert {path.name: path.read_text() for path in repository.iterdir()} == {
        "0": "staged",
        "1": "primary",
    }
    assert not (tmp_path / FILE).exists()
    assert undo_all(tmp_path) == ()


def test_a_rotation_keeps_three_keys(tmp_path: Path) -> None:
    repository = tmp_path / "fernet"
    repository.mkdir()
    for name in "012":
        (repository / name).write_text(name)
    keys.rotate(repository)
    assert sorted(path.name for path in repository.iterdir()) == ["0", "2", "3"]
    assert (repository / "3").read_text() == "0"
    assert (repository / "0").stat().st_mode & 0o777 == 0o600


def test_faults_of_an_earlier_boot_are_gone(tmp_path: Path) -> None:
    UndoJournal(tmp_path).add(UndoStep(Undo.CONTINUE, "uwsgi-1", "another boot"))
    assert undo_all(tmp_path) == ("continue uwsgi-1",)


def test_a_journal_that_cannot_be_read_is_said(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text("{")
    with pytest.raises(EnvironmentUnusable, match="lab down"):
        UndoJournal.read(tmp_path)
