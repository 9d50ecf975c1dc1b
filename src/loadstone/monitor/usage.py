"""What a stretch of load cost the machine."""

import os
import time
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Usage:
    """CPU over one trial; shares are of all cores together, 0..1."""

    wall_s: float
    cores: int
    machine_busy: float
    machine_steal: float  # taken by the hypervisor for others
    # User + system seconds of the service's processes; None where they are not on this machine.
    service_cpu_s: float | None
    generator_cpu_s: float  # of this process: the engine, and what watches it

    @property
    def service_busy(self) -> float | None:
        """Share of all cores that the service used."""
        if self.service_cpu_s is None or self.wall_s <= 0:
            return None
        return self.service_cpu_s / (self.wall_s * self.cores)

    @property
    def generator_busy(self) -> float:
        """Share of all cores that the load generator used."""
        return self.generator_cpu_s / (self.wall_s * self.cores) if self.wall_s > 0 else 0.0

    @property
    def others_busy(self) -> float | None:
        """Share of all cores that neither used; None where the service is elsewhere."""
        if self.service_busy is None:
            return None
        return self.machine_busy - self.service_busy - self.generator_busy


@dataclass(frozen=True, slots=True)
class Snapshot:
    """CPU clocks at one instant, in seconds since boot or since the processes' start."""

    at_s: float
    busy_s: float
    steal_s: float
    total_s: float
    service_s: float | None
    own_s: float


def snapshot(pids: Iterable[int] | None) -> Snapshot:
    """Read the CPU clocks of the machine and of `pids` (None: not on this machine)."""
    import psutil

    times = psutil.cpu_times()
    steal = getattr(times, "steal", 0.0)
    # guest time is inside user time already (man 5 proc).
    total = times.user + times.nice + times.system + times.idle
    total += sum(getattr(times, name, 0.0) for name in ("iowait", "irq", "softirq")) + steal
    idle = times.idle + getattr(times, "iowait", 0.0)
    return Snapshot(
        at_s=time.monotonic(),
        busy_s=total - idle - steal,
        steal_s=steal,
        total_s=total,
        service_s=None if pids is None else sum(cpu_s(pid) for pid in pids),
        own_s=time.process_time(),
    )


def cpu_s(pid: int) -> float:
    """Give user + system seconds of a process; 0 for one that is gone."""
    import psutil

    try:
        times = psutil.Process(pid).cpu_times()
    except psutil.Error:
        return 0.0
    return float(times.user + times.system)


def usage(before: Snapshot, after: Snapshot) -> Usage:
    """Say what happened between two snapshots of the same processes."""
    total = max(after.total_s - before.total_s, 1e-9)
    service = None
    if before.service_s is not None and after.service_s is not None:
        service = max(after.service_s - before.service_s, 0.0)
    return Usage(
        wall_s=after.at_s - before.at_s,
        cores=os.cpu_count() or 1,
        machine_busy=(after.busy_s - before.busy_s) / total,
        machine_steal=(after.steal_s - before.steal_s) / total,
        service_cpu_s=service,
        generator_cpu_s=after.own_s - before.own_s,
    )
