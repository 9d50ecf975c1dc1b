"""Memory of a service."""

from contextlib import suppress

from loadstone.monitor.service import Members


def memory_mb(members: Members) -> float | None:
    """Return the resident memory of a service's processes; None if they run on another machine.

    Shared pages are counted in each process.
    """
    import psutil

    found = members()
    if found is None:
        return None
    total = 0
    for member in found:
        with suppress(psutil.Error):
            total += psutil.Process(member.pid).memory_info().rss
    return total / 1e6
