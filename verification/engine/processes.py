"""Runs programs and functions in processes of their own, and reads what they took."""

import multiprocessing
import os
import re
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import psutil

LOOKED_EVERY_S = 0.1
Asked = TypeVar("Asked")
Given = TypeVar("Given")


@dataclass(frozen=True, slots=True)
class Ended:
    """What a program said, and what it and its children took."""

    told: str
    cpu_s: float
    peak_mb: float


def afresh(work: Callable[[Asked], Given], argument: Asked) -> Given:
    """Call it in a new process, which has no memory of what ran before."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(work, (argument,))


def own_peak_mb() -> float:
    """Give the most memory that this process has had, as the kernel keeps it."""
    return _peak_mb("self")


def program(command: Sequence[str], core: int) -> Ended:
    """Run a program of one process on one core."""
    # Not ru_maxrss: that of a child begins with what its parent had.
    bound = ["taskset", "-c", str(core), *command]
    # oha asks for the machine's cores, not for its own, unless this tells it.
    environment = os.environ | {"LC_ALL": "C", "TOKIO_WORKER_THREADS": "1"}
    return _watched(bound, environment, lambda pid: _peak_mb(str(pid)))


def tree(command: Sequence[str], environment: dict[str, str]) -> Ended:
    """Run a program that starts others; its memory is the sum of their shares (PSS)."""
    return _watched(command, environment, _tree_mb)


def _watched(
    command: Sequence[str], environment: dict[str, str], now_mb: Callable[[int], float]
) -> Ended:
    peak_mb = 0.0
    with (
        tempfile.TemporaryFile("w+") as told,
        subprocess.Popen(command, stdout=told, stderr=told, env=environment) as process,
    ):
        ended, status, used = os.wait4(process.pid, os.WNOHANG)
        while not ended:
            time.sleep(LOOKED_EVERY_S)
            peak_mb = max(peak_mb, now_mb(process.pid))
            ended, status, used = os.wait4(process.pid, os.WNOHANG)
        process.returncode = os.waitstatus_to_exitcode(status)
        told.seek(0)
        said = told.read()
    if process.returncode:
        raise SystemExit(f"verify: {' '.join(command)} ended with {process.returncode}:\n{said}")
    return Ended(said, used.ru_utime + used.ru_stime, peak_mb)


def _peak_mb(process: str) -> float:
    found = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{process}/status").read_text())
    return int(found[1]) / 1024 if found else 0.0  # none: it has just ended


def _tree_mb(pid: int) -> float:
    total = 0
    first = psutil.Process(pid)
    for one in [first, *first.children(recursive=True)]:
        try:
            total += one.memory_full_info().pss
        except psutil.Error:
            continue  # it has just ended
    return total / 2**20
