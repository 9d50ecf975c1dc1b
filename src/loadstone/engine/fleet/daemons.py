"""The processes of a fleet on this machine: a Dask scheduler and workers, or workers alone."""

import json
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil

from loadstone import files
from loadstone.engine.fleet.address import CA, CERTIFICATE, KEY
from loadstone.errors import EnvironmentUnusable

STATE = "processes.json"
START_S, END_S = 30.0, 10.0
POLL_S = 0.1
LOG_TAIL = 3


@dataclass(frozen=True, slots=True)
class Daemon:
    """A process; `started_s` (Unix time) tells it from a later one with the same pid."""

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
    """Return the processes of the fleet that run on this machine."""
    try:
        told = json.loads((folder / STATE).read_text("utf-8"))
    except FileNotFoundError:
        return ()
    return tuple(one for one in (Daemon(**each) for each in told) if one.process() is not None)


def start_scheduler(folder: Path, host: str, port: int) -> None:
    """Start a scheduler that speaks TLS only; raise EnvironmentUnusable if it does not come up."""
    listen = ("--host", host, "--port", str(port), "--protocol", "tls", "--no-dashboard")
    _start(folder, "scheduler", ("dask_scheduler", *listen), host, port)


def start_workers(folder: Path, url: str, count: int, resource: str) -> None:
    """Start workers, each a process of one thread, that join the scheduler at `url`."""
    for number in range(1, count + 1):
        options = ("--nthreads", "1", "--no-nanny", "--no-dashboard", "--death-timeout", "60")
        command = ("dask_worker", url, *options, "--resources", f"{resource}=1")
        _start(folder, f"worker-{number}", (*command, "--local-directory", str(folder / "spill")))


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


def _start(folder: Path, name: str, command: Sequence[str], host: str = "", port: int = 0) -> None:
    log = folder / f"{name}.log"
    module, *arguments = command
    tls = (
        *("--tls-ca-file", str(folder / CA)),
        *("--tls-cert", str(folder / CERTIFICATE)),
        *("--tls-key", str(folder / KEY)),
    )
    with log.open("wb") as out:
        process = subprocess.Popen(
            [sys.executable, "-m", f"distributed.cli.{module}", *arguments, *tls],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    started_s = psutil.Process(process.pid).create_time()
    known = (*running(folder), Daemon(name, process.pid, started_s))
    files.write(folder / STATE, json.dumps([asdict(one) for one in known]))
    if host:
        _await(process, host, port, log)


def _await(process: "subprocess.Popen[bytes]", host: str, port: int, log: Path) -> None:
    """Wait until the scheduler listens."""
    import socket

    until_s = time.monotonic() + START_S
    while time.monotonic() < until_s:
        if process.poll() is not None:
            tail = " | ".join(log.read_text("utf-8", "replace").splitlines()[-LOG_TAIL:])
            raise EnvironmentUnusable(f"the scheduler ended at once: {tail} ({log})")
        with socket.socket() as probe:
            probe.settimeout(POLL_S)
            if probe.connect_ex((host, port)) == 0:
                return
        time.sleep(POLL_S)
    raise EnvironmentUnusable(f"the scheduler does not listen on {host}:{port}; see {log}")
