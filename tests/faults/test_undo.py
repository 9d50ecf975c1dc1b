"""What is written down to be undone, and Fernet keys."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from dead_owner import dead_owner

from loadstone.errors import EnvironmentUnusable
from loadstone.faults import database, keys, pending, undo
from loadstone.faults.journal import FaultTarget, Owner, Undo, UndoJournal
from loadstone.faults.undo import undo_pending
from loadstone.lab import processes, state
from loadstone.lab.parts.postgres import STATEMENTS_ON
from loadstone.lab.state import DeploymentPhase, DeploymentState, Record


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


def test_an_upgrade_of_a_stopped_lab_is_finished_once_it_runs_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(undo, "PAUSES_S", ())
    lab = tmp_path / "two"
    known = (("release", "29.1.0"), ("nodes", "2"), ("database", "mariadb"))
    state.write(lab, DeploymentState("two", "run-1", DeploymentPhase.STOPPED, "", known))
    journal = journal_of(lab)
    journal.note(Undo.UPGRADE, "30.0.0", Owner(1, 1, "another boot", ""), "run-1")
    said = pending.describe_failed(journal, undo_pending(journal).failed)
    # With a setting given, the others would be the defaults: another database, one node.
    assert "start it as it was: loadstone lab up two\n" in said
    assert "by hand: loadstone lab up two, then loadstone fault --undo --lab two" in said


def test_a_journal_that_cannot_be_read_is_said(tmp_path: Path) -> None:
    path = tmp_path / "lab.json"
    path.write_text("{")
    with pytest.raises(EnvironmentUnusable, match="lab down"):
        UndoJournal.at(path)


@contextmanager
def waiting_for_hup() -> Iterator[subprocess.Popen[str]]:
    """Start a process that prints a line on SIGHUP."""
    code = (
        "import signal; signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGHUP});"
        "print('waits', flush=True); signal.sigwait({signal.SIGHUP}); print('reads', flush=True)"
    )
    with subprocess.Popen(
        (sys.executable, "-c", code), stdout=subprocess.PIPE, text=True
    ) as server:
        try:
            assert server.stdout is not None
            assert server.stdout.readline() == "waits\n"
            yield server
        finally:
            server.kill()


def lab_with_postgres(folder: Path, server: int | None = None) -> Path:
    """Return the configuration of a lab's PostgreSQL that counts statements."""
    record = Record(
        "postgres", None if server is None else processes.identify(server), signal.SIGINT, ()
    )
    known = (("database", "postgres"), ("workers", "1"))
    found = DeploymentState(
        "it", "run-1", DeploymentPhase.RUNNING, processes.boot_id(), known, records=(record,)
    )
    state.write(folder, found)
    tables = folder / "data" / "30.0.0-postgres" / "postgres-data"
    tables.mkdir(parents=True)
    conf = tables / database.POSTGRES_CONF
    conf.write_text(f"work_mem = 4MB\n{STATEMENTS_ON}\n")
    return conf


@pytest.mark.processes
def test_the_count_of_statements_is_undone_at_the_server_that_runs(tmp_path: Path) -> None:
    lab = tmp_path / "it"
    with waiting_for_hup() as server, waiting_for_hup() as stranger:
        conf = lab_with_postgres(lab, server.pid)
        # As an earlier server left it that was killed; another process has its number by now.
        (conf.parent / "postmaster.pid").write_text(f"{stranger.pid}\n")
        journal = journal_of(lab)
        journal.note(Undo.STATEMENTS, "postgres", dead_owner(), "run-1")
        assert undone(journal) == ["count no statements of postgres"]
        assert server.stdout is not None
        assert server.stdout.readline() == "reads\n"
        assert stranger.poll() is None
        stranger.terminate()
        assert stranger.wait() == -signal.SIGTERM  # it has not read anything and ended
    assert conf.read_text() == "work_mem = 4MB\n"


def test_a_database_without_its_data_is_said(tmp_path: Path) -> None:
    lab = tmp_path / "it"
    lab_with_postgres(lab).unlink()
    with pytest.raises(EnvironmentUnusable, match=r"postgresql\.auto\.conf"):
        database.set_read_only(lab, is_read_only=True)
