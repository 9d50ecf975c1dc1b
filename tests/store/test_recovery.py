"""Results that a locked database cannot take, ids that lead elsewhere, permissions."""

import os
import socket
import sqlite3
import stat
import subprocess
from dataclasses import replace

import pytest
from realistic import keystone

from loadstone.errors import EnvironmentUnusable
from loadstone.lab import processes
from loadstone.store import codec, owner
from loadstone.store.store import RunDamaged, Store

RESULT, _ = keystone()
TRIAL = RESULT.measurements[0].trials[0]
EMPTY = tuple(replace(one, capacity=None, trials=()) for one in RESULT.measurements)


def test_a_trial_that_a_locked_database_refuses_is_brought_in_later(tmp_path):
    told = []
    with Store.open(tmp_path, patience_s=0.05) as store:
        going_on = store.hiding((), told.append)
        going_on.begin(replace(RESULT, status="running", ended_at=None, measurements=EMPTY))
        holder = sqlite3.connect(tmp_path / "results.db", isolation_level=None)
        holder.execute("BEGIN EXCLUSIVE")
        going_on.keep_trial(RESULT.run_id, 0, TRIAL)
        going_on.finish(replace(RESULT, measurements=()))
        assert len(told) == 1
        assert len(store.get(RESULT.run_id).measurements[0].trials) == 1
        holder.close()
    with Store.open(tmp_path) as later:
        assert "1 trial" in later.notices[0]
        assert later.get("latest").status == RESULT.status
        assert len(later.get("latest").measurements[0].trials) == 1
        assert not [one for one in later.recover() if one.is_news]


def test_the_rows_of_two_runs_follow_also_after_a_second_lock(tmp_path, monkeypatch):
    a = replace(RESULT, status="running", ended_at=None, measurements=EMPTY)
    b = replace(a, run_id=f"{RESULT.run_id}b")
    with Store.open(tmp_path, patience_s=0.05) as store:
        going_on = store.hiding((), lambda _line: None)
        going_on.begin(a)
        going_on.begin(b)
        holder = sqlite3.connect(tmp_path / "results.db", isolation_level=None)
        holder.execute("BEGIN EXCLUSIVE")
        going_on.keep_trial(b.run_id, 0, TRIAL)
        holder.execute("ROLLBACK")
        going_on.finish(replace(a, status="finished", measurements=()))
        holder.execute("BEGIN EXCLUSIVE")
        going_on.keep_trial(b.run_id, 0, replace(TRIAL, number=TRIAL.number + 1))
        holder.close()
    monkeypatch.setattr(owner, "is_alive", lambda _owner: False)  # killed
    with Store.open(tmp_path) as later:
        assert later.notices == (f"recovered of run {b.run_id}: 1 trial",)
        assert len(later.get(b.run_id).measurements[0].trials) == 2


def test_the_measurements_of_a_run_that_is_only_in_files_keep_their_order(tmp_path):
    many = tuple(replace(EMPTY[0], title=f"workload {number}") for number in range(1, 12))
    with Store.open(tmp_path, patience_s=0.05) as store:
        going_on = store.hiding((), lambda _line: None)
        going_on.begin(replace(RESULT, status="running", ended_at=None, measurements=()))
        holder = sqlite3.connect(tmp_path / "results.db", isolation_level=None)
        holder.execute("BEGIN EXCLUSIVE")
        for index, measurement in enumerate(many):
            going_on.keep_measurement(RESULT.run_id, index, measurement)
        assert store.get(RESULT.run_id).measurements == many
        holder.close()


def test_rows_are_not_brought_into_a_database_that_is_not_kept(tmp_path, monkeypatch):
    running = replace(RESULT, status="running", ended_at=None, measurements=EMPTY)
    with Store.open(tmp_path) as store, monkeypatch.context() as killed:
        killed.setattr(owner, "this_process", lambda: f"{socket.gethostname()}:1:0")
        store.begin(running)
    (tmp_path / "results.db").unlink()
    with Store.open_to_read(tmp_path) as absent:
        assert absent.every() == []
    with Store.open(tmp_path) as later:
        assert RESULT.run_id in later.notices[0]
        assert later.get("latest").run_id == RESULT.run_id


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE runs SET environment = '[]'",
        "UPDATE measurements SET body = '{'",
        "UPDATE trials SET body = '[]'",
    ],
)
def test_damaged_rows_are_restored_from_their_files(tmp_path, damage):
    with Store.open(tmp_path) as store:
        store.begin(RESULT)
        before = codec.dumps(store.get("latest"))
        database = sqlite3.connect(tmp_path / "results.db")
        with database:
            database.execute(damage)
        database.close()
        with pytest.raises(RunDamaged) as refused:
            store.get("latest")
        assert f"'{RESULT.run_id}' cannot be read: " in str(refused.value)
        assert f"loadstone results recover --store {tmp_path};" in str(refused.value)
        assert [one.run_id for one in store.recover() if one.is_news] == [RESULT.run_id]
        assert codec.dumps(store.get("latest")) == before
        assert not [one for one in store.recover() if one.is_news]


def test_a_damaged_database_that_is_moved_away_is_restored_from_files(tmp_path):
    with Store.open(tmp_path) as store:
        store.begin(RESULT)
        before = codec.dumps(store.get("latest"))
    (tmp_path / "results.db").write_bytes(b"no database" * 500)
    with pytest.raises(EnvironmentUnusable, match="move it away, and `loadstone results recover`"):
        Store.open(tmp_path)
    (tmp_path / "results.db").unlink()
    with Store.open(tmp_path) as store:
        store.recover()
        assert codec.dumps(store.get("latest")) == before


def test_delete_follows_neither_an_id_nor_a_link_out_of_the_store(tmp_path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "mine").write_text("")
    with Store.open(tmp_path / "store") as store:
        store.begin(replace(RESULT, measurements=()))
        folder = store.folder(RESULT.run_id)
        folder.rename(tmp_path / "moved")
        folder.symlink_to(elsewhere)
        with pytest.raises(EnvironmentUnusable, match="symbolic link"):
            store.delete(RESULT.run_id)
        folder.unlink()
        database = sqlite3.connect(tmp_path / "store/results.db")
        with database:
            database.execute("UPDATE runs SET run_id = '../../elsewhere'")
        database.close()
        assert store.delete("../../elsewhere") == "../../elsewhere"
    assert (elsewhere / "mine").exists()


def test_a_damaged_run_is_left_out_of_the_list_and_named(tmp_path):
    with Store.open(tmp_path) as store:
        store.begin(replace(RESULT, measurements=()))
        store.begin(replace(RESULT, run_id="bad", started_at="yesterday", measurements=()))
        assert [one.run_id for one in store.every()] == [RESULT.run_id]
        assert "'bad' is left out" in store.notices[0]


def test_a_run_whose_owner_is_damaged_is_deleted_as_the_list_says(tmp_path):
    with Store.open(tmp_path) as store:
        store.begin(replace(RESULT, status="running", ended_at=None, measurements=()))
        database = sqlite3.connect(tmp_path / "results.db")
        with database:
            database.execute("UPDATE runs SET owner = 'nobody'")
        database.close()
        assert store.every() == []
        [notice] = store.notices
        assert notice.endswith(f"loadstone results delete {RESULT.run_id} --store {tmp_path}")
        assert store.delete(RESULT.run_id) == RESULT.run_id
        assert store.every() == []


@pytest.mark.processes
def test_a_process_that_nobody_has_waited_for_is_not_at_work(tmp_path, monkeypatch):
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as ended, Store.open(tmp_path) as store:
        ticks = processes.identify(ended.pid).started_ticks
        name = f"{socket.gethostname()}:{ended.pid}:{ticks}"
        monkeypatch.setattr(owner, "this_process", lambda: name)
        store.begin(replace(RESULT, status="running", ended_at=None, measurements=()))
        assert store.get(RESULT.run_id).status == "running"
        ended.stdin.close()
        os.waitid(os.P_PID, ended.pid, os.WEXITED | os.WNOWAIT)
        assert store.get(RESULT.run_id).status == "interrupted"
        assert store.delete(RESULT.run_id) == RESULT.run_id


def test_an_open_store_is_closed_at_the_next_start(tmp_path):
    folder = tmp_path / "store"
    with Store.open(folder) as store:
        store.begin(replace(RESULT, measurements=()))
    for journal in ("studies/one/cells.jsonl", "tunings/one/comparisons.jsonl"):
        (folder / journal).parent.mkdir(parents=True)
        (folder / journal).write_text("")
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)
    with Store.open(folder) as store:
        assert "other users could read" in store.notices[0]
    for path in (folder, *folder.rglob("*")):
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600)


def test_permissions_that_cannot_be_changed_are_not_said_to_be(tmp_path, monkeypatch):
    Store.open(tmp_path / "store").close()
    (tmp_path / "store").chmod(0o755)

    def refuse(*_):
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr("pathlib.Path.chmod", refuse)
    with Store.open_to_read(tmp_path / "store") as store:
        assert store.notices == ()


def test_a_folder_of_runs_that_are_not_loadstones_keeps_its_permissions(tmp_path):
    others = tmp_path / "runs/model-1"
    others.mkdir(parents=True)
    program = others / "train.sh"
    program.write_text("")
    for path in (tmp_path, tmp_path / "runs", others, program):
        path.chmod(0o755)
    with Store.open_to_read(tmp_path) as store:
        assert store.notices == ()
    with Store.open(tmp_path) as store:
        store.begin(replace(RESULT, measurements=()))
        own = store.folder(RESULT.run_id)
        own.chmod(0o755)
    with Store.open(tmp_path) as store:
        assert store.notices
    assert stat.S_IMODE(own.stat().st_mode) == 0o700
    for path in (tmp_path, tmp_path / "runs", others, program):
        assert stat.S_IMODE(path.stat().st_mode) == 0o755


@pytest.mark.parametrize("name", ["studies/run.sh", "tunings/mine/notes", "unrecorded/list.txt"])
def test_files_that_are_not_loadstones_keep_their_permissions(tmp_path, name):
    other = tmp_path / name
    other.parent.mkdir(parents=True)
    other.write_text("")
    for path in (other, other.parent, tmp_path):
        path.chmod(0o755)
    with Store.open(tmp_path) as store:
        store.begin(replace(RESULT, measurements=()))
        own = store.folder(RESULT.run_id)
    own.chmod(0o755)
    (tmp_path / "runs").chmod(0o755)
    Store.open(tmp_path).close()
    assert stat.S_IMODE(own.stat().st_mode) == 0o700
    for path in (other, other.parent, tmp_path):
        assert stat.S_IMODE(path.stat().st_mode) == 0o755


def test_a_closed_folder_of_the_user_is_not_entered(tmp_path):
    program = tmp_path / "studies/run.sh"
    program.parent.mkdir(mode=0o700)
    program.write_text("")
    program.chmod(0o755)
    (tmp_path / "tunings").write_text("a file of the user")
    (tmp_path / "tunings").chmod(0o755)
    Store.open(tmp_path).close()
    (tmp_path / "results.db").chmod(0o644)
    Store.open(tmp_path).close()
    assert stat.S_IMODE((tmp_path / "results.db").stat().st_mode) == 0o600
    assert stat.S_IMODE(program.stat().st_mode) == 0o755
    assert stat.S_IMODE((tmp_path / "tunings").stat().st_mode) == 0o755


def test_an_import_that_is_interrupted_leaves_no_rows(tmp_path, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    with Store.open(tmp_path) as store:
        monkeypatch.setattr(Store, "_write_files", interrupted)
        with pytest.raises(KeyboardInterrupt):
            store.begin(RESULT)
        assert not store.holds(RESULT.run_id)
