"""Undoes faults when the process that carried them out dies.

A separate process (`python -m loadstone.faults.watcher FOLDER`) that waits for the end of its
standard input: the kernel closes the other end when its owner dies.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from loadstone.faults.undo import undo_all

RELEASED = b"r"


@contextmanager
def watched(folder: Path) -> Iterator[None]:
    """Undo the faults of this block even if this process dies in it."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("OS_")}
    with subprocess.Popen(
        (sys.executable, "-m", "loadstone.faults.watcher", str(folder)),
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=environment,
        cwd="/",
        start_new_session=True,
    ) as process:
        try:
            yield
        except BaseException:
            process.communicate()  # it undoes what is left
            raise
        process.communicate(RELEASED)


def _main() -> None:
    folder = Path(sys.argv[1])
    if sys.stdin.buffer.read() != RELEASED and folder.exists():
        undo_all(folder)


if __name__ == "__main__":
    _main()
