"""The processes of the load generator on this machine, besides this one."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import psutil

PROC = Path("/proc")
# The command of a fleet's worker that sends load (engine/fleet/host_process.py).
FLEET_WORKER = (b"distributed.cli.dask_worker", b"load=1")


def workers() -> Iterator[int]:
    """Yield the pids of this program's worker processes, and of a fleet's workers."""
    import psutil

    with suppress(psutil.Error):
        # The servers of a lab that this process started are its children, too.
        for one in psutil.Process().children(recursive=True):
            if _is_worker(one):
                yield one.pid
    for path in PROC.glob("[0-9]*/cmdline"):
        with suppress(OSError):  # ended meanwhile
            words = path.read_bytes().split(b"\0")
            if all(word in words for word in FLEET_WORKER):
                yield int(path.parent.name)


def _is_worker(process: "psutil.Process") -> bool:
    """Return whether a child runs this program's load: multiprocessing marks its children."""
    import psutil

    try:
        return any("multiprocessing" in word for word in process.cmdline())
    except psutil.Error:
        return False
