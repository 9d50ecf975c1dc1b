"""Operational analysis: utilisation of each resource, and its demand per request.

Service demand D = U/X: busy seconds of a resource divided by completed requests (Denning and
Buzen, The operational analysis of queueing network models, 1978). A resource of capacity c serves
at most c/D requests per second, so the smallest c/D bounds the service's capacity (Lazowska et
al., Quantitative system performance, 1984, chapter 5).
"""

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from loadstone.diagnosis.service import KEYSTONE, MeasuredService
from loadstone.monitor.metrics import Metrics, mean_over_time
from loadstone.monitor.roles import Role

NEGLIGIBLE = 1e-9
EDGES = 2  # readings before and after the load
LEAST_REQUESTS = 20  # with fewer, the demand per request is unknown
LIVED = 0.9  # share of the load; a process that was there for less began or ended in it


class BottleneckKind(StrEnum):
    """Kind of the resource that saturates first."""

    CPU = "cpu"
    DISK = "disk"
    MEMORY = "memory"
    CONNECTIONS = "connections"
    LOCK = "lock"
    WORKERS = "workers"
    QUEUE = "queue"
    CACHE = "cache"
    BALANCER = "balancer"
    GENERATOR = "generator"
    NONE = "none"


MACHINE = "machine"
OTHERS = {
    Role.WEB: "the web server",
    Role.DATABASE: "the database",
    Role.CACHE: "the cache",
    Role.BALANCER: "the balancer",
    Role.DIRECTORY: "the directory",
    Role.PROVIDER: "the identity provider",
    Role.GENERATOR: "the load generator",
}
ROLES = (Role.KEYSTONE, *OTHERS)  # whose CPU is told apart
HERE = frozenset({MACHINE, *Role})  # sources of this machine and its processes
DATABASES = ("mariadb", "postgres")
KINDS = ("selects", "inserts", "updates", "deletes")  # statements that read or write rows
PER_REQUEST = ("statements", *KINDS, "commits", "rollbacks", "rows_read", "log_fsyncs")


def role_name(role: Role, service: MeasuredService) -> str:
    """Return the name of a role within a sentence."""
    return service.name if role is Role.KEYSTONE else OTHERS[role]


def cpu_name(role: Role, service: MeasuredService) -> str:
    """Return the name of a role's CPU: "the database's CPU"."""
    return f"{role_name(role, service)}'s CPU"


def worker_threads(service: MeasuredService) -> str:
    """Return the name of all its threads that serve requests."""
    return service.part("worker threads")


@dataclass(frozen=True, slots=True)
class Setup:
    """The known configuration of the service; None: unknown."""

    workers: int | None = None  # processes of the service, over all nodes
    threads: int | None = None  # of each worker
    pool: int | None = None  # database connections that one worker may open
    cache: str | None = None  # as in `lab up --with cache=`
    is_elsewhere: bool = False  # no part of the service is on this machine
    service: MeasuredService = KEYSTONE


@dataclass(frozen=True, slots=True)
class ResourceUse:
    """Use of one resource during a phase of load."""

    name: str  # "Keystone's CPU"
    kind: BottleneckKind
    role: str  # a Role, or "machine"
    busy: float  # mean amount in use
    capacity: float
    unit: str  # of both: "cores", "connections"
    demand_s: float | None = None  # busy seconds per request; None: unknown

    @property
    def is_time_shared(self) -> bool:
        """Whether requests occupy it for a time, one after another."""
        if self.kind in (BottleneckKind.WORKERS, BottleneckKind.CONNECTIONS):
            return self.role == Role.KEYSTONE
        return self.kind in (BottleneckKind.CPU, BottleneckKind.DISK, BottleneckKind.BALANCER)

    @property
    def utilisation(self) -> float:
        """Share of the capacity that is in use."""
        return self.busy / self.capacity if self.capacity > 0 else 0.0

    @property
    def bound_rps(self) -> float | None:
        """Requests per second at which this resource would be fully busy."""
        if self.demand_s is None or self.demand_s <= NEGLIGIBLE:
            return None
        return self.capacity / self.demand_s


def host_of(use: ResourceUse) -> str:
    """Return the other machine on which CPU was used; empty: this one."""
    return use.name.partition(" of " if use.role == MACHINE else " on ")[2]


def of_machine(figure: str, host: str) -> str:
    """Return the name of a figure of another machine; of this one without a host."""
    return f"{figure} of {host}" if host else figure


@dataclass(frozen=True, slots=True)
class Observation:
    """Resource usage during a phase of load, and figures that explain it."""

    duration_s: float
    requests: int
    uses: tuple[ResourceUse, ...]  # the most utilised first
    figures: tuple[tuple[str, float], ...] = ()
    service: MeasuredService = KEYSTONE

    def figure(self, name: str) -> float | None:
        """Return a figure, or None if it was not measured."""
        return dict(self.figures).get(name)

    def use(self, kind: BottleneckKind, role: str) -> ResourceUse | None:
        """Return the use of a resource, or None if it was not measured."""
        return next((one for one in self.uses if (one.kind, one.role) == (kind, role)), None)

    def cpu_of(self, role: str) -> tuple[ResourceUse, ...]:
        """Return the use of CPU by a role, one for each machine that it is on."""
        return tuple(one for one in self.uses if (one.kind, one.role) == (BottleneckKind.CPU, role))

    def cpu_demand_s(self, role: str) -> float | None:
        """Return the CPU of a role per request, over all machines; None: not known."""
        found = [one.demand_s for one in self.cpu_of(role) if one.demand_s is not None]
        return sum(found) if found else None

    @property
    def machines(self) -> tuple[ResourceUse, ...]:
        """The use of the CPU of this machine and of others."""
        cpus = (one for one in self.uses if one.kind is BottleneckKind.CPU)
        return tuple(one for one in cpus if one.role == MACHINE)

    def machine(self, host: str = "") -> ResourceUse | None:
        """Return the use of a machine's CPU, of this one without a host; None: not measured."""
        return next((one for one in self.machines if host_of(one) == host), None)

    @property
    def service_machine(self) -> ResourceUse | None:
        """The use of the CPU of the machine that the service is on; of this one if unknown."""
        own = self.use(BottleneckKind.CPU, Role.KEYSTONE)
        return self.machine(host_of(own) if own else "")

    @property
    def throughput_rps(self) -> float:
        """Completed requests per second."""
        return self.requests / self.duration_s if self.duration_s > 0 else 0.0


def observe(metrics: Metrics, requests: int, setup: Setup = Setup()) -> Observation:
    """Return the use of each resource between the first and the last reading."""
    duration_s = max(metrics.duration_s, NEGLIGIBLE)
    view = _View(metrics, duration_s, _duration_here_s(metrics), requests, setup, metrics.sources())
    uses = sorted(view.uses(), key=lambda one: one.utilisation, reverse=True)
    figures = tuple((name, value) for name, value in view.figures() if value is not None)
    return Observation(metrics.duration_s, requests, tuple(uses), figures, setup.service)


def _duration_here_s(metrics: Metrics) -> float:
    """Return the time from the first to the last reading of this machine."""
    here = [i for i, one in enumerate(metrics.names) if one.source.partition("/")[0] in HERE]
    times_s = metrics.time_s[np.isin(metrics.series, here)]
    return max(float(times_s[-1] - times_s[0]) if len(times_s) else 0.0, NEGLIGIBLE)


@dataclass(frozen=True, slots=True)
class _Backend:
    """A backend of haproxy: its servers with a limit, and the requests that wait for any."""

    sessions: float
    sessions_limit: float  # 0: no server has one
    queue: float | None

    @property
    def utilisation(self) -> float:
        return self.sessions / self.sessions_limit if self.sessions_limit else 0.0


@dataclass(frozen=True, slots=True)
class _View:
    """Reads uses and figures from metrics."""

    metrics: Metrics
    duration_s: float
    duration_here_s: float  # of this machine's readings: other sources are read at other times
    requests: int
    setup: Setup
    sources: tuple[str, ...]

    def uses(self) -> Iterator[ResourceUse]:
        """Yield the use of each resource that was measured."""
        for prefix in self.heads(MACHINE):
            yield from self.machine(prefix)
        for role in ROLES:
            for prefix in self.heads(role.value):
                yield from self.role_cpu(role, prefix)
        yield from self.services()

    def figures(self) -> Iterator[tuple[str, float | None]]:
        """Yield figures that explain why a resource is busy, or why none is."""
        yield from self.machine_figures()
        yield from self.worker_figures()
        yield from self.jvm_figures()
        yield from self.waits_for_cores()
        yield from self.database_figures()
        yield from self.queue_figures()
        yield "service_memory_bytes", self.means(self.heads(Role.KEYSTONE.value), "memory_bytes")

    def heads(self, kind: str) -> tuple[str, ...]:
        """Return the sources of a kind: "machine", "machine@host", "uwsgi-2"."""
        found = (source.partition("/")[0] for source in self.sources)
        exact = re.compile(rf"{re.escape(kind)}(-\d+)?(@.*)?")
        return tuple(dict.fromkeys(head for head in found if exact.fullmatch(head)))

    @property
    def databases(self) -> tuple[str, ...]:
        """The sources of the database servers."""
        return tuple(head for kind in DATABASES for head in self.heads(kind))

    def below(self, prefix: str) -> tuple[str, ...]:
        """Return the sources below another."""
        return tuple(one for one in self.sources if one.startswith(f"{prefix}/"))

    def per_second(self, source: str, metric: str) -> float | None:
        """Return the increase of a counter per second.

        A process may live for a part of the load. A service, and another machine, may be read every
        few seconds, or not to the end: their own time counts.
        """
        increase = self.metrics.increase(source, metric)
        if increase is None:
            return None
        if source.partition("/")[0] in HERE:
            return increase / self.duration_here_s
        times, _ = self.metrics.of(source, metric)
        return increase / max(float(times[-1] - times[0]), NEGLIGIBLE)

    def total(self, sources: tuple[str, ...], metric: str) -> float | None:
        """Return the increase per second over several sources; None if none has the metric."""
        found = [value for one in sources if (value := self.per_second(one, metric)) is not None]
        return sum(found) if found else None

    def level(self, source: str, metric: str) -> float | None:
        """Return the mean of a gauge under load, or None if it was not read.

        The first and the last reading are from before and after the load.
        """
        times, values = self.metrics.of(source, metric)
        if len(values) > EDGES + 1:
            times, values = times[1:-1], values[1:-1]
        return mean_over_time(times, values) if len(values) else None

    def means(self, sources: tuple[str, ...], metric: str) -> float | None:
        """Return the sum of the means of a gauge; None if none of the sources has it."""
        found = [v for one in sources if (v := self.level(one, metric)) is not None]
        return sum(found) if found else None

    def demand(self, busy: float) -> float | None:
        """Return the busy seconds per request, or None for too few requests."""
        if self.requests < LEAST_REQUESTS:
            return None
        return busy * self.duration_s / self.requests

    def shared(
        self, name: str, kind: BottleneckKind, role: str, amounts: tuple[float, float], unit: str
    ) -> ResourceUse:
        """Return the use of a resource that requests occupy for a time; amounts: busy, capacity."""
        busy, capacity = amounts
        return ResourceUse(name, kind, role, busy, capacity, unit, self.demand(busy))

    def cores(self, prefix: str) -> tuple[str, ...]:
        """Return the sources of a machine's cores."""
        return tuple(one for one in self.below(prefix) if re.search(r"/cpu\d+$", one))

    def machine(self, prefix: str) -> Iterator[ResourceUse]:
        """Yield CPU, memory and disks of one machine."""
        host = prefix.partition("@")[2]
        of = f" of {host}" if host else ""
        cores = self.cores(prefix)
        busy = self.total(cores, "cpu_busy_seconds_total")
        if busy is not None:
            yield ResourceUse(
                f"the machine's CPU{of}",
                BottleneckKind.CPU,
                MACHINE,
                busy,
                float(len(cores)),
                "cores",
                self.machine_demand(host),
            )
        memory = self.level(prefix, "memory_total_bytes")
        free = self.level(prefix, "memory_available_bytes")
        if memory and free is not None:
            name = f"memory{of}"
            gib = 2**30
            used = (memory - free) / gib
            yield ResourceUse(name, BottleneckKind.MEMORY, MACHINE, used, memory / gib, "GiB")
        for disk in self.below(f"{prefix}/disk"):
            share = self.per_second(disk, "disk_busy_seconds_total")
            if share:
                name = f"disk {disk.rpartition('/')[2]}{of}"
                yield self.shared(name, BottleneckKind.DISK, MACHINE, (share, 1.0), "disks")

    def machine_demand(self, host: str) -> float | None:
        """Return the CPU per request on one machine, without that of other programs.

        If no process of the service was seen, and one other machine was: that of all its programs.
        """
        heads = tuple(
            head
            for role in ROLES
            for head in self.heads(role.value)
            if head.partition("@")[2] == host
        )
        busy = self.total(heads, "cpu_seconds_total")
        if busy is None and host and self.has_one_unknown_machine:
            busy = self.total(self.cores(f"{MACHINE}@{host}"), "cpu_busy_seconds_total")
        return None if busy is None else self.demand(busy)

    @property
    def has_one_unknown_machine(self) -> bool:
        """Whether the service must be on the one other machine, whose processes are not known."""
        others = [one for one in self.heads(MACHINE) if "@" in one]
        roles = (role for role in ROLES if role is not Role.GENERATOR)
        return len(others) == 1 and not any(self.heads(role.value) for role in roles)

    def role_cpu(self, role: Role, prefix: str) -> Iterator[ResourceUse]:
        """Yield the CPU of one role's processes."""
        busy = self.per_second(prefix, "cpu_seconds_total")
        if busy is None or (busy == 0 and role is not Role.KEYSTONE):
            return
        host = prefix.partition("@")[2]
        cores = self.metrics.last(prefix, "cores_allowed")
        if not cores:  # none is known while no process lives
            cores = float(len(self.cores(f"{MACHINE}@{host}" if host else MACHINE))) or 1.0
        if role is Role.KEYSTONE and self.setup.workers:
            cores = min(cores, self.setup.workers * (self.setup.threads or 1))
        if role in (Role.WEB, Role.BALANCER):
            cores = min(cores, self.metrics.last(prefix, "threads") or cores)
        of = f" on {host}" if host else ""
        name = f"{cpu_name(role, self.setup.service)}{of}"
        yield self.shared(name, BottleneckKind.CPU, role.value, (busy, cores), "cores")

    def services(self) -> Iterator[ResourceUse]:
        """Yield the services' own counters: slots, connections, sessions."""
        metrics = self.metrics
        slots = self.heads("uwsgi")
        count = self.means(slots, "slots")
        if count:
            # The gauge is sampled once a second; the seconds are exact, for ended requests.
            busy = self.means(slots, "slots_busy") or 0.0
            running = self.total(slots, "running_seconds_total") or 0.0
            busy = min(max(running, busy), count)
            name = worker_threads(self.setup.service)
            yield self.shared(name, BottleneckKind.WORKERS, Role.KEYSTONE, (busy, count), "threads")
        for source in self.heads("apache"):
            used, most = self.level(source, "slots_busy"), metrics.last(source, "slots_limit")
            if used is not None and most:
                yield ResourceUse(
                    "Apache's threads", BottleneckKind.WORKERS, Role.WEB, used, most, "threads"
                )
        for source in self.databases:
            used, most = (
                self.level(source, "connections"),
                metrics.last(source, "connections_limit"),
            )
            if used is not None and most:
                name = "the database's connections"
                yield ResourceUse(
                    name, BottleneckKind.CONNECTIONS, Role.DATABASE, used, most, "connections"
                )
        yield from self.pool()
        yield from self.jvm()
        yield from self.balancer()

    def pool(self) -> Iterator[ResourceUse]:
        """Yield the workers' pools of database connections, in use while a transaction is open."""
        used = self.means(self.databases, "transactions_open")
        if used is not None and self.setup.pool and self.setup.workers:
            most = float(self.setup.pool * self.setup.workers)
            name = self.setup.service.part("database connection pools")
            yield self.shared(
                name, BottleneckKind.CONNECTIONS, Role.KEYSTONE, (used, most), "connections"
            )

    def jvm(self) -> Iterator[ResourceUse]:
        """Yield heap and pool of database connections of Java virtual machines."""
        heads = self.heads("jvm")
        used, most = (self.means(heads, f"heap_{name}_bytes") for name in ("used", "limit"))
        if used is not None and most:
            gib, kind = 2**30, BottleneckKind.MEMORY
            name = self.setup.service.part("heap")
            yield ResourceUse(name, kind, Role.KEYSTONE, used / gib, most / gib, "GiB")
        active, idle = (self.means(heads, f"pool_{name}") for name in ("active", "idle"))
        if active is None or idle is None:
            return
        # The limit is published by none; a pool has opened as many as it needed so far.
        capacity = self.setup.pool * len(heads) if self.setup.pool else active + idle
        if capacity:
            name = self.setup.service.part("pool of database connections")
            yield self.shared(
                name,
                BottleneckKind.CONNECTIONS,
                Role.KEYSTONE,
                (min(active, capacity), float(capacity)),
                "connections",
            )

    def balancer(self) -> Iterator[ResourceUse]:
        """Yield the balancer's sessions: of the process, and of its fullest backend."""
        backend = self.fullest_backend()
        if backend is not None and backend.sessions_limit:
            name = "the balancer's sessions to its servers"
            amounts = (backend.sessions, backend.sessions_limit)
            yield self.shared(name, BottleneckKind.BALANCER, Role.BALANCER, amounts, "sessions")
        for head in self.heads("haproxy"):
            connections = self.level(head, "connections")
            most_open = self.metrics.last(head, "connections_limit")
            if connections is not None and most_open:
                name = "the balancer's connections"
                yield ResourceUse(
                    name,
                    BottleneckKind.CONNECTIONS,
                    Role.BALANCER,
                    connections,
                    most_open,
                    "connections",
                )

    def fullest_backend(self) -> _Backend | None:
        """Return the backend with the most utilised servers; None without any.

        Each is judged on its own, because the sessions that an idle one may have do not help a full
        one. Where no server has a limit, it is the one with the longest queue.
        """
        rows: dict[str, list[str]] = {}
        for head in self.heads("haproxy"):
            for one in self.below(head):
                if not one.endswith("/frontend"):
                    rows.setdefault(one.rpartition("/")[0], []).append(one)
        backends = [self.backend(tuple(one)) for one in rows.values()]
        return max(backends, key=lambda one: (one.utilisation, one.queue or 0.0), default=None)

    def backend(self, rows: tuple[str, ...]) -> _Backend:
        """Return what the rows of a backend say: those of its servers, and its own."""
        limits = {
            one: limit
            for one in rows
            if not one.endswith("/backend") and (limit := self.metrics.last(one, "sessions_limit"))
        }
        used = self.means(tuple(limits), "sessions") or 0.0
        return _Backend(used, sum(limits.values()), self.means(rows, "queue"))

    def machine_figures(self) -> Iterator[tuple[str, float | None]]:
        """Yield the kernel's figures on waiting."""
        heads = self.heads(MACHINE)
        cores = tuple(core for head in heads for core in self.cores(head))
        count = max(len(cores), 1)
        for name in ("steal", "iowait"):
            value = self.total(cores, f"cpu_{name}_seconds_total")
            yield f"{name}_share", None if value is None else value / count
        for kind in ("cpu", "io", "memory"):
            yield f"pressure_{kind}", self.total(heads, f"pressure_{kind}_some_seconds_total")
        yield "pressure_memory_full", self.total(heads, "pressure_memory_full_seconds_total")
        for head in heads:
            ways = (self.per_second(head, f"swap_{way}_bytes_total") for way in ("in", "out"))
            swapped = [value for value in ways if value is not None]
            host = head.partition("@")[2]
            yield of_machine("swap_bytes_per_s", host), sum(swapped) if swapped else None
            overflows = self.per_second(head, "listen_overflows_total")
            yield of_machine("listen_overflows_per_s", host), overflows
        # Of this machine: of others, not all roles may be known.
        here = tuple(one for one in cores if "@" not in one)
        busy = self.total(here, "cpu_busy_seconds_total")
        roles = [
            self.total(
                tuple(head for head in self.heads(role.value) if "@" not in head),
                "cpu_seconds_total",
            )
            for role in (*ROLES, Role.OTHER_SIDE, Role.OTHER)  # OTHER: of the lab's own cloud
        ]
        if busy is not None and any(value is not None for value in roles):
            known = sum(value for value in roles if value is not None)
            yield "others_cores", max(busy - known, 0.0)

    def worker_figures(self) -> Iterator[tuple[str, float | None]]:
        """Yield how the service's workers spend their time."""
        heads = self.heads(Role.KEYSTONE)
        workers = [one for head in heads for one in self.below(head)]
        count = self.setup.workers or self.means(self.heads("uwsgi"), "workers")
        spent = sorted(
            (
                (running, self.per_second(one, "cpu_wait_seconds_total") or 0.0)
                for one in workers
                if (running := self.per_second(one, "cpu_seconds_total")) is not None
            ),
            reverse=True,
        )
        if spent and count:
            own = spent[: max(1, int(count))]  # of many workers, not all are read one by one
            # Averages per worker: cores used, and threads that waited for a core.
            ran, waited = (sum(one) / len(own) for one in zip(*own, strict=True))
            if len(workers) > len(own) and self.are_replaced(workers):
                # No process lived for the whole time, but all of them together are known.
                ran = (self.total(heads, "cpu_seconds_total") or 0.0) / len(own)
                waited = sum(waiting for _, waiting in spent) / len(own)
            yield "worker_cpu", ran
            yield "worker_cpu_wait", waited
        elif not count and (uses := tuple(self.service_cpu())):
            # Threads come and go: of the cores it may use, how many it used or waited for.
            waiting = self.total(heads, "cpu_wait_seconds_total") or 0.0
            busy = sum(one.busy for one in uses)
            yield "cores_wanted", (busy + waiting) / sum(one.capacity for one in uses)
            yield "cores_waited_for", waiting
        yield "workers", count
        yield "threads_per_worker", self.setup.threads
        # By quota and affinity, whatever the number of workers.
        yield "cores_allowed", self.metrics.last(Role.KEYSTONE, "cores_allowed") or None

    def are_replaced(self, workers: Sequence[str]) -> bool:
        """Return whether a worker began or ended in the course of the load."""
        times_s = (self.metrics.of(one, "cpu_seconds_total")[0] for one in workers)
        lived_s = [float(one[-1] - one[0]) for one in times_s if len(one)]
        return min(lived_s, default=math.inf) < LIVED * self.duration_here_s

    def service_cpu(self) -> Iterator[ResourceUse]:
        """Yield the CPU of the service itself."""
        for prefix in self.heads(Role.KEYSTONE):
            yield from self.role_cpu(Role.KEYSTONE, prefix)

    def jvm_figures(self) -> Iterator[tuple[str, float | None]]:
        """Yield how long garbage collection stops a virtual machine, and waits for its pool."""
        heads = self.heads("jvm")
        pauses = [self.total((head,), "gc_pause_seconds_total") for head in heads]
        yield "gc_pause_share", max((one for one in pauses if one is not None), default=None)
        live, most = (self.means(heads, f"heap_{name}_bytes") for name in ("live", "limit"))
        yield "heap_live_share", live / most if live is not None and most else None
        # Seconds that requests waited, per second: so many waited on average (Little).
        yield "pool_waiting", self.total(heads, "pool_wait_seconds_total")

    def waits_for_cores(self) -> Iterator[tuple[str, float | None]]:
        """Yield how many threads of a server waited for a core, on average."""
        for role in (Role.DATABASE, Role.BALANCER, Role.DIRECTORY, Role.PROVIDER):
            waiting = self.total(self.heads(role.value), "cpu_wait_seconds_total")
            yield f"{role.value}_cpu_wait", waiting

    def database_figures(self) -> Iterator[tuple[str, float | None]]:
        """Yield costs per request in database and cache, and how many sessions wait there."""
        sources = self.databases
        for metric in PER_REQUEST:
            yield f"{metric}_per_request", self.per_request(sources, f"{metric}_total")
        waiting = self.total(sources, "lock_wait_seconds_total")
        yield "lock_waiters", waiting or self.means(sources, "lock_waiters")
        for gauge in ("committing", "io_waiters", "active", "transactions_open"):
            yield gauge, self.means(sources, gauge)
        yield "refused_connections_per_s", self.total(sources, "connections_refused_total")
        caches = self.heads("memcached")
        for metric in ("gets", "sets"):
            yield f"cache_{metric}_per_request", self.per_request(caches, f"{metric}_total")
        gets, hits = self.total(caches, "gets_total"), self.total(caches, "hits_total")
        yield "cache_hit_ratio", hits / gets if gets and hits is not None else None
        yield "cache_evictions_per_s", self.total(caches, "evictions_total")

    def per_request(self, sources: tuple[str, ...], metric: str) -> float | None:
        """Return the increase of a counter per request."""
        value = self.total(sources, metric)
        return (
            value * self.duration_s / self.requests if value is not None and self.requests else None
        )

    def queue_figures(self) -> Iterator[tuple[str, float | None]]:
        """Yield how many requests wait where."""
        yield "web_queue", self.means(self.heads("uwsgi"), "queue")
        yield "web_drops_per_s", self.total(self.heads("nginx"), "dropped_total")
        backend = self.fullest_backend()
        yield "balancer_queue", None if backend is None else backend.queue
        yield "directory_queue", self.means(self.heads("slapd"), "queue")
        yield "respawns_per_s", self.total(self.heads("uwsgi"), "respawns_total")
