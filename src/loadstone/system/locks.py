"""File locks between processes; the kernel releases them when the holder dies."""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from loadstone.errors import EnvironmentUnusable

_POLL_S = 0.05


@contextmanager
def held(path: Path, *, busy: str | None = None, wait_s: float = 0.0) -> Iterator[None]:
    """Hold the lock; if it is held elsewhere, wait, and raise `busy`, if set, after `wait_s`.

    Its holder may remove the file: then whoever waited locks a new one. Raises EnvironmentUnusable
    also if the file cannot be created.
    """
    deadline_s = time.monotonic() + wait_s
    while True:
        handle = _opened(path)
        try:
            if busy is None:
                fcntl.flock(handle, fcntl.LOCK_EX)
            elif not _locked(handle, deadline_s):
                raise EnvironmentUnusable(busy)
            if not _is_file_of(handle, path):
                continue
            yield
            return
        finally:
            os.close(handle)


def _opened(path: Path) -> int:
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as problem:
        raise EnvironmentUnusable(
            f"{path}: this lock cannot be created: {problem.strerror}; its folder must be "
            "writable, and LOADSTONE_HOME and --store name others"
        ) from problem


def _is_file_of(handle: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(handle), path.stat())
    except FileNotFoundError:
        return False


def _locked(handle: int, deadline_s: float) -> bool:
    """Lock a file until the deadline, a monotonic time; return whether it was possible."""
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= deadline_s:
                return False
            time.sleep(_POLL_S)
        else:
            return True
