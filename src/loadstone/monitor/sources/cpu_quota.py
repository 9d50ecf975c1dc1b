"""CPU quotas of control groups, which limit containers and systemd services."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path("/sys/fs/cgroup")
NONE = -1.0  # cpu.cfs_quota_us without a quota


@dataclass(frozen=True, slots=True)
class CpuQuota:
    """How many cores the processes of a control group may use together."""

    group: str
    cores: float


def quota_of(pid: int, root: Path = ROOT) -> CpuQuota | None:
    """Return the smallest quota of a process' control group and those above it; None: no quota."""
    try:
        lines = Path(f"/proc/{pid}/cgroup").read_text().splitlines()
    except OSError:
        return None  # ended, or of another user
    found = [quota for line in lines for quota in _quotas(line, root)]
    return min(found, key=lambda one: one.cores, default=None)


def _quotas(line: str, root: Path) -> Iterator[CpuQuota]:
    """Yield the quotas of one hierarchy (man 7 cgroups: ID:CONTROLLERS:PATH)."""
    _, _, rest = line.partition(":")
    controllers, _, path = rest.partition(":")
    if controllers == "":
        read, base = _of_version_2, root
    elif "cpu" in controllers.split(","):
        read, base = _of_version_1, root / controllers
        base = base if base.is_dir() else root / "cpu"
    else:
        return
    group = base / path.lstrip("/")
    for one in (group, *group.parents):
        if not one.is_relative_to(base):
            return
        cores = read(one)
        if cores is not None:
            yield CpuQuota(str(one), cores)


def _of_version_2(group: Path) -> float | None:
    """Read cpu.max: quota or "max", and period, both in microseconds."""
    quota, _, period = _text(group / "cpu.max").partition(" ")
    return float(quota) / float(period) if quota.isdigit() and period.strip().isdigit() else None


def _of_version_1(group: Path) -> float | None:
    try:
        quota = float(_text(group / "cpu.cfs_quota_us") or NONE)
        period = float(_text(group / "cpu.cfs_period_us") or NONE)
    except ValueError:
        return None
    return quota / period if quota > 0 and period > 0 else None


def _text(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""
