"""Which process measures a run: told apart from a later one that got the same number."""

import os
import socket
from pathlib import Path


def this_process() -> str:
    """Name this process: host, pid, start."""
    return f"{socket.gethostname()}:{os.getpid()}:{_started(os.getpid())}"


def is_alive(owner: str) -> bool:
    """Say whether the process may still be at work; of another machine's we cannot know."""
    host, pid, started = owner.rsplit(":", 2)
    if host != socket.gethostname():
        return True
    return _started(int(pid)) == started


def _started(pid: int) -> str | None:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
    except OSError:
        return None
    # Ticks since boot, field 22 of man 5 proc; the name before may hold spaces and brackets.
    return stat.rpartition(")")[2].split()[19]
