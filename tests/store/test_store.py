import errno
import os
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest
from made_stats import nothing_ended, with_errors
from made_workloads import workload
from realistic import keystone
from sqlalchemy import event

from loadstone.analysis.model import Trial, TrialState
from loadstone.analysis.sla import Check
from loadstone.errors import EnvironmentUnusable, InvalidInput
from loadstone.result.model import Run
from loadstone.store import codec, database, location, owner
from loadstone.store.store import Store

RESULT, SAMPLES = keystone()


def assert_same(left: object, right: object) -> None:
    # Columns have no single truth value, NaN is no equal of itself: compare what is written.
    assert type(left) is type(right)
    assert codec.dumps(left) == codec.dumps(right)


def bare(result: Run) -> Run:
    """The result as it stands when the run begins: what is to be measured, nothing measured."""
    found = (replace(f, capacity=None, trials=()) for f in result.measurements)
    return replace(result, status="running", ended_at=None, measurements=tuple(found))


def keep(store: Store, result: Run = RESULT) -> Run:
    """Keep a run as the flow does it: begin, each trial, each finding, the end."""
    store.begin(bare(result))
    kept = []
    for index, finding in enumerate(result.measurements):
        trials = tuple(
            store.keep_trial(result.run_id, index, trial, SAMPLES[index, trial.number])
            for trial in finding.trials
        )
        kept.append(replace(finding, trials=trials))
        store.keep_measurement(result.run_id, index, kept[-1])
    store.finish(replace(result, measurements=tuple(kept)))
    return replace(result, measurements=tuple(kept))


def test_what_is_kept_comes_back_as_it_was(store):
    kept = keep(store)
    assert_same(store.get(RESULT.run_id), kept)


def test_the_samples_of_a_trial_come_back_to_the_microsecond(store):
    keep(store)
    trial = store.get("latest").measurements[0].trials[2]
    read = store.samples(RESULT.run_id, trial)
    for field in fields(read):
        column, original = getattr(read, field.name), getattr(SAMPLES[0, 3], field.name)
        assert column.dtype == original.dtype
        assert np.max(np.abs(column.astype(np.int64) - original.astype(np.int64))) <= 1000


def test_a_trial_without_a_number_stays_without_one(store):
    finding = RESULT.measurements[0]
    trial = replace(
        finding.trials[0],
        usage=None,
        rate_rps=None,
        stats=with_errors(nothing_ended(finding.trials[0].stats), ("refused", 9)),
    )
    store.begin(bare(RESULT))
    store.keep_trial(RESULT.run_id, 0, trial, None)
    back = store.get("latest").measurements[0].trials[0]
    assert np.isnan(back.stats.total.p99_s)
    assert_same(back, trial)


@pytest.mark.processes
def test_a_run_killed_between_two_trials_keeps_the_first(place, spoken):
    script = """if True:
        import os, signal, sys
        sys.path.insert(0, sys.argv[1])
        from realistic import keystone
        from loadstone.store import location
        from loadstone.store.store import Store
        from dataclasses import replace
        result, samples = keystone()
        store = Store.open(location.usual())
        empty = tuple(replace(f, capacity=None, trials=()) for f in result.measurements)
        store.begin(replace(result, status="running", ended_at=None, measurements=empty))
        store.keep_trial(result.run_id, 0, result.measurements[0].trials[0], samples[0, 1])
        os.kill(os.getpid(), signal.SIGKILL)
    """
    tests = os.path.join(os.path.dirname(os.path.dirname(__file__)), "support")
    died = subprocess.run(
        [sys.executable, "-c", script, tests],
        env=os.environ | {location.VARIABLE: spoken},
        check=False,
    )
    assert died.returncode == -signal.SIGKILL
    with Store.open(place) as store:
        result = store.get("latest")
        assert result.status == "interrupted"
        assert "killed" in result.failure
        (trial,) = result.measurements[0].trials
        assert len(store.samples(result.run_id, trial)) == trial.stats.due
        assert store.delete("latest") == result.run_id


def test_a_trial_judged_anew_at_the_end_keeps_its_samples(store):
    keep(store)
    finding = RESULT.measurements[0]
    verdict = replace(finding.trials[2].verdict, state=TrialState.UNDECIDED)
    trials = (*finding.trials[:2], replace(finding.trials[2], verdict=verdict), *finding.trials[3:])
    findings = (replace(finding, trials=trials), RESULT.measurements[1])
    store.finish(replace(RESULT, measurements=findings))
    trial = store.get("latest").measurements[0].trials[2]
    assert trial.verdict.state is TrialState.UNDECIDED
    assert len(store.samples(RESULT.run_id, trial)) == trial.stats.due


def test_a_run_is_found_by_a_prefix_that_only_one_has(store):
    later = replace(RESULT, run_id="20261122-1000-cd34ef", started_at="2026-11-22T10:00:00Z")
    store.begin(RESULT)
    store.begin(later)
    assert store.get("20261122").run_id == later.run_id
    assert store.get("latest").run_id == later.run_id
    assert [entry.run_id for entry in store.every()] == [later.run_id, RESULT.run_id]
    with pytest.raises(InvalidInput, match="could be 20261122-1000-cd34ef, 20261121-0931-ab12cd"):
        store.get("202611")


def test_an_unknown_run_is_answered_with_one_that_is_alike(store):
    with pytest.raises(InvalidInput, match="holds no results yet"):
        store.get("latest")
    store.begin(RESULT)
    with pytest.raises(InvalidInput, match="did you mean 20261121-0931-ab12cd"):
        store.get("20261121-0931-ab12ce")


def test_the_list_gives_each_run_in_short(store):
    keep(store)
    (entry,) = store.every()
    assert (entry.kind, entry.status, entry.trials) == ("demo", "finished", 8)
    assert [(f.scenario, f.rate_rps) for f in entry.findings] == [
        ("Authenticate.keystone", 7.19),
        ("Authenticate.validate_token", 46.3),
    ]


def test_a_run_during_which_the_clock_was_set_back_has_no_duration(store):
    store.begin(replace(RESULT, ended_at="2000-01-01T00:00:00+00:00"))
    [entry] = store.every()
    assert entry.duration_s is None


def test_a_search_without_an_end_is_listed_as_running_or_interrupted(store, monkeypatch):
    one = replace(RESULT.measurements[0], status="running", capacity=None, trials=())
    running = replace(RESULT, status="running", ended_at=None, measurements=(one,))
    store.begin(running)
    monkeypatch.setattr(owner, "this_process", lambda: f"{socket.gethostname()}:1:0")
    store.begin(replace(running, run_id="20261120-0931-ab12cd", started_at="2026-11-20T09:31:07Z"))
    found = [entry.findings[0] for entry in store.every()]
    assert [one.is_running for one in found] == [True, False]
    assert [one.is_interrupted for one in found] == [False, True]


def test_a_workload_that_was_cut_off_has_neither_held_nor_failed(store):
    held = workload(SAMPLES[0, 1], (Check("failure_rate", True, ""),))
    cut = replace(held, status="interrupted")
    failed = replace(cut, failure="no such role")
    store.begin(replace(RESULT, kind="task", measurements=(held, cut, failed)))
    [entry] = store.every()
    assert [one.pass_sla for one in entry.performed] == [True, None, False]
    assert [one.pass_sla for one in store.history()] == [True, None, False]


def test_a_load_that_was_not_made_is_listed_as_a_load_without_a_throughput(store):
    fixed = replace(RESULT.measurements[0], policy="fixed", capacity=None, trials=())
    store.begin(replace(RESULT, measurements=(fixed, RESULT.measurements[1])))
    [entry] = store.every()
    found = [(one.load, one.stretch_rps) for one in entry.findings]
    assert found == [("fixed load", None), ("", None)]


def test_delete_removes_rows_and_files(store):
    keep(store)
    folder = store.folder(RESULT.run_id)
    assert (folder / "samples").is_dir()
    store.delete("latest")
    assert store.every() == []
    assert not folder.exists()


def test_a_run_on_a_full_disk_is_deleted_as_its_files_make_room(tmp_path):
    with Store.open(tmp_path) as store:
        keep(store)
        folder = store.folder(RESULT.run_id)

        def execute(_connection, _cursor, statement, *_):
            if statement.startswith("DELETE") and folder.exists():
                raise sqlite3.OperationalError("database or disk is full")

        event.listen(store._engine, "before_cursor_execute", execute)
        store.delete("latest")
        assert store.every() == []


def test_a_run_whose_files_cannot_be_removed_stays_in_the_list(tmp_path, monkeypatch):
    with Store.open(tmp_path) as store:
        keep(store)

        def rmtree(folder):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(folder))

        monkeypatch.setattr(shutil, "rmtree", rmtree)
        with pytest.raises(EnvironmentUnusable, match="Permission denied"):
            store.delete("latest")
        [entry] = store.every()
        assert entry.run_id == RESULT.run_id


def test_a_run_that_is_being_measured_is_not_deleted(store):
    store.begin(bare(RESULT))
    with pytest.raises(InvalidInput, match="is being measured"):
        store.delete("latest")


def test_two_processes_use_one_store(place):
    with Store.open(place) as one, Store.open(place) as other:
        one.begin(bare(RESULT))
        other.begin(bare(replace(RESULT, run_id="20261121-0932-ffffff")))
        one.keep_trial(RESULT.run_id, 0, RESULT.measurements[0].trials[0], None)
        assert len(other.every()) == 2
        assert len(other.get(RESULT.run_id).measurements[0].trials) == 1


@pytest.mark.processes
def test_processes_that_make_one_store_at_the_same_moment_lose_nothing(place, spoken):
    script = """if True:
        import sys
        from dataclasses import replace
        sys.path.insert(0, sys.argv[1])
        from realistic import keystone
        from loadstone.store import location
        from loadstone.store.store import Store
        result, _ = keystone()
        result = replace(result, run_id=f"20261121-0931-{sys.argv[2]}")
        sys.stdin.readline()
        with Store.open(location.usual()) as store:
            store.begin(replace(result, status="running", measurements=result.measurements[1:]))
            for number in range(10, 20):
                trial = replace(result.measurements[1].trials[0], number=number)
                store.keep_trial(result.run_id, 0, trial, None)
    """
    tests = Path(__file__).parents[1] / "support"
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", script, tests, str(i)],
            stdin=subprocess.PIPE,
            env=os.environ | {location.VARIABLE: spoken},
        )
        for i in range(3)
    ]
    for process in processes:
        process.stdin.write(b"go\n")
        process.stdin.flush()
    for process in processes:
        process.communicate()
        assert process.returncode == 0
    with Store.open(place) as store:
        assert [entry.trials for entry in store.every()] == [13, 13, 13]


def test_a_locked_database_is_named(tmp_path):
    with Store.open(tmp_path, patience_s=0.05) as store:
        holder = sqlite3.connect(tmp_path / "results.db", isolation_level=None)
        holder.execute("BEGIN EXCLUSIVE")
        with pytest.raises(EnvironmentUnusable, match="locked by another process"):
            store.begin(bare(RESULT))
        assert not store.folder(RESULT.run_id).exists()
        holder.close()
        store.begin(bare(RESULT))


def test_a_full_disk_is_named_and_loses_nothing(tmp_path):
    with Store.open(tmp_path) as store:
        store.begin(bare(RESULT))
        trial = RESULT.measurements[0].trials[0]
        store.keep_trial(RESULT.run_id, 0, trial, None)
        with store._engine.connect() as connection:
            pages = connection.exec_driver_sql("PRAGMA page_count").scalar_one()
            connection.exec_driver_sql(f"PRAGMA max_page_count = {pages}")
        large = replace(trial, number=2, purpose="long" * 50_000)
        with pytest.raises(EnvironmentUnusable, match="disk is full"):
            store.keep_trial(RESULT.run_id, 0, large, None)
        assert store.get("latest").measurements[0].trials[0].number == 1


def test_a_folder_that_cannot_be_made_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(EnvironmentUnusable, match=r"cannot hold results.*--store"):
        Store.open(tmp_path / "file" / "store")


@pytest.fixture
def readable_only():
    """A folder with a run in it that this process may read and not write."""
    folder = Path(tempfile.mkdtemp())
    with Store.open(folder) as store:
        store.begin(replace(RESULT, status="finished"))
    is_root = os.geteuid() == 0
    folder.chmod(0o755 if is_root else 0o555)
    if is_root:  # to whom every folder is writable
        for path in folder.rglob("*"):
            path.chmod(0o755 if path.is_dir() else 0o644)
        os.seteuid(65534)
    yield folder
    if is_root:
        os.seteuid(0)
    folder.chmod(0o755)
    shutil.rmtree(folder)


def test_a_store_that_cannot_be_written_can_still_be_read(readable_only):
    with Store.open(readable_only) as store:
        assert store.get("latest").run_id == RESULT.run_id
        with pytest.raises(EnvironmentUnusable, match=r"--store|Permission"):
            store.begin(replace(RESULT, run_id="20261121-0932-ffffff"))


def test_what_is_no_database_is_named_and_left_alone(tmp_path):
    (tmp_path / "results.db").write_text("notes of my own, and quite long enough to look at " * 20)
    with pytest.raises(EnvironmentUnusable, match="is not a database of results"):
        Store.open(tmp_path)
    assert (tmp_path / "results.db").read_text().startswith("notes of my own")


def test_samples_that_are_gone_are_named(store):
    keep(store)
    trial: Trial = store.get("latest").measurements[0].trials[0]
    (store.folder(RESULT.run_id) / trial.samples_file).unlink()
    with pytest.raises(EnvironmentUnusable, match=r"1-001\.parquet is missing"):
        store.samples(RESULT.run_id, trial)


def test_texts_keep_all_but_characters_that_postgresql_refuses(store):
    title = "nul \0, quote ' and \N{SNOWMAN}"
    store.begin(replace(RESULT, title=title, failure="\0"))
    result = store.get("latest")
    assert result.title == title.replace("\0", "\N{REPLACEMENT CHARACTER}")


def test_a_run_of_another_machine_is_deleted_by_force_only(store):
    store.begin(bare(RESULT))
    with database.writing(store._engine) as connection:
        connection.exec_driver_sql("UPDATE runs SET owner = 'far-away:1:2'")
    assert store.get("latest").status == "running"
    with pytest.raises(InvalidInput, match=r"measured on far-away.*--force"):
        store.delete("latest")
    store.delete("latest", is_forced=True)
    assert store.every() == []


def test_a_run_that_is_measured_here_is_not_deleted_by_force(store):
    store.begin(bare(RESULT))
    with pytest.raises(InvalidInput, match=r"is being measured; end it first \(Ctrl-C\)$"):
        store.delete("latest", is_forced=True)


@pytest.mark.parametrize("run_id", ["../elsewhere", "/etc", "..", ".hidden", "a/b", ""])
def test_what_is_no_id_of_a_run_leads_to_no_folder(store, run_id: str) -> None:
    with pytest.raises(InvalidInput, match="is not a run id"):
        store.folder(run_id)
