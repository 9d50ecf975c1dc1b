"""Runs whose terminal, or the reader of whose messages, goes away."""

import json
import os
import pty
import select
import signal
import subprocess
import sys
import threading
from contextlib import suppress

import pytest
import quiet_machine
from command_line import environment
from documents import workloads
from fake_keystone import PASSWORD, FakeKeystone
from fake_server import serving

from loadstone.cli.screen import Screen
from loadstone.cli.stderr import Stderr
from loadstone.engine.progress import Progress
from loadstone.live.feed import Feed
from loadstone.plan.load import OpenLoad
from loadstone.search.model import TrialRequest

# At a rate: a closed loop would keep both cores busy, here with a server in Python.
WORKLOAD = """
  - runner: {type: rps, times: 60, rps: 20}
    context: {users: {tenants: 1, users_per_tenant: 2}}
"""
TASK = f"Authenticate.keystone:{WORKLOAD}"
ENDLESS = TASK.replace("times: 60", "times: 12000")


@pytest.fixture
def cloud(tmp_path):
    """A fake Keystone, and the variables that choose it."""
    fake = FakeKeystone()
    with serving(fake.handler()) as url:
        variables = environment(f"{url}/v3", tmp_path)
        yield fake, variables | {"OS_USERNAME": "admin", "OS_PASSWORD": PASSWORD}


def command(*words):
    return [sys.executable, quiet_machine.__file__, *words]


def kept(variables):
    shown = subprocess.run(
        command("results", "show", "latest", "--json", "-"),
        env=variables,
        check=True,
        capture_output=True,
    )
    return json.loads(shown.stdout)


def under_load(fake):
    """Return an event that is set once the load has begun."""
    enough = threading.Event()

    def count(_method, _path):
        if fake.calls["POST", "/v3/auth/tokens"] > 10:
            enough.set()

    fake.disturb = count
    return enough


@pytest.mark.parametrize("redirection", ["2>&-", ">&- 2>&-", "2> >(head -1 >/dev/null)", "<&-"])
def test_a_run_without_standard_streams_ends_like_any_other(cloud, tmp_path, redirection):
    fake, variables = cloud
    (tmp_path / "task.yaml").write_text(TASK)
    line = f'exec "$@" {redirection}'
    ended = subprocess.run(
        ["bash", "-c", line, "bash", *command("run", "task.yaml")],
        env=variables,
        cwd=tmp_path,
        check=False,
        capture_output=True,
        text=True,
    )
    assert ended.returncode == 0, ended.stderr
    result = kept(variables)
    assert result["status"] == "finished"
    assert workloads(result)[0]["total"]["count"] > 1
    assert fake.names("users") == fake.names("domains") == []


def test_a_terminal_that_goes_away_does_not_end_a_run(cloud, tmp_path):
    fake, variables = cloud
    begun = under_load(fake)
    (tmp_path / "task.yaml").write_text(TASK)
    master, slave = pty.openpty()
    process = subprocess.Popen(
        command("run", "task.yaml"),
        env=variables,
        cwd=tmp_path,
        stdin=slave,
        stdout=slave,
        stderr=slave,
        start_new_session=True,
    )
    os.close(slave)
    reader = threading.Thread(target=drain, args=(master, begun))
    reader.start()
    assert begun.wait(timeout=500)
    reader.join()
    os.close(master)
    assert process.wait(timeout=500) == 0
    assert kept(variables)["status"] == "finished"
    assert fake.names("users") == fake.names("domains") == []


def test_a_terminal_that_was_gone_before_the_start_does_not_end_a_run(cloud, tmp_path):
    fake, variables = cloud
    (tmp_path / "task.yaml").write_text(TASK)
    master, slave = pty.openpty()
    os.close(master)
    lost = {"stdin": slave, "stdout": slave, "stderr": slave}
    ended = subprocess.run(
        command("run", "task.yaml"), env=variables, cwd=tmp_path, check=False, timeout=500, **lost
    )
    os.close(slave)
    assert ended.returncode == 0
    assert kept(variables)["status"] == "finished"
    assert fake.names("users") == fake.names("domains") == []


def drain(master, until):
    """Read a terminal until an event is set."""
    while not until.is_set():
        if select.select([master], [], [], 0.2)[0]:
            with suppress(OSError):
                os.read(master, 65536)


@pytest.mark.parametrize("times", [1, 2])
def test_a_hang_up_keeps_what_was_measured_and_removes_the_users(cloud, tmp_path, times):
    fake, variables = cloud
    begun = under_load(fake)
    (tmp_path / "task.yaml").write_text(ENDLESS)
    with subprocess.Popen(
        command("run", "task.yaml"),
        env=variables,
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert begun.wait(timeout=500)
        for _ in range(times):  # a terminal that closes sends it twice
            process.send_signal(signal.SIGHUP)
        _, told = process.communicate(timeout=500)
    assert process.returncode == 128 + signal.SIGHUP, told
    assert "Traceback" not in told
    result = kept(variables)
    assert result["status"] == "interrupted"
    assert workloads(result)[0]["total"]["count"] > 1
    assert fake.names("users") == fake.names("domains") == []


def test_nohup_ignores_a_hang_up(cloud, tmp_path):
    fake, variables = cloud
    begun = under_load(fake)
    (tmp_path / "task.yaml").write_text(TASK)
    with subprocess.Popen(
        ["nohup", *command("run", "task.yaml")],
        env=variables,
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert begun.wait(timeout=500)
        process.send_signal(signal.SIGHUP)
        process.communicate(timeout=500)
    assert process.returncode == 0
    assert kept(variables)["status"] == "finished"
    assert fake.names("users") == []


class _Lost:
    """A stream whose terminal is gone."""

    encoding = "utf-8"

    def write(self, _text):
        raise OSError(5, "Input/output error")

    flush = isatty = fileno = lambda self: self.write("")


@pytest.mark.parametrize("is_terminal", [True, False])
def test_the_display_never_raises(monkeypatch, is_terminal):
    if is_terminal:
        monkeypatch.setenv("FORCE_COLOR", "1")
        monkeypatch.setattr(Stderr, "isatty", lambda _: True)
    monkeypatch.setattr("sys.stderr", _Lost())
    monkeypatch.setattr("loadstone.cli.screen.LINE_EVERY_S", 0.0)
    with Screen() as screen:
        feed = Feed([screen])
        feed.say("line")
        trial = feed.observer("run")
        trial.on_trial_begin(TrialRequest(OpenLoad(1.0, 6.0), "first"))
        assert trial.on_progress(Progress(0.1, 1, 1, 0, 0, 0.0))
        trial.close()


def test_the_live_line_is_there_in_every_trial(cloud, tmp_path):
    _, variables = cloud
    text = f"Authenticate.keystone:{WORKLOAD}{WORKLOAD.replace('rps: 20', 'rps: 25')}"
    (tmp_path / "task.yaml").write_text(text)
    master, slave = pty.openpty()
    process = subprocess.Popen(
        command("run", "task.yaml"),
        env=variables | {"TERM": "xterm", "COLUMNS": "200"},
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=slave,
    )
    os.close(slave)
    shown = read_all(master)
    process.communicate()
    assert process.returncode == 0, shown
    before, _, last = shown.rpartition("Authenticate.keystone")
    assert "latency" in before
    assert "latency" in last


def read_all(master):
    """Read a terminal until the last process has closed it."""
    pieces = []
    with suppress(OSError):  # EIO: closed
        while piece := os.read(master, 65536):
            pieces.append(piece)
    os.close(master)
    return b"".join(pieces).decode()
