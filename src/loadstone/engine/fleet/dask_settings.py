"""Settings of Dask for processes that may share cores with what is measured.

Dask's defaults are for long computations. It samples the stacks of its threads a hundred times a
second and wakes up for statistics that nobody reads here.
"""

from typing import Any

SETTINGS: dict[str, Any] = {
    "distributed.worker.profile.enabled": False,
    "distributed.admin.tick.interval": "1s",
    "distributed.admin.system-monitor.interval": "10s",
    "distributed.scheduler.work-stealing": False,
    "distributed.scheduler.active-memory-manager.start": False,
    # Dask's web server has no access control and cannot be turned off; it serves nothing.
    "distributed.scheduler.http.routes": [],
    "distributed.worker.http.routes": [],
}

HTTP_ADDRESS = "127.0.0.1:0"  # of that web server


def environment() -> dict[str, str]:
    """Return the settings as environment variables of Dask's commands."""
    return {
        f"DASK_{name.replace('.', '__').replace('-', '_').upper()}": str(value)
        for name, value in SETTINGS.items()
    }
