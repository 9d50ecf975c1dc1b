"""The processes of the load generator on this machine, besides this one."""

import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

PROC = Path("/proc")
# The command of a fleet's worker that sends load (engine/fleet/host_process.py).
FLEET_WORKER = (b"distributed.cli.dask_worker", b"load=1")
FLEET_CLIENT = "distributed"  # module that a program imports to send load from a fleet


def workers() -> Iterator[int]:
    """Yield the pids of this program's worker processes, and of the workers of its fleet."""
    yield from _marked_children(os.getpid())
    if FLEET_CLIENT in sys.modules:
        for path in PROC.glob("[0-9]*/cmdline"):
            words = _command(path)
            if all(word in words for word in FLEET_WORKER):
                yield int(path.parent.name)


def _marked_children(pid: int) -> Iterator[int]:
    """Yield the descendants that run this program's load: multiprocessing marks its children.

    The servers of a lab that this process started are its children, too.
    """
    for child in _children(pid):
        if any(b"multiprocessing" in word for word in _command(PROC / str(child) / "cmdline")):
            yield child
            yield from _marked_children(child)


def _children(pid: int) -> list[int]:
    """Return the children of a process; without reading those of all others, where possible."""
    found: list[int] = []
    try:
        for thread in (PROC / str(pid) / "task").iterdir():
            with suppress(ProcessLookupError):  # the thread ended meanwhile
                found += map(int, (thread / "children").read_text().split())
    except FileNotFoundError:  # a kernel without this file (proc(5)), or a process that ended
        import psutil

        with suppress(psutil.Error):
            return [one.pid for one in psutil.Process(pid).children()]
    return found


def _command(path: Path) -> list[bytes]:
    """Return the words of a process's command; empty if it has ended."""
    try:
        return path.read_bytes().split(b"\0")
    except OSError:
        return []
