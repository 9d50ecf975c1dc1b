"""Stops a deployment when its owner dies: the kernel then closes the owner's end of a pipe.

The watcher is a separate process (`python -m loadstone.lab.watcher FOLDER RUN`) that waits for the
end of its standard input. It guards every start, so a killed `lab up` leaves nothing running. A
deployment that is to outlive its command is released once it serves.
"""

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from loadstone.lab import state
from loadstone.lab.shutdown import shut_down
from loadstone.system import locks

LOCK = "lock"
RELEASED = b"r"


@dataclass(frozen=True, slots=True)
class WatcherPipe:
    """The owner's end of the pipe."""

    process: subprocess.Popen[bytes]

    def release(self) -> None:
        """Let the deployment live on without an owner."""
        if self.process.returncode is None:
            self.process.communicate(RELEASED)


def watch(folder: Path, run: str) -> WatcherPipe:
    """Start a watcher for one start of a deployment; its owner is this process."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("OS_")}
    return WatcherPipe(
        subprocess.Popen(
            (sys.executable, "-P", "-m", "loadstone.lab.watcher", str(folder), run),
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=environment,
            cwd="/",
            start_new_session=True,
        )
    )


def remove_unbegun(folder: Path) -> None:
    """Remove the folder of a deployment if there is nothing in it but the lock."""
    if {path.name for path in folder.iterdir()} <= {LOCK}:
        shutil.rmtree(folder)


def _main() -> None:
    folder, run = Path(sys.argv[1]), sys.argv[2]
    if sys.stdin.buffer.read() == RELEASED or not folder.exists():
        return
    with locks.held(folder / LOCK):
        known = state.read(folder)
        # Another command has started the deployment again.
        if known is None or known.run == run:
            shut_down(folder)
        remove_unbegun(folder)


if __name__ == "__main__":
    _main()
