import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from loadstone.errors import EnvironmentUnusable
from loadstone.lab import processes
from loadstone.lab.processes import Command, Process

SLEEPER = "import time; time.sleep(600)"
# A master with a child, which dies as servers do when told.
MASTER = f"import subprocess, sys; subprocess.run([sys.executable, '-c', '{SLEEPER}'])"
DEAF = f"import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('deaf'); {SLEEPER}"


def until(held: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not held():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def started(folder: Path, code: str) -> Process:
    return processes.start(
        Command((sys.executable, "-u", "-c", code), folder / "logs" / "it.log", folder)
    )


def test_stopping_ends_the_whole_family(tmp_path: Path) -> None:
    master = started(tmp_path, MASTER)
    until(lambda: len(processes.family(master)) == 2)
    family = processes.family(master)
    processes.stop(master)
    assert not any(processes.alive(process) for process in family)


def test_a_child_is_found_after_its_master_died(tmp_path: Path) -> None:
    master = started(tmp_path, MASTER)
    until(lambda: len(processes.family(master)) == 2)
    os.kill(master.pid, signal.SIGKILL)
    until(lambda: not processes.alive(master))
    [child] = processes.family(master)
    processes.stop(master)
    assert not processes.alive(child)


def test_what_does_not_listen_is_killed(tmp_path: Path) -> None:
    deaf = started(tmp_path, DEAF)
    until(lambda: (tmp_path / "logs" / "it.log").read_text() == "deaf\n")
    processes.end((deaf,), grace_s=0.2)
    assert not processes.alive(deaf)


def test_a_pid_that_is_anothers_is_left_alone(tmp_path: Path) -> None:
    other = started(tmp_path, SLEEPER)
    stale = Process(other.pid, other.started_ticks - 1)
    assert not processes.alive(stale)
    assert processes.family(stale) == ()
    processes.stop(stale)
    assert processes.alive(other)
    processes.stop(other)


def test_an_unrecorded_nginx_without_its_mark_is_found_by_its_log(tmp_path: Path) -> None:
    overwritten = {processes.MARK: "overwritten"}
    logs = tmp_path / "logs"
    title = ("bash", "-c", "exec -a 'nginx: master process' sleep 600")
    lost = processes.start(Command(title, logs / "nginx.log", tmp_path, overwritten))
    # A user's program may write there, too.
    other = (sys.executable, "-c", SLEEPER)
    users = processes.start(Command(other, logs / "mine.log", tmp_path, overwritten))
    until(lambda: processes.marked(tmp_path) == (lost,))
    assert processes.marked(tmp_path / "elsewhere") == ()
    processes.stop(lost)
    processes.stop(users)


def test_an_unrecorded_process_is_found_by_its_mark(tmp_path: Path) -> None:
    lost = started(tmp_path, SLEEPER)
    assert processes.marked(tmp_path) == (lost,)
    assert processes.marked(tmp_path / "elsewhere") == ()
    processes.stop(lost)


def test_a_process_in_a_container_is_left_alone(tmp_path: Path) -> None:
    by_root = () if os.geteuid() == 0 else ("--user", "--map-root-user")
    alone = ("unshare", *by_root, "--pid", "--fork", "--kill-child")
    inside = ("env", f"{processes.MARK}={tmp_path}", "sleep", "600")
    with subprocess.Popen((*alone, *inside)) as container:
        try:
            until(lambda: len(processes.with_variable(processes.MARK, str(tmp_path))) == 1)
            assert processes.marked(tmp_path) == ()
        finally:
            container.kill()


def test_a_process_in_the_moment_of_its_start_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    becomes = f"read go; exec env {processes.MARK}={tmp_path} sleep 60"
    begin = ("env", "-i", "sh", "-c", becomes)
    with subprocess.Popen(begin, stdin=subprocess.PIPE) as child:
        environment = Path(f"/proc/{child.pid}/environ")

        def in_the_meantime(_: float) -> None:
            assert child.stdin is not None
            child.stdin.write(b"go\n")
            child.stdin.flush()
            until(lambda: bytes(tmp_path) in environment.read_bytes())

        try:
            until(lambda: Path(f"/proc/{child.pid}/cmdline").read_bytes().startswith(b"sh\0"))
            monkeypatch.setattr(processes, "time", SimpleNamespace(sleep=in_the_meantime))
            assert [found.pid for found in processes.marked(tmp_path)] == [child.pid]
        finally:
            child.kill()


def test_the_users_credentials_do_not_reach_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OS_PASSWORD", "mine")
    monkeypatch.setenv("PYTHONPATH", "/mine")
    seen = processes.clean_environment(Path("/folder"))
    assert not {"OS_PASSWORD", "PYTHONPATH"} & set(seen)


def test_a_program_that_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(EnvironmentUnusable, match="no-such-server is not installed"):
        processes.start(Command(("no-such-server",), tmp_path / "log", tmp_path))


WATCHED = """
import sys, time
from pathlib import Path
from loadstone.lab import processes, state, watcher
from loadstone.lab.processes import Command
from loadstone.lab.state import DeploymentPhase, DeploymentState

folder = Path(sys.argv[1])
state.write_secret(state.secret_folder(folder) / "password", "x")
starting = DeploymentPhase.STARTING
state.write(folder, DeploymentState("it", "run-1", starting, processes.boot_id(), ()))
watcher.watch(folder, "run-1")
# Not in the state: as if the owner died before it could record it.
sleeper = (sys.executable, "-c", "import time; time.sleep(600)")
processes.start(Command(sleeper, folder / "log", folder))
print("ready", flush=True)
time.sleep(600)
"""


def test_the_watcher_ends_what_its_killed_owner_started(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", WATCHED, str(tmp_path)], stdout=subprocess.PIPE, text=True
    ) as owner:
        assert owner.stdout is not None
        assert owner.stdout.readline() == "ready\n"
        assert len(processes.marked(tmp_path)) == 1
        owner.kill()
    until(lambda: processes.marked(tmp_path) == ())
    until(lambda: not (tmp_path / "secret").exists())


def test_a_python_without_pidfd_ends_processes(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.delattr(os, "pidfd_open")
    master = started(tmp_path, SLEEPER)
    processes.stop(master)
    assert not processes.alive(master)
