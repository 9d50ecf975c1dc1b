"""Runs on an ssh host of a fleet: starts workers, and ends when its standard input closes.

It also ends at SIGTERM and SIGHUP, and removes the key and the workers then, too.

The first line of its input is a JSON object: `ca`, `certificate` and `key` (PEM), `scheduler`, and
`names` and `role` of the workers. ssh closes the input when the client ends or is cut off.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from loadstone.engine.fleet import dask_settings
from loadstone.engine.fleet.address import CA, CERTIFICATE, KEY

MEMORY = "/dev/shm"  # noqa: S108  # only the folder that mkdtemp makes there is used
POLL_S = 0.2
END_S = 5.0


def main() -> None:
    """Run the workers until the input closes, a signal comes, or one of them ends."""
    config: dict[str, Any] = json.loads(sys.stdin.readline())
    over = threading.Event()
    for one in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(one, lambda *_: over.set())
    is_writable = os.access(MEMORY, os.W_OK)
    folder = Path(tempfile.mkdtemp(prefix="loadstone-fleet-", dir=MEMORY if is_writable else None))
    processes: list[subprocess.Popen[bytes]] = []
    try:
        for name, pem in ((CA, "ca"), (CERTIFICATE, "certificate"), (KEY, "key")):
            (folder / name).touch(0o600)
            (folder / name).write_text(config[pem])
        # One by one, so that those before one that cannot be started are ended.
        processes.extend(_worker(folder, config, name) for name in config["names"])
        threading.Thread(target=_await_end, args=(over,), daemon=True).start()
        while not over.is_set() and all(one.poll() is None for one in processes):
            time.sleep(POLL_S)
    finally:
        for process in processes:
            process.terminate()
        for process in processes:
            try:
                process.wait(END_S)
            except subprocess.TimeoutExpired:
                process.kill()
        shutil.rmtree(folder, ignore_errors=True)


def worker_options(scheduler: str, name: str, role: str, certificates: Path) -> tuple[str, ...]:
    """Return the command of a worker: a process of one thread, with its role as a resource."""
    return (
        *(sys.executable, "-P", "-m", "distributed.cli.dask_worker", scheduler, "--name", name),
        *("--nthreads", "1", "--no-nanny", "--death-timeout", "60"),
        *("--no-dashboard", "--dashboard-address", dask_settings.HTTP_ADDRESS),
        *("--memory-limit", "0"),  # else Dask reads the memory in use ten times a second
        *("--resources", f"{role}=1", "--local-directory", str(certificates / "spill")),
        *("--tls-ca-file", str(certificates / CA)),
        *("--tls-cert", str(certificates / CERTIFICATE)),
        *("--tls-key", str(certificates / KEY)),
    )


def _worker(folder: Path, config: dict[str, Any], name: str) -> "subprocess.Popen[bytes]":
    command = worker_options(config["scheduler"], name, config["role"], folder)
    env = os.environ | dask_settings.environment()
    return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=sys.stderr, env=env)


def _await_end(over: threading.Event) -> None:
    while sys.stdin.readline():
        pass
    over.set()


if __name__ == "__main__":
    main()
