"""The process that measures a run; its start time distinguishes it from a reused pid."""

import os
import socket
from pathlib import Path


def this_process() -> str:
    """Name this process: host, pid, start."""
    return f"{socket.gethostname()}:{os.getpid()}:{_started(os.getpid())}"


def is_alive(owner: str) -> bool:
    """Return whether the process may still be at work; always True for another machine.

    Raises ValueError if the text names no process.
    """
    _, pid, started = owner.rsplit(":", 2)
    return not is_here(owner) or _started(int(pid)) == started


def host(owner: str) -> str:
    """Return the host name of an owner."""
    return owner.rsplit(":", 2)[0]


def is_here(owner: str) -> bool:
    """Return whether the owner's host is this machine."""
    return host(owner) == socket.gethostname()


def _started(pid: int) -> str | None:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
    except OSError:
        return None
    # The state and the ticks since boot, fields 3 and 22 of man 5 proc; the name before may hold
    # spaces and brackets.
    fields = stat.rpartition(")")[2].split()
    has_ended = fields[0] in "ZX"  # its parent has not waited for it, and may never do so
    return None if has_ended else fields[19]
