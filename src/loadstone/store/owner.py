"""Which process measures a run: told apart from a later one that got the same number."""

import os
import socket


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
    import psutil

    try:
        return f"{psutil.Process(pid).create_time():.2f}"
    except psutil.Error:
        return None
