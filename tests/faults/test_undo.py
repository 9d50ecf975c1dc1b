"""What is written down to be undone, and Fernet keys."""

from pathlib import Path

import pytest
from dead_owner import dead_owner

from loadstone.errors import EnvironmentUnusable
from loadstone.faults import keys
from loadstone.faults.journal import FaultTarget, Owner, Undo, UndoJournal
from loadstone.faults.undo import undo_pending


def journal_of(lab: Path) -> UndoJournal:
    return UndoJournal(lab.parent / "faults" / "lab.json", FaultTarget(lab))


def undone(journal: UndoJournal) -> list[str]:
    outcome = undo_pending(journal)
    assert not outcome.failed
    return [step.description for step in outcome.undone]


@pytest.mark.processes
def test_what_is_to_be_undone_survives_the_process_that_did_it(tmp_path: Path) -> None:
    repository = tmp_path / "fernet"
    repository.mkdir()
    (repository / "0").write_text("staged")
    (repository / "1").write_text("primary")
    keys.copy(repository)
    journal = journal_of(tmp_path)
    journal.note(Undo.KEYS, str(repository), dead_owner())
    keys.rotate(repository)
    assert (repository / "2").read_text() == "staged"
    assert (repository / "0").read_text() not in ("staged", "primary")
    assert undone(journal) == [f"keys {repository}"]
    assert {path.name: path.read_text() for path in repository.iterdir()} == {
        "0": "staged",
        "1": "primary",
    }
    assert not journal.path.exists()
    assert undone(journal) == []


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
    journal = journal_of(tmp_path)
    journal.note(Undo.CONTINUE, "uwsgi-1", Owner(1, 1, "another boot", ""))
    assert undone(journal) == ["continue uwsgi-1"]


def test_a_journal_that_cannot_be_read_is_said(tmp_path: Path) -> None:
    path = tmp_path / "lab.json"
    path.write_text("{")
    with pytest.raises(EnvironmentUnusable, match="lab down"):
        UndoJournal.at(path)
