"""CPU usage of the machine and the service during a phase of load."""

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass

from loadstone.monitor import generator
from loadstone.monitor.roles import Role
from loadstone.monitor.service import EndedProcess, Members, ServiceCpu, ServiceProcess

MOST_NAMED = 3  # list this many ended processes of one part; count more
SAMPLE_EVERY_S = 1.0  # CPU time after the last sample is lost if no parent waits for a process


@dataclass(frozen=True, slots=True)
class Usage:
    """CPU usage during a phase of load; shares are of all cores together, 0..1."""

    wall_s: float
    cores: int
    machine_busy: float
    machine_steal: float  # taken by the hypervisor
    # User and system seconds of the service's processes, including those that ended meanwhile; None
    # if they are on another machine.
    service_cpu_s: float | None
    generator_cpu_s: float  # on this machine: engine, monitoring, worker processes
    ended: tuple[EndedProcess, ...] = ()  # ended processes of the service, in that order
    # Of the service whose load took turns with this one's; 0 where no load did.
    other_side_cpu_s: float = 0.0

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
        """Share of all cores that no part of the measurement used.

        None where the service is elsewhere.
        """
        if self.service_busy is None:
            return None
        other_side_busy = self.other_side_cpu_s / (self.wall_s * self.cores)
        return self.machine_busy - self.service_busy - self.generator_busy - other_side_busy


@dataclass(frozen=True, slots=True)
class Snapshot:
    """CPU clocks at one instant, in seconds since boot or since the start of the process."""

    at_s: float
    busy_s: float
    steal_s: float
    total_s: float
    own_s: float


def deaths(usage: Usage) -> Iterator[str]:
    """Describe which processes of the service died, except in parts that vary their number.

    If many of one part ended they are counted, because workers may be replaced after a number of
    requests.
    """
    dead = [one for one in usage.ended if not one.is_elastic]
    for part in dict.fromkeys(one.part for one in dead):
        own = [one for one in dead if one.part == part]
        if len(own) > MOST_NAMED:
            yield f"{len(own)} processes of {part} ended, the first at {own[0].at_s:.0f} s"
            continue
        for one in own:
            yield f"a process of {part} (pid {one.pid}) died at {one.at_s:.0f} s"


class Meter:
    """Measures CPU usage of machine, service and load generator, from its creation to `usage`.

    `other_side` are the processes of a service whose load takes turns with this one's.
    """

    def __init__(self, members: Members, other_side: Members = lambda: None) -> None:
        self._service, self._other_side = _service_cpu(members), _service_cpu(other_side)
        workers = tuple(ServiceProcess(pid, Role.GENERATOR) for pid in generator.workers())
        self._workers = ServiceCpu(lambda: workers)
        self._before = _snapshot()
        self._sampled_s = self._before.at_s

    def sample(self) -> None:
        """Sample the service's processes, at most every SAMPLE_EVERY_S; call it during the load."""
        now_s = time.monotonic()
        if self._service is not None and now_s - self._sampled_s >= SAMPLE_EVERY_S:
            self._sampled_s = now_s
            for one in (self._service, self._other_side, self._workers):
                if one is not None:
                    one.sample(now_s - self._before.at_s)

    def usage(self) -> Usage:
        """Return the usage since the start."""
        before, after = self._before, _snapshot()
        service, other_side = self._service, self._other_side
        for one in (service, other_side, self._workers):
            if one is not None:
                one.sample(after.at_s - before.at_s)
        total = max(after.total_s - before.total_s, 1e-9)
        return Usage(
            wall_s=after.at_s - before.at_s,
            cores=os.cpu_count() or 1,
            machine_busy=(after.busy_s - before.busy_s) / total,
            machine_steal=(after.steal_s - before.steal_s) / total,
            service_cpu_s=None if service is None else service.cpu_s,
            generator_cpu_s=after.own_s - before.own_s + self._workers.cpu_s,
            ended=() if service is None else service.ended,
            other_side_cpu_s=0.0 if other_side is None else other_side.cpu_s,
        )


def _service_cpu(members: Members) -> ServiceCpu | None:
    """Return the account of processes; None if they are not on this machine."""
    return None if members() is None else ServiceCpu(lambda: members() or ())


def _snapshot() -> Snapshot:
    import psutil

    times = psutil.cpu_times()
    steal = getattr(times, "steal", 0.0)
    # user time includes guest time (man 5 proc)
    total = times.user + times.nice + times.system + times.idle
    total += sum(getattr(times, name, 0.0) for name in ("iowait", "irq", "softirq")) + steal
    idle = times.idle + getattr(times, "iowait", 0.0)
    return Snapshot(
        at_s=time.monotonic(),
        busy_s=total - idle - steal,
        steal_s=steal,
        total_s=total,
        own_s=time.process_time(),
    )
