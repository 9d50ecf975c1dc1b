"""The processes of a target on this machine that was chosen by its URL, not as a lab."""

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from loadstone.cloud.cloud import Endpoint
from loadstone.cloud.permission import is_loopback
from loadstone.monitor.service import Members, ServiceProcess
from loadstone.system import paths

if TYPE_CHECKING:
    from loadstone.lab.deployment import Deployment

PROGRAM, COMMAND = "loadstone", "serve"


def lab_at(endpoint: Endpoint) -> "Deployment | None":
    """Return the running lab of this endpoint; None if it is none."""
    # Most machines have no labs, and importing their code takes a tenth of a second.
    if not paths.deployments().is_dir() or not any(paths.deployments().iterdir()):
        return None
    from loadstone.lab import deployment

    at_place = (one for one in deployment.every() if one.place == endpoint.place)
    return next((one for one in at_place if one.is_running), None)


def members_at(endpoint: Endpoint) -> Members:
    """Return the processes of a lab or of `loadstone serve` at this endpoint.

    Of any other service nobody knows all processes (its database, its balancer), so that what the
    known ones use would be too little.
    """
    if not is_loopback(endpoint.host, endpoint.port):
        return lambda: None
    if (lab := lab_at(endpoint)) is not None:
        from loadstone.lab import deployment

        name = lab.name  # read each time: parts may have been restarted
        return lambda: deployment.load(name).identity_members()
    if (pid := _reference_service(endpoint.port)) is not None:
        return lambda: (ServiceProcess(pid, f"{PROGRAM} {COMMAND}"),)
    return lambda: None


def _reference_service(port: int) -> int | None:
    """Return the process of `loadstone serve` that listens on a port."""
    import psutil

    with suppress(psutil.Error, OSError):
        for one in psutil.net_connections("tcp"):
            is_it = one.status == psutil.CONN_LISTEN and one.laddr and one.laddr.port == port
            if is_it and one.pid is not None and _serves(psutil.Process(one.pid).cmdline()):
                return one.pid
    return None


def _serves(command: list[str]) -> bool:
    return COMMAND in command and any(Path(word).name == PROGRAM for word in command)
