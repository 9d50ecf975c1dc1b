"""Undoes faults when the process that carried them out dies.

A separate process (`python -m loadstone.faults.watcher JOURNAL PID`) that waits for the end of its
standard input: the kernel closes the other end when its owner dies. It has the owner's working
directory and environment, which the undo commands of a user's file may need.
"""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from loadstone.faults.journal import Owner, UndoJournal
from loadstone.faults.undo import undo_all

WATCHER = "loadstone.faults.watcher"


@contextmanager
def watched(journal: UndoJournal, owner: Owner) -> Iterator[None]:
    """Undo the faults of this block at its end, even if this process dies in it."""
    with subprocess.Popen(
        # -P: do not search the user's working directory for modules.
        (sys.executable, "-P", "-m", WATCHER, str(journal.path), str(owner.pid)),
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    ) as process:
        try:
            yield
        finally:
            process.communicate()  # it undoes what is left, also after a second Ctrl-C


def _main() -> None:
    path, pid = Path(sys.argv[1]), int(sys.argv[2])
    sys.stdin.buffer.read()
    if path.exists():
        undo_all(UndoJournal.at(path), lambda step: step.owner.pid == pid)


if __name__ == "__main__":
    _main()
