"""The processes of a service and of the load generator, by role."""

import os
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from loadstone.monitor import generator
from loadstone.monitor.metrics import Reading, with_source
from loadstone.monitor.roles import Role, role_of
from loadstone.monitor.service import Members, ServiceCpu, ServiceProcess
from loadstone.monitor.sources.cpu_quota import quota_of

if TYPE_CHECKING:
    import psutil

# A scan for new processes reads all of /proc (5 ms); the CPU time of processes that end in between
# is known from their parents.
SCAN_EVERY = 5
MANY = 48  # with more processes, memory and I/O are read only on scans
MOST_THREADS = 256  # of a process; with more, its threads' waits for a core are not read
MOST_NAMED = 32  # of a role: processes with a series of their own


@dataclass(slots=True)
class _Detail:
    """The last values of one living process."""

    role: Role
    cores: frozenset[int]  # it may run on
    user_s: float = 0.0
    system_s: float = 0.0
    memory_bytes: float = 0.0
    threads: int = 0
    read_bytes: float = 0.0
    written_bytes: float = 0.0
    waits: int = 0  # voluntary context switches
    preemptions: int = 0
    cpu_wait_s: float = 0.0  # runnable, but another task had the core


@dataclass(slots=True)
class Processes:
    """Processes by role; the CPU time of ended processes stays included."""

    members: Members
    name: ClassVar[str] = "processes"
    is_remote: ClassVar[bool] = False
    _known: tuple[ServiceProcess, ...] = ()
    _reads: int = 0
    _cpu: ServiceCpu = field(init=False)
    _details: "dict[psutil.Process, _Detail]" = field(default_factory=dict)
    _ended: dict[Role, _Detail] = field(default_factory=dict)  # sums of the last values
    _roles: dict[str, Role] = field(default_factory=dict)  # by part as accounted
    _quotas: dict[Role, float] = field(default_factory=dict)  # cores; roles without one are absent

    def __post_init__(self) -> None:
        self._known = self._list_processes()
        self._cpu = ServiceCpu(lambda: self._known)

    def read(self) -> Iterator[Reading]:
        """Read CPU time each time; new processes and, of many, details every SCAN_EVERY times."""
        is_scan = self._reads % SCAN_EVERY == 0
        if is_scan and self._reads:
            self._known = self._list_processes()
        self._reads += 1
        self._cpu.sample(time.monotonic())
        living = self._cpu.living
        if is_scan or len(living) <= MANY:
            self._read_details(living, is_scan=is_scan)
        yield from self._by_role()
        yield from self._by_process()

    def close(self) -> None:
        """Nothing is open."""

    def _list_processes(self) -> tuple[ServiceProcess, ...]:
        """List the service's processes and this program's, each with its role as its part."""
        own = {os.getpid(), *generator.workers()}
        theirs = [one for one in self.members() or () if one.pid not in own]
        rows = [(one, self._role(one)) for one in theirs]
        mine = [ServiceProcess(pid, Role.GENERATOR, is_elastic=True) for pid in own]
        return (*mine, *(ServiceProcess(one.pid, role, one.is_elastic) for one, role in rows))

    def _role(self, member: ServiceProcess) -> Role:
        import psutil

        key = f"{member.part}/{member.pid}"
        if key not in self._roles:
            command = ""
            if member.part.startswith("apache"):
                with suppress(psutil.Error, IndexError):
                    command = psutil.Process(member.pid).cmdline()[0]
            self._roles[key] = role_of(member.part, command)
        return self._roles[key]

    def _read_details(
        self, living: "tuple[tuple[psutil.Process, ServiceProcess], ...]", *, is_scan: bool
    ) -> None:
        import psutil

        before, self._details = self._details, {}
        if is_scan:
            self._quotas = _read_quotas(living)
        for process, member in living:
            known = before.pop(process, None)
            detail = known or _Detail(Role(member.part), frozenset())
            with suppress(psutil.Error, OSError), process.oneshot():
                _update(detail, process)
                if is_scan or known is None:
                    detail.cores = frozenset(process.cpu_affinity())
            self._details[process] = detail
        for gone in before.values():
            total = self._ended.setdefault(gone.role, _Detail(gone.role, frozenset()))
            total.user_s += gone.user_s
            total.system_s += gone.system_s
            total.read_bytes += gone.read_bytes
            total.written_bytes += gone.written_bytes
            total.waits += gone.waits
            total.preemptions += gone.preemptions
            total.cpu_wait_s += gone.cpu_wait_s

    def _by_role(self) -> Iterator[Reading]:
        for part, cpu_s in self._cpu.parts_s.items():
            role = Role(part)
            living = [one for one in self._details.values() if one.role is role]
            past = self._ended.get(role)
            counted = [*living, past] if past else living
            cores: frozenset[int] = frozenset().union(*(one.cores for one in living))
            rows = (
                # For children that ended between scans only user + system time is known.
                ("cpu_seconds_total", cpu_s, "s"),
                ("cpu_user_seconds_total", sum(one.user_s for one in counted), "s"),
                ("cpu_system_seconds_total", sum(one.system_s for one in counted), "s"),
                ("cpu_wait_seconds_total", sum(one.cpu_wait_s for one in counted), "s"),
                ("read_bytes_total", sum(one.read_bytes for one in counted), "B"),
                ("written_bytes_total", sum(one.written_bytes for one in counted), "B"),
                ("context_switches_voluntary_total", sum(one.waits for one in counted), "1"),
                ("context_switches_forced_total", sum(one.preemptions for one in counted), "1"),
                ("memory_bytes", sum(one.memory_bytes for one in living), "B"),
                ("threads", sum(one.threads for one in living), "1"),
                ("processes", len(living), "1"),
                # By affinity, and by quota of control groups.
                ("cores_allowed", min(self._quotas.get(role, inf), float(len(cores))), "1"),
            )
            yield from with_source(role.value, rows)

    def _by_process(self) -> Iterator[Reading]:
        """Read CPU per process: a worker that uses one full core is limited by Python's lock."""
        shown: dict[Role, int] = {}
        for process, one in self._details.items():
            if one.role is Role.GENERATOR:
                continue
            shown[one.role] = shown.get(one.role, 0) + 1
            if shown[one.role] <= MOST_NAMED:
                source = f"{one.role.value}/{process.pid}"
                yield Reading(source, "cpu_seconds_total", one.user_s + one.system_s, "s")
                yield Reading(source, "cpu_wait_seconds_total", one.cpu_wait_s, "s")
                yield Reading(source, "threads", one.threads)


@dataclass(slots=True)
class OtherSide:
    """The CPU time of a service whose load takes turns with the measured one's."""

    members: Members
    name: ClassVar[str] = "the service of the other side"
    is_remote: ClassVar[bool] = False
    _cpu: ServiceCpu = field(init=False)

    def __post_init__(self) -> None:
        self._cpu = ServiceCpu(lambda: self.members() or ())

    def read(self) -> Iterator[Reading]:
        """Read its CPU time."""
        self._cpu.sample(time.monotonic())
        total_s = sum(self._cpu.parts_s.values())
        yield Reading(Role.OTHER_SIDE.value, "cpu_seconds_total", total_s, "s")

    def close(self) -> None:
        """Nothing is open."""


def _read_quotas(
    living: "tuple[tuple[psutil.Process, ServiceProcess], ...]",
) -> dict[Role, float]:
    """Return the sum of the quotas of each role's control groups; none if a process has none."""
    groups: dict[Role, dict[str, float]] = {}
    free: set[Role] = set()
    for process, member in living:
        role = Role(member.part)
        found = quota_of(process.pid)
        if found is None:
            free.add(role)
        else:
            groups.setdefault(role, {})[found.group] = found.cores
    return {role: sum(own.values()) for role, own in groups.items() if role not in free}


def _update(detail: _Detail, process: "psutil.Process") -> None:
    import psutil

    times, switches = process.cpu_times(), process.num_ctx_switches()
    detail.user_s, detail.system_s = times.user, times.system
    detail.memory_bytes = process.memory_info().rss
    detail.threads = process.num_threads()
    detail.waits, detail.preemptions = switches.voluntary, switches.involuntary
    with suppress(psutil.AccessDenied):  # of another user
        io = process.io_counters()
        detail.read_bytes, detail.written_bytes = io.read_bytes, io.write_bytes
    if detail.role is not Role.GENERATOR and detail.threads <= MOST_THREADS:
        detail.cpu_wait_s = max(detail.cpu_wait_s, _cpu_wait_s(process.pid))


def _cpu_wait_s(pid: int) -> float:
    """Return how long the living threads were runnable without a core."""
    total_ns = 0
    for task in os.scandir(f"/proc/{pid}/task"):
        # Documentation/scheduler/sched-stats.rst: time on the CPU, time on a run queue, slices.
        with suppress(OSError, IndexError):
            total_ns += int(Path(task.path, "schedstat").read_text().split()[1])
    return total_ns / 1e9
