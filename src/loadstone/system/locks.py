"""File locks between processes; the kernel releases them when the holder dies."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from loadstone.errors import EnvironmentUnusable


@contextmanager
def held(path: Path, *, busy: str | None = None) -> Iterator[None]:
    """Hold the lock; if it is held elsewhere, raise `busy` if set, else wait."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | (fcntl.LOCK_NB if busy else 0))
        yield
    except BlockingIOError:
        raise EnvironmentUnusable(str(busy)) from None
    finally:
        os.close(handle)
