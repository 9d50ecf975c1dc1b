"""Determines the bottleneck from an observation; each rule describes one kind of limit.

A rule examines where the service's workers spend their time. Busy workers that run or wait for a
core are limited by CPU; busy workers that sleep wait for something else: a lock, a disk, a
connection of the pool, another server. Thresholds are constants with the reason beside them.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from loadstone.diagnosis.demand import (
    MACHINE,
    ROLES,
    BottleneckKind,
    Observation,
    ResourceUse,
    Setup,
    host_of,
    of_machine,
    role_name,
)
from loadstone.diagnosis.finding import Confidence, Evidence, Finding, three_digits
from loadstone.monitor.roles import Role

OTHER_WORK = "other-work"  # id of the finding that other programs take the cores
FULL = 0.9  # a resource that is busy for this share of the time is saturated
MOST = 0.7  # ... or for this share, while as many threads as it has cores wait for one
RUNNABLE = 0.8  # workers that run or wait for a core for this share of the time are bound by CPU
WAITING = 0.5  # sessions, on average, that wait for a lock or a disk
# Share of a pool's connections. A thread that holds one also runs Python before and after its
# transaction, so at most 80 % are in use, measured with one connection for eight threads.
IN_USE = 0.7
QUEUED = 1.0  # requests, on average, that wait in a queue
MANY_STATEMENTS = 15.0  # per request; with its cache a Keystone needs 5 to 14 (docs/monitor.md)
SWAPPING = 2**20  # bytes per second
IDLE_CORES = 0.5
MOST_OF_ONE_CORE = 1.2  # a worker's threads that share Python's global lock run one at a time
OTHERS = 0.25  # share of the cores used by work unrelated to the test
STARVED = 0.25  # share of its runnable time in which a worker waits for a core
# Share of the time in which garbage collection stops the service. The JVM's own aim is 8 % with its
# default collector (GCTimeRatio=12); above twice that, memory decides.
MUCH_GC = 0.16


@dataclass(frozen=True, slots=True)
class Case:
    """Input of the rules."""

    seen: Observation
    setup: Setup
    is_generator_valid: bool = True
    is_overloaded: bool = False  # the trial overloaded the service


@dataclass(frozen=True, slots=True)
class Bottleneck:
    """The resource that limits throughput."""

    kind: BottleneckKind
    role: str
    utilisation: float | None
    demand_s: float | None
    sentence: str


@dataclass(frozen=True, slots=True)
class FoundLimit:
    """One limit that a rule found."""

    id: str
    kind: BottleneckKind
    role: str
    use: ResourceUse | None
    sentence: str
    advice: str
    figures: tuple[tuple[str, float | None], ...] = ()


Rule = Callable[[Case], FoundLimit | None]


@dataclass(frozen=True, slots=True)
class BottleneckVerdict:
    """The bottleneck, and findings for all limits, the bottleneck first."""

    bottleneck: Bottleneck
    findings: tuple[Finding, ...]


def name_bottleneck(case: Case) -> BottleneckVerdict:
    """Apply all rules; the first limit found is the bottleneck."""
    found = (limit for rule in RULES if (limit := rule(case)) is not None)
    limits = list(found)
    first = limits[0] if limits else _none(case)
    use = first.use
    return BottleneckVerdict(
        Bottleneck(
            kind=first.kind,
            role=first.role,
            utilisation=use.utilisation if use else None,
            demand_s=use.demand_s if use else None,
            sentence=first.sentence,
        ),
        tuple(_finding(limit, case) for limit in limits or [first]),
    )


def generator(case: Case) -> FoundLimit | None:
    """The load generator fell behind its schedule."""
    if case.is_generator_valid:
        return None
    use = case.seen.use(BottleneckKind.CPU, Role.GENERATOR)
    spent = f": it used {use.busy:.2f} of {_counted(use)}" if use else ""
    sentence = f"The load generator was the limit, not the service{spent}."
    advice = "Give it cores of its own (--generator-cores), or a machine of its own."
    machine = case.seen.machine()
    others = case.seen.figure("others_cores") or 0.0
    if use and machine and machine.utilisation >= FULL and others >= OTHERS * machine.capacity:
        sentence = (
            "The load generator sent late because this machine is busy, so that nothing is known "
            f"of the service: {_of_others(case, others, machine)}, the load generator "
            f"{use.busy:.2f}."
        )
        if not _may_be_the_service(case):
            advice = "End the other programs, and measure again."
    return FoundLimit(
        "load-generator", BottleneckKind.GENERATOR, Role.GENERATOR, use, sentence, advice
    )


def memory(case: Case) -> FoundLimit | None:
    """A machine swaps."""
    host, swapped = _highest(_by_machine(case.seen, "swap_bytes_per_s"))
    if swapped < SWAPPING:
        return None
    memories = (one for one in case.seen.uses if one.kind is BottleneckKind.MEMORY)
    own = (one for one in memories if one.role == MACHINE and host_of(one) == host)
    machine = f"The machine {host}" if host else "The machine"
    return FoundLimit(
        "memory-swapping",
        BottleneckKind.MEMORY,
        MACHINE,
        next(own, None),
        f"{machine} is short of memory: it swaps {swapped / 2**20:.1f} MiB per second.",
        "Use fewer workers, a smaller database buffer, or more memory.",
        (("swap_bytes_per_s", swapped),),
    )


def _by_machine(seen: Observation, figure: str) -> dict[str, float]:
    """Return a figure of this machine (an empty name) and of others, by their hosts."""
    hosts = ("", *(host for one in seen.machines if (host := host_of(one))))
    return {host: seen.figure(of_machine(figure, host)) or 0.0 for host in hosts}


def _highest(each: dict[str, float]) -> tuple[str, float]:
    return max(each.items(), key=lambda one: one[1])


def garbage_collection(case: Case) -> FoundLimit | None:
    """The service stands still while the JVM frees memory."""
    share = case.seen.figure("gc_pause_share") or 0.0
    if share < MUCH_GC:
        return None
    use = case.seen.use(BottleneckKind.MEMORY, Role.KEYSTONE)
    used = f"; {use.busy * 1024:.0f} of {use.capacity * 1024:.0f} MiB are in use" if use else ""
    return FoundLimit(
        "jvm-heap",
        BottleneckKind.MEMORY,
        Role.KEYSTONE,
        use,
        f"{case.setup.service.title}'s heap: garbage collection stops it {100 * share:.0f} % of "
        "the time"
        f"{used}.",
        "Raise the heap (-Xmx), and the memory of its container or machine with it.",
        (
            ("gc_pause_share", share),
            ("heap_live_share", case.seen.figure("heap_live_share")),
        ),
    )


def balancer(case: Case) -> FoundLimit | None:
    """Requests queue in the balancer, because its servers have all the sessions they may have."""
    use = case.seen.use(BottleneckKind.BALANCER, Role.BALANCER)
    queue = case.seen.figure("balancer_queue")
    if use is None or use.utilisation < FULL or (queue or 0.0) < QUEUED:
        return None
    waiting = "1 request waits" if f"{queue:.0f}" == "1" else f"{queue:.0f} requests wait"
    return FoundLimit(
        "balancer-maxconn",
        BottleneckKind.BALANCER,
        Role.BALANCER,
        use,
        f"The balancer's limit of sessions is reached: {use.busy:.1f} of {use.capacity:.0f} to "
        f"its servers, and {waiting} in its queue.",
        "Raise maxconn of the servers in haproxy's configuration.",
        (("balancer_queue", queue),),
    )


def lock(case: Case) -> FoundLimit | None:
    """Sessions of the database wait for row locks."""
    waiting = case.seen.figure("lock_waiters") or 0.0
    if waiting < WAITING:
        return None
    return FoundLimit(
        "database-locks",
        BottleneckKind.LOCK,
        Role.DATABASE,
        None,
        f"Row locks of the database: {waiting:.1f} sessions wait for one on average.",
        "Look at which statements meet on the same rows: SHOW ENGINE INNODB STATUS, pg_locks.",
        (("lock_waiters", waiting),),
    )


def disk(case: Case) -> FoundLimit | None:
    """Commits wait until they are on disk, or the database's disk is busy all the time."""
    seen = case.seen
    committing, waiting = seen.figure("committing") or 0.0, seen.figure("io_waiters") or 0.0
    use = _database_disk(seen)
    is_full = use is not None and use.utilisation >= FULL and waiting >= WAITING
    # Workers that run nearly all the time wait for no disk.
    is_waiting = (_runnable(seen) or 0.0) < RUNNABLE
    if not is_waiting or not (is_full or _mostly_commit(case, committing)):
        return None
    commits = seen.figure("commits_per_request")
    each = f"; a request commits {commits:.1f} times" if commits else ""
    busy = f" ({use.name} is busy {100 * use.utilisation:.0f} % of the time)" if use else ""
    reason = "for it" if is_full and waiting > committing else "for a commit to be on disk"
    return FoundLimit(
        "database-disk",
        BottleneckKind.DISK,
        Role.DATABASE,
        use,
        f"The database's disk: {max(committing, waiting if is_full else 0.0):.1f} sessions wait "
        f"{reason} on average{busy}{each}.",
        "Use a disk with faster fsync; or, where losing the last second is acceptable, "
        "innodb_flush_log_at_trx_commit=2 or synchronous_commit=off.",
        (("committing", committing), ("io_waiters", waiting), ("commits_per_request", commits)),
    )


def _database_disk(seen: Observation) -> ResourceUse | None:
    """Return the busiest disk of the database's machine; None if that machine is not known."""
    database = seen.use(BottleneckKind.CPU, Role.DATABASE)
    if database is None:
        return None
    disks = (one for one in seen.uses if one.kind is BottleneckKind.DISK)
    own = (one for one in disks if host_of(one) == host_of(database))
    return max(own, key=lambda one: one.utilisation, default=None)


def database_connections(case: Case) -> FoundLimit | None:
    """The database has as many connections as it accepts."""
    use = case.seen.use(BottleneckKind.CONNECTIONS, Role.DATABASE)
    refused = case.seen.figure("refused_connections_per_s") or 0.0
    if use is None or (use.utilisation < 0.97 and refused <= 0):
        return None
    # It refuses only while all are open, which the mean need not show.
    at_times = (
        f"; at times all were, and it refused {three_digits(refused)} a second"
        if refused > 0
        else ""
    )
    return FoundLimit(
        "database-connections",
        BottleneckKind.CONNECTIONS,
        Role.DATABASE,
        use,
        f"The database's connections: {use.busy:.0f} of {use.capacity:.0f} are open{at_times}.",
        f"Raise max_connections of the database, or lower {case.setup.service.pool_limit}.",
        (("refused_connections_per_s", refused),),
    )


def pool(case: Case) -> FoundLimit | None:
    """Threads wait for a connection of their worker's pool."""
    use, setup = case.seen.use(BottleneckKind.CONNECTIONS, Role.KEYSTONE), case.setup
    if use is None or setup.pool is None or use.utilisation < IN_USE:
        return None
    if not _slots_are_busy(case):
        return None
    if (setup.threads or 1) <= setup.pool:
        return None
    return FoundLimit(
        case.setup.service.finding("pool"),
        BottleneckKind.CONNECTIONS,
        Role.KEYSTONE,
        use,
        f"{setup.service.title}'s database connection pools: {use.busy:.1f} of "
        f"{_counted(use)} {'is' if use.capacity == 1 else 'are'} in a transaction, and a worker's "
        f"{setup.threads} "
        f"threads share {setup.pool}.",
        "Raise [database] max_pool_size and max_overflow to the number of threads.",
        (("transactions_open", use.busy),),
    )


def pool_waits(case: Case) -> FoundLimit | None:
    """Requests wait for a connection of a pool, and not for cores."""
    use = case.seen.use(BottleneckKind.CONNECTIONS, Role.KEYSTONE)
    waiting = case.seen.figure("pool_waiting") or 0.0
    # Threads that share too few cores also hold connections for longer.
    if use is None or waiting < QUEUED or _is_short_of_its_cores(case):
        return None
    return FoundLimit(
        "connection-pool",
        BottleneckKind.CONNECTIONS,
        Role.KEYSTONE,
        use,
        f"{use.name}: {use.busy:.1f} of {use.capacity:.0f} are in use, and {waiting:.1f} requests "
        "wait for one on average.",
        "Raise the most connections of the pool; the database must accept as many.",
        (("pool_waiting", waiting),),
    )


def cache(case: Case) -> FoundLimit | None:
    """The service repeats database queries that a cache would answer."""
    statements = case.seen.figure("statements_per_request")
    is_off = case.setup.cache == "off"
    if not is_off or statements is None or statements < MANY_STATEMENTS or not _is_full(case):
        return None
    use, service = case.seen.use(BottleneckKind.CPU, Role.KEYSTONE), case.setup.service
    demand_s = case.seen.cpu_demand_s(Role.KEYSTONE)
    cost = f" and {demand_s * 1000:.0f} ms of {service.name}'s CPU" if demand_s else ""
    return FoundLimit(
        service.finding("cache-off"),
        BottleneckKind.CACHE,
        Role.KEYSTONE,
        use,
        f"{service.title}'s cache is off: a request costs {statements:.0f} SQL statements{cost}.",
        "Set [cache] enabled=true with memcached as its backend.",
        (("statements_per_request", statements),),
    )


# Servers that may use all the cores that they are allowed to, and what helps.
SERVERS = {
    Role.DATABASE: "Look for slow statements and missing indexes; give it more cores.",
    Role.BALANCER: "Raise nbthread of haproxy.",
    Role.DIRECTORY: "Give the directory more cores, or index its searches.",
    Role.PROVIDER: (
        "Give the provider more cores; let the web server keep what it learned of a token."
    ),
}


def server_cpu(role: Role, case: Case) -> FoundLimit | None:
    """A server beside the service uses all the cores that it may use."""
    use = case.seen.use(BottleneckKind.CPU, role)
    waiting = case.seen.figure(f"{role.value}_cpu_wait")
    if use is None or not _is_short_of_cores(use, waiting or 0.0):
        return None
    return FoundLimit(
        f"{role.value}-cpu",
        BottleneckKind.CPU,
        role,
        use,
        _cpu_sentence(case.seen, use),
        SERVERS[role],
        ((f"{role.value}_cpu_wait", waiting),),
    )


def other_work(case: Case) -> FoundLimit | None:
    """Other programs on the machine take the cores that the workers wait for."""
    seen = case.seen
    others, machine = seen.figure("others_cores") or 0.0, seen.machine()
    running, waiting = _ran_and_waited(seen)
    if machine is not seen.service_machine:  # it waits for the cores of another
        return None
    if machine is None or others < OTHERS * machine.capacity or not _is_full(case):
        return None
    if waiting <= 0 or waiting < STARVED * (running + waiting):
        return None
    # A service that uses up the cores it may use would wait without other programs, too.
    if _uses_up_its_cores(case):
        return None
    return FoundLimit(
        OTHER_WORK,
        BottleneckKind.CPU,
        MACHINE,
        machine,
        f"Other programs on this machine: they took {others:.1f} of {_counted(machine)}, "
        f"and {case.setup.service.name}'s workers waited for a core "
        f"{100 * waiting / (running + waiting):.0f} % of the time that they could have run.",
        "End the other programs, and measure again.",
        (("others_cores", others), ("worker_cpu_wait", waiting)),
    )


def gil(case: Case) -> FoundLimit | None:
    """Each worker's threads together use one core, which Python's global lock allows."""
    seen, setup = case.seen, case.setup
    use = seen.use(BottleneckKind.CPU, Role.KEYSTONE)
    running, workers = seen.figure("worker_cpu"), seen.figure("workers")
    if use is None or running is None or not workers or (setup.threads or 1) <= 1:
        return None
    # Hashing a password releases the lock: several threads of one worker then run.
    is_one_core = RUNNABLE <= running <= MOST_OF_ONE_CORE
    if not is_one_core or _spare_cores(seen) < IDLE_CORES or not _slots_are_busy(case):
        return None
    processes = "process" if workers == 1 else "processes"
    return FoundLimit(
        setup.service.finding("gil"),
        BottleneckKind.LOCK,
        Role.KEYSTONE,
        use,
        f"Python's global lock: {workers:.0f} worker {processes} with {setup.threads} threads "
        f"used {use.busy:.2f} cores, about one each, while {_spare_cores(seen):.1f} cores were "
        "left.",
        "Run more worker processes with fewer threads each.",
        (("worker_cpu", running), ("spare_cores", _spare_cores(seen))),
    )


def workers(case: Case) -> FoundLimit | None:
    """Each worker uses a core, and there are more cores than workers."""
    seen = case.seen
    use, count = seen.use(BottleneckKind.CPU, Role.KEYSTONE), seen.figure("workers")
    running, spare = _running(seen) or 0.0, _spare_cores(seen)
    if use is None or not count or (_worker_threads(case) or count) > count:
        return None
    if running < RUNNABLE or spare < IDLE_CORES:
        return None
    workers_are = "one worker is" if count == 1 else f"{count:.0f} workers are"
    uses = seen.cpu_of(Role.KEYSTONE)
    where = f" on {host_of(use)}" if len(uses) > 1 and host_of(use) else ""
    return FoundLimit(
        case.setup.service.finding("workers"),
        BottleneckKind.WORKERS,
        Role.KEYSTONE,
        use,
        f"{case.setup.service.title}'s {workers_are} full, using "
        f"{_busy(uses):.2f} cores, one each at most; {spare:.1f} cores are left{where}.",
        "Add workers.",
        (("worker_cpu", running), ("spare_cores", spare)),
    )


def cpu(case: Case) -> FoundLimit | None:
    """The service's workers run, or wait for a core, all the time."""
    seen = case.seen
    use, machine = seen.use(BottleneckKind.CPU, Role.KEYSTONE), seen.service_machine
    # Threads that pass Python's lock on wait a moment for a core, though others are idle.
    wants_cores = (_runnable(seen) or 0.0) >= RUNNABLE and _spare_cores(seen) < IDLE_CORES
    if use is None or not (wants_cores or _uses_up_its_cores(case)):
        return None
    figures = (
        ("worker_cpu", seen.figure("worker_cpu")),
        ("worker_cpu_wait", seen.figure("worker_cpu_wait")),
        ("machine_busy_cores", machine.busy if machine else None),
    )
    return FoundLimit(
        case.setup.service.finding("cpu"),
        BottleneckKind.CPU,
        Role.KEYSTONE,
        use,
        _cpu_sentence(seen, use),
        "Add cores and workers, or lower what a request costs.",
        figures,
    )


def workers_wait(case: Case) -> FoundLimit | None:
    """All worker threads are busy, and mostly wait."""
    slots, runnable = case.seen.use(BottleneckKind.WORKERS, Role.KEYSTONE), _runnable(case.seen)
    if slots is None or not _slots_are_busy(case) or (runnable or 0.0) >= RUNNABLE:
        return None
    if runnable is not None:
        does = f", and wait {100 * (1.0 - runnable):.0f} % of the time for {_awaited(case)}"
    else:
        does = "; whether they run or wait was not watched"
    return FoundLimit(
        case.setup.service.finding("workers-wait"),
        BottleneckKind.WORKERS,
        Role.KEYSTONE,
        slots,
        f"{case.setup.service.title}'s workers: {slots.busy:.1f} of {slots.capacity:.0f} worker "
        f"{'thread is' if slots.capacity == 1 else 'threads are'} busy{does}{_beside(case)}.",
        "Run more workers or threads; look at what they wait for: database, directory, network.",
        (
            ("worker_runnable", runnable),
            ("transactions_open", case.seen.figure("transactions_open")),
        ),
    )


def web_server(case: Case) -> FoundLimit | None:
    """The web server's threads are all busy."""
    slots = case.seen.use(BottleneckKind.WORKERS, Role.WEB)
    if slots is None or slots.utilisation < FULL:
        return None
    return FoundLimit(
        "web-threads",
        BottleneckKind.WORKERS,
        Role.WEB,
        slots,
        f"The web server's threads: {slots.busy:.0f} of {slots.capacity:.0f} are busy.",
        "Raise MaxRequestWorkers of Apache.",
    )


def queue(case: Case) -> FoundLimit | None:
    """Connections are dropped because a listen queue is full."""
    each = _by_machine(case.seen, "listen_overflows_per_s")
    dropped = case.seen.figure("web_drops_per_s") or 0.0
    host, lost = _highest(each | {"": each[""] + dropped})
    if lost < QUEUED:
        return None
    of = f" of {host}" if host else ""
    return FoundLimit(
        "listen-queue",
        BottleneckKind.QUEUE,
        Role.WEB,
        None,
        f"The listen queue{of}: {lost:.1f} connections per second are dropped because it is full.",
        "Raise the listen queue of the web server and net.core.somaxconn.",
        (("listen_overflows_per_s", each[host]), ("web_drops_per_s", dropped)),
    )


# In order of precedence: a cause before its effect. Workers that wait for a lock are busy, too.
RULES: tuple[Rule, ...] = (
    generator,
    memory,
    garbage_collection,
    balancer,
    lock,
    disk,
    database_connections,
    cache,
    *(partial(server_cpu, role) for role in SERVERS),
    pool,
    pool_waits,
    gil,
    workers,
    other_work,
    cpu,
    workers_wait,
    web_server,
    queue,
)


def _none(case: Case) -> FoundLimit:
    """Say that nothing is saturated, and what comes nearest."""
    if (taken := _machine_taken(case)) is not None:
        return taken
    shared = [one for one in case.seen.uses if one.is_time_shared]
    nearest = max(shared, key=lambda one: one.utilisation, default=None)
    sentence = "Nothing that was watched is saturated."
    is_full = nearest is not None and nearest.utilisation >= FULL
    if nearest is not None:
        figures = (
            f"{three_digits(nearest.busy)} of {_counted(nearest)} "
            f"({100 * nearest.utilisation:.0f} %)"
        )
        sentence += f" The busiest is {nearest.name}: {figures}."
        if is_full:
            name = f"{nearest.name[0].upper()}{nearest.name[1:]}"
            sentence = f"{name}: {figures}; no part of the service that was watched uses it up."
    return FoundLimit(
        "no-bottleneck",
        BottleneckKind.NONE,
        MACHINE,
        nearest,
        sentence,
        "Watch what was not: --monitor adds services, Prometheus and other machines."
        if case.is_overloaded or is_full
        else "Raise the load until something gives way.",
    )


def _machine_taken(case: Case) -> FoundLimit | None:
    """The machine has no core left, and other programs use much of it."""
    machine = case.seen.machine()
    others = case.seen.figure("others_cores") or 0.0
    if machine is None or machine.utilisation < FULL or others < OTHERS * machine.capacity:
        return None
    parts = [_of_others(case, others, machine)]
    parts += [
        f"{role_name(role, case.setup.service)} {use.busy:.2f}"
        for role in (Role.KEYSTONE, Role.GENERATOR)
        if (use := case.seen.use(BottleneckKind.CPU, role)) and not host_of(use)
    ]
    sentence = (
        f"This machine has no core left, which may limit what was measured: {', '.join(parts)}."
    )
    advice = "End the other programs, and measure again."
    if _may_be_the_service(case):
        advice = (
            "If other programs run on this machine, end them and measure again. Watch what was "
            "not: --monitor adds services."
        )
    figures = (("others_cores", others),)
    kind = BottleneckKind.NONE
    return FoundLimit("no-bottleneck", kind, MACHINE, machine, sentence, advice, figures)


def _beside(case: Case) -> str:
    """Describe the work of other programs, if it may be what the workers wait for."""
    machine = case.seen.machine()
    others = case.seen.figure("others_cores") or 0.0
    if machine is None or machine is not case.seen.service_machine:
        return ""
    if others < OTHERS * machine.capacity:
        return ""
    return f"; meanwhile {_of_others(case, others, machine)}"


def _may_be_the_service(case: Case) -> bool:
    """Return whether what is counted as other work may be the service itself."""
    is_known = case.seen.use(BottleneckKind.CPU, Role.KEYSTONE) is not None
    return not is_known and not case.setup.is_elsewhere


def _of_others(case: Case, others: float, machine: ResourceUse) -> str:
    who = "the service and other programs" if _may_be_the_service(case) else "other programs"
    return f"{who} took {others:.1f} of {_counted(machine)}"


def _counted(use: ResourceUse) -> str:
    """Return a capacity with its unit: "2 cores", "1 core"."""
    unit = use.unit.removesuffix("s") if use.capacity == 1 else use.unit
    return f"{three_digits(use.capacity)} {unit}"


def _is_short_of_cores(use: ResourceUse, waiting: float) -> bool:
    """Whether a role uses its cores up; `waiting` are its threads that wait for one, on average.

    A hypervisor and other programs take a part of the cores, so that a role whose threads always
    wait for them does not come to use all of their time.
    """
    return use.utilisation >= FULL or (use.utilisation >= MOST and waiting >= use.capacity)


def _cpu_sentence(seen: Observation, use: ResourceUse) -> str:
    demand_s = seen.cpu_demand_s(use.role)
    cost = f"; a request costs {three_digits(demand_s * 1000)} ms" if demand_s else ""
    name = f"{use.name[0].upper()}{use.name[1:]}"
    others = [role for role in ROLES if role not in (use.role, Role.GENERATOR)]
    cpus = (one for one in seen.uses if one.kind is BottleneckKind.CPU)
    next_one = next((one for one in cpus if one.role in others), None)
    after = f"; next is {next_one.name} at {100 * next_one.utilisation:.0f} %" if next_one else ""
    # Of what is left to it, where others use the machine, too.
    return f"{name}: {use.busy:.2f} of {_counted(use)} busy{cost}{after}."


def _runnable(seen: Observation) -> float | None:
    """Return the share of the time in which a worker ran or waited for a core, 1 at most.

    Without workers of a known number: the share of its cores that the service ran on or waited for.
    Without its processes one by one: the cores that it used, over its threads. None if unknown.
    """
    running, waiting = seen.figure("worker_cpu"), seen.figure("worker_cpu_wait")
    if running is not None:
        return min(running + (waiting or 0.0), 1.0)
    wanted = seen.figure("cores_wanted")
    if wanted is not None:
        return min(wanted, 1.0)
    return _running(seen)


def _running(seen: Observation) -> float | None:
    """Return the cores that a worker used, over its threads where only all are known together.

    None if unknown.
    """
    running = seen.figure("worker_cpu")
    slots = seen.use(BottleneckKind.WORKERS, Role.KEYSTONE)
    uses = seen.cpu_of(Role.KEYSTONE)
    if running is not None or not uses or slots is None or slots.capacity <= 0:
        return running
    return min(_busy(uses) / slots.capacity, 1.0)


def _busy(uses: Sequence[ResourceUse]) -> float:
    return sum(one.busy for one in uses)


def _ran_and_waited(seen: Observation) -> tuple[float, float]:
    """Return how long the service ran and waited for a core, in cores; of a worker if known."""
    running, waiting = seen.figure("worker_cpu"), seen.figure("worker_cpu_wait")
    if running is None and (uses := seen.cpu_of(Role.KEYSTONE)):
        return _busy(uses), seen.figure("cores_waited_for") or 0.0
    return running or 0.0, waiting or 0.0


def _is_short_of_its_cores(case: Case) -> bool:
    """Return whether the service uses its cores up, or waits for those that others take."""
    use = case.seen.use(BottleneckKind.CPU, Role.KEYSTONE)
    running, waiting = _ran_and_waited(case.seen)
    return use is not None and (
        _is_short_of_cores(use, waiting) or waiting >= max(use.capacity, running)
    )


def _uses_up_its_cores(case: Case) -> bool:
    """Return whether the service uses up the cores it may use, or a quota stops it earlier.

    A quota is what it waits for if there are idle cores that it may not use.
    """
    seen = case.seen
    use, machine = seen.use(BottleneckKind.CPU, Role.KEYSTONE), seen.service_machine
    if use is None or use.utilisation >= FULL:
        return use is not None
    if machine is None or use.capacity >= machine.capacity:
        return False
    _, waiting = _ran_and_waited(seen)
    waiting *= 1.0 if seen.figure("worker_cpu") is None else seen.figure("workers") or 1.0
    is_idle = machine.capacity - machine.busy >= IDLE_CORES
    return is_idle and _is_short_of_cores(use, waiting)


def _spare_cores(seen: Observation) -> float:
    """Return the cores that were idle or busy with other work, and that the service may use."""
    machine = seen.service_machine
    idle = machine.capacity - machine.busy if machine else 0.0
    others = (seen.figure("others_cores") or 0.0) if machine is seen.machine() else 0.0
    use, allowed = seen.use(BottleneckKind.CPU, Role.KEYSTONE), seen.figure("cores_allowed")
    if use is None or allowed is None:
        return idle + others
    return min(idle + others, allowed - use.busy)


def _slots_are_busy(case: Case) -> bool:
    """Return whether all worker threads are busy; True if unknown."""
    slots = case.seen.use(BottleneckKind.WORKERS, Role.KEYSTONE)
    queue = case.seen.figure("web_queue")
    # uWSGI counts a thread as busy from the request's head to its response. If requests wait in the
    # listen queue all the time, threads are idle only between two requests.
    return slots is None or slots.utilisation >= FULL or (queue or 0.0) >= QUEUED


def _worker_threads(case: Case) -> float | None:
    """Return how many threads serve requests in all workers, or None if unknown."""
    slots, setup = case.seen.use(BottleneckKind.WORKERS, Role.KEYSTONE), case.setup
    if slots is not None:
        return slots.capacity
    return float(setup.workers * (setup.threads or 1)) if setup.workers else None


def _mostly_commit(case: Case, committing: float) -> bool:
    """Return whether the workers are busy, and mostly wait for commits while they do not run."""
    threads = _worker_threads(case)
    if committing < WAITING or threads is None:
        return committing >= WAITING
    runnable = _runnable(case.seen) or 0.0  # unknown: they may all wait
    waiting = threads * (1.0 - runnable)
    return _slots_are_busy(case) and committing >= WAITING * waiting


def _awaited(case: Case) -> str:
    """Return what sleeping workers wait for: the database if most are in a transaction.

    Without another server in sight they wait for something on their own machine: SQLite's lock, a
    disk.
    """
    threads, open_ = _worker_threads(case), case.seen.figure("transactions_open") or 0.0
    if threads is not None and open_ >= WAITING * threads:
        return "the database"
    others = (Role.DATABASE, Role.CACHE, Role.DIRECTORY)
    is_seen = any(case.seen.use(BottleneckKind.CPU, role) is not None for role in others)
    return "other servers" if is_seen else "a lock, a disk or a server that was not watched"


def _is_full(case: Case) -> bool:
    """Return whether the workers are busy all the time."""
    use, runnable = case.seen.use(BottleneckKind.CPU, Role.KEYSTONE), _runnable(case.seen)
    slots = case.seen.use(BottleneckKind.WORKERS, Role.KEYSTONE)
    return (
        (slots is not None and _slots_are_busy(case))
        or (use is not None and use.utilisation >= FULL)
        or (runnable or 0.0) >= RUNNABLE
    )


def _finding(limit: FoundLimit, case: Case) -> Finding:
    use = limit.use
    figures: list[tuple[str, float | None]] = list(limit.figures)
    if use is not None:
        figures = [
            ("utilisation", use.utilisation),
            ("busy_" + use.unit, use.busy),
            ("demand_ms", None if use.demand_s is None else use.demand_s * 1000),
            ("bound_rps", use.bound_rps),
            *figures,
        ]
    figures.append(("throughput_rps", case.seen.throughput_rps))
    evidence = tuple(Evidence.of(name, v) for name, v in figures if v is not None)
    return Finding(limit.id, limit.sentence, evidence, Confidence.MEASURED, limit.advice)
