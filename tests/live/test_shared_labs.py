"""Deployments that tests share: started once, and gone when their session is, however it ends."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import shared_labs
from lab_client import assert_serves, until

from loadstone.lab import processes
from loadstone.system import locks

pytestmark = pytest.mark.live

SESSION = """
import sys, time
from pathlib import Path
import shared_labs
folder = Path(sys.argv[1])
with shared_labs.session(folder):
    shared_labs.started(folder, "plain")
    print("up", flush=True)
    time.sleep(600)
"""


def test_two_processes_share_one_and_a_killed_session_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    labs = tmp_path / "labs"
    home = shared_labs.home_of(labs)
    monkeypatch.setenv("LOADSTONE_HOME", str(home))
    support = Path(shared_labs.__file__).parent
    with subprocess.Popen(
        [sys.executable, "-c", SESSION, str(labs)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(support)},
    ) as session:
        assert session.stdout is not None
        assert session.stdout.readline() == "up\n"
        answer = (labs / "plain.answer").stat().st_mtime_ns
        with shared_labs.in_use(labs, "plain", exclusively=True) as lab:
            assert_serves(lab)
        assert (labs / "plain.answer").stat().st_mtime_ns == answer
        session.kill()
    until(lambda: not lab.folder.exists(), "the deployment outlived its session")
    with locks.held(labs / "plain.owned"):  # its owner has ended
        assert processes.marked(lab.folder) == ()
