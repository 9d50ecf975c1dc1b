"""Limits the CPU time of processes by a control group; it needs root and cgroup v1 or v2."""

import contextlib
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

V1, V2 = Path("/sys/fs/cgroup/cpu"), Path("/sys/fs/cgroup")
PERIOD_US = 100_000


@contextlib.contextmanager
def quota(pids: Iterable[int], cores: float) -> Iterator[None]:
    """Limit processes to so many cores together; the limit ends with the block."""
    root = V1 if (V1 / "cgroup.procs").exists() else V2
    group = root / f"verify-{os.getpid()}"
    group.mkdir()
    quota_us = int(cores * PERIOD_US)
    try:
        if (group / "cpu.cfs_quota_us").exists():
            (group / "cpu.cfs_quota_us").write_text(str(quota_us))
        else:
            (group / "cpu.max").write_text(f"{quota_us} {PERIOD_US}")
        for pid in pids:
            (group / "cgroup.procs").write_text(str(pid))
        yield
    finally:
        for moved in (group / "cgroup.procs").read_text().split():
            (root / "cgroup.procs").write_text(moved)
        group.rmdir()
