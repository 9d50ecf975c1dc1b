"""The processes of a fleet on this machine: a Dask scheduler and workers, or workers alone."""

import json
import os
import secrets
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil

from loadstone.engine.fleet import dask_settings
from loadstone.engine.fleet.address import CA, CERTIFICATE, KEY, SchedulerAddress
from loadstone.engine.fleet.host_process import worker_options
from loadstone.engine.fleet.hosts_file import LOAD
from loadstone.errors import EnvironmentUnusable
from loadstone.system import files

STATE = "processes.json"
SCHEDULER = "scheduler"
START_S, END_S = 30.0, 10.0
POLL_S = 0.1
LOG_TAIL = 3


@dataclass(frozen=True, slots=True)
class Daemon:
    """A process, identified by its pid and its start (`started_s`, Unix time)."""

    name: str
    pid: int
    started_s: float

    def process(self) -> psutil.Process | None:
        """Return the process if it is still there."""
        try:
            found = psutil.Process(self.pid)
            is_it = abs(found.create_time() - self.started_s) < 1.0
            return found if is_it and found.status() != psutil.STATUS_ZOMBIE else None
        except psutil.NoSuchProcess:
            return None


def running(folder: Path) -> tuple[Daemon, ...]:
    """Return the processes of the fleet that run on this machine.

    Raises EnvironmentUnusable for a folder or a list of processes that cannot be read.
    """
    path = folder / STATE
    try:
        daemons = [Daemon(**record) for record in json.loads(path.read_text("utf-8"))]
    except FileNotFoundError:
        return ()
    except OSError as problem:
        raise EnvironmentUnusable(
            f"{path} cannot be read: {problem.strerror}; choose another folder with "
            "--fleet-certificates"
        ) from None
    except (ValueError, TypeError):
        raise EnvironmentUnusable(
            f"{path} is damaged; end the processes of the fleet yourself (`pgrep -f "
            "distributed.cli` shows them), then delete this file"
        ) from None
    return tuple(daemon for daemon in daemons if daemon.process() is not None)


def start_scheduler(folder: Path, host: str, port: int) -> str:
    """Start a scheduler that speaks TLS only, and return its URL.

    Raises EnvironmentUnusable if it does not come up.
    """
    in_url = f"[{host}]" if ":" in host else host
    listen = ("--host", in_url, "--port", str(port), "--protocol", "tls")
    no_pages = ("--no-dashboard", "--dashboard-address", dask_settings.HTTP_ADDRESS)
    tls = (
        *("--tls-ca-file", str(folder / CA)),
        *("--tls-cert", str(folder / CERTIFICATE)),
        *("--tls-key", str(folder / KEY)),
    )
    program = (sys.executable, "-P", "-m", "distributed.cli.dask_scheduler")
    process, log = _start(folder, SCHEDULER, (*program, *listen, *no_pages, *tls))
    _await_scheduler(process, host, port, log)
    return f"tls://{in_url}:{port}"


def start_workers(
    address: SchedulerAddress, count: int, prefix: Sequence[str] = (), role: str = LOAD
) -> None:
    """Start workers, each a process of one thread, and wait until they have joined a scheduler.

    `role` is their resource; `prefix` begins their commands. Raises EnvironmentUnusable if they do
    not join.
    """
    from loadstone.engine.fleet.client import joined

    folder = address.certificates
    if not isinstance(folder, Path):
        raise AssertionError("workers are started with a folder of certificates only")
    host = socket.gethostname()
    started = {}
    for number in range(1, count + 1):
        name = f"{host}-{number}-{secrets.token_hex(3)}"
        command = (*prefix, *worker_options(address.url, name, role, folder))
        started[name] = _start(folder, f"worker-{name}", command)
    until_s = time.monotonic() + START_S
    while missing := started.keys() - joined(address):
        for process, log in started.values():
            if _has_ended(process):
                raise EnvironmentUnusable(f"a worker ended at once: {_tail(log)} ({log})")
        if time.monotonic() > until_s:
            log = started[min(missing)][1]
            raise EnvironmentUnusable(f"a worker did not join {address.url}: {_tail(log)} ({log})")
        time.sleep(POLL_S)


def end(folder: Path) -> int:
    """End the processes of the fleet on this machine; return how many there were."""
    found = [process for one in running(folder) if (process := one.process()) is not None]
    for process in found:
        process.terminate()
    _, left = psutil.wait_procs(found, timeout=END_S)
    for process in left:
        process.kill()
    psutil.wait_procs(left, timeout=END_S)
    (folder / STATE).unlink(missing_ok=True)
    return len(found)


def _start(folder: Path, name: str, command: Sequence[str]) -> tuple[psutil.Process, Path]:
    log = folder / f"{name}.log"
    with log.open("wb") as out:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            env=os.environ | dask_settings.environment(),
        )
    found = psutil.Process(process.pid)
    # The process outlives this program, which Popen would warn about.
    process.returncode = 0
    started_s = found.create_time()
    known = (*running(folder), Daemon(name, process.pid, started_s))
    files.write(folder / STATE, json.dumps([asdict(one) for one in known]))
    return found, log


def _has_ended(process: psutil.Process) -> bool:
    return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE


def _tail(log: Path) -> str:
    return " | ".join(log.read_text("utf-8", "replace").splitlines()[-LOG_TAIL:])


def _await_scheduler(process: psutil.Process, host: str, port: int, log: Path) -> None:
    """Wait until the scheduler listens."""
    until_s = time.monotonic() + START_S
    while time.monotonic() < until_s:
        if _has_ended(process):
            raise EnvironmentUnusable(f"the scheduler ended at once: {_tail(log)} ({log})")
        try:
            socket.create_connection((host, port), POLL_S).close()
        except OSError:
            time.sleep(POLL_S)
        else:
            return
    raise EnvironmentUnusable(f"the scheduler does not listen on {host}:{port}; see {log}")
