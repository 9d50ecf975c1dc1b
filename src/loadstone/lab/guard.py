"""Ends commands when the process that started them is killed.

A separate process (`python -m loadstone.lab.guard`) reads which commands run; at the end of its
standard input, which the kernel closes when its owner dies, it ends those that still do. It knows
their processes by an environment variable, so that it also finds children in other sessions.
"""

import os
import secrets
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from threading import Lock

from loadstone.lab import processes

MARK = "LOADSTONE_COMMAND"  # environment variable of a command's processes
GRACE_S = 5.0  # between SIGTERM and SIGKILL
_BEGINS, _ENDS = "+", "-"


class CommandGuard:
    """The owner's end of the pipe; the guard starts with the first command."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None
        self._lock = Lock()

    @contextmanager
    def guarded(self) -> Iterator[Mapping[str, str]]:
        """Yield the environment of a command that is ended if this process dies in the block."""
        mark = secrets.token_hex(8)
        self._tell(f"{_BEGINS}{mark}\n")
        try:
            yield {**os.environ, MARK: mark}
        finally:
            self._tell(f"{_ENDS}{mark}\n")

    def close(self) -> None:
        """End the guard."""
        with self._lock:
            if self._process is not None:
                self._process.communicate()
                self._process = None

    def _tell(self, line: str) -> None:
        with self._lock:
            if self._process is None:
                self._process = subprocess.Popen(
                    # -P: do not search the user's working directory for modules.
                    (sys.executable, "-P", "-m", "loadstone.lab.guard"),
                    stdin=subprocess.PIPE,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    text=True,
                    cwd="/",
                    start_new_session=True,
                )
            if self._process.stdin is not None:
                with suppress(BrokenPipeError):  # somebody has killed it
                    self._process.stdin.write(line)
                    self._process.stdin.flush()


def _main() -> None:
    running: set[str] = set()
    for line in sys.stdin:
        change, mark = line[0], line[1:].strip()
        if change == _BEGINS:
            running.add(mark)
        else:
            running.discard(mark)
    for mark in running:
        # Again, because a process may have started another one in the meantime.
        while found := processes.with_variable(MARK, mark):
            processes.end(found, grace_s=GRACE_S)


if __name__ == "__main__":
    _main()
