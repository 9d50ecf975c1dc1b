"""Commands that end when the process that started them is killed."""

import os
import subprocess
import sys
from pathlib import Path

import psutil
from lab_client import until

# A hook whose command starts a process in another session; both write their PIDs.
HOLDS = """
import sys
from loadstone.engine.progress import Progress
from loadstone.observers.hooks import Hooks
from loadstone.plan.hooks import Event, Hook, SysCall
from loadstone.system.redaction import Redaction
action = SysCall(("sh", "-c", f"setsid sleep 600 & echo $! $$ > {sys.argv[1]}; wait"))
hooks = Hooks((Hook(action, Event("time", (0,))),), Redaction(), 600.0)
hooks.on_progress(Progress(1.0, 1, 1, 1, 0, 1.0))
input()
"""


def test_a_hook_command_ends_with_a_killed_run_and_so_does_what_it_started(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    os.mkfifo(pids)
    with subprocess.Popen((sys.executable, "-c", HOLDS, str(pids)), stdin=subprocess.PIPE) as run:
        found = [int(pid) for pid in pids.read_text().split()]
        assert all(psutil.pid_exists(pid) for pid in found)
        run.kill()
    until(lambda: not any(psutil.pid_exists(pid) for pid in found), "both have ended")
