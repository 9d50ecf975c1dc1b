"""Which process measures a run: told apart from a later one that got the same number."""

import os
import socket
from pathlib import Path


def this_process() -> str:
    """Name this process: host, pid, start."""
    return f"{socket.gethostname()}:{os.getpid()}:{_started(os.getpid())}"


def is_alive(owner: str) -> bool:
    """Return whether the process may still be at work; of another machine's we cannot know."""
    _, pid, started = owner.rsplit(":", 2)
    return not is_here(owner) or _started(int(pid)) == started


def host(owner: str) -> str:
    """Return the name of the machine that measures or measured."""
    return owner.rsplit(":", 2)[0]


def is_here(owner: str) -> bool:
    """Return whether that is this machine."""
    return host(owner) == socket.gethostname()


def _started(pid: int) -> str | None:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
    except OSError:
        return None
    # Ticks since boot, field 22 of man 5 proc; the name before may hold spaces and brackets.
    return stat.rpartition(")")[2].split()[19]
