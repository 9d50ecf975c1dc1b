"""Predicts capacity from what a request costs at low load.

Under saturation each worker thread always has a request, so the service is a closed queueing
network whose customers are its worker threads. A request spends its CPU demand at the machine's
cores and the rest of the time that it holds a worker (disks, network, other machines) without
queueing. Throughput of that network is computed exactly by convolution (Buzen, Computational
algorithms for closed queueing networks with exponential servers, 1973); no resource can do more
than capacity/demand (Denning and Buzen, 1978; Lazowska et al., 1984, chapter 5).
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from loadstone.diagnosis.demand import (
    MACHINE,
    NEGLIGIBLE,
    BottleneckKind,
    Observation,
    ResourceUse,
    host_of,
    worker_threads,
)
from loadstone.monitor.roles import Role

# Assumed difference of a request's cost between low and full load (caches, batches, clock rate).
MODEL_ERROR = 0.1
CONFIDENCE_SIGMAS = 1.96
MOST_CUSTOMERS = 512  # with more, workers are not the limit
LEAST_CORES = 0.1  # assumed minimum that other work leaves to the service

# Workers that mostly run are limited by CPU, although each also waits a little.
CLEARLY_LESS = 0.8

# Lone response time over CPU time from which requests mostly wait. The network to another machine
# and its disks take a few times what a validation costs (5 to 80 ms, docs/monitor.md).
MOSTLY_WAITS = 10.0


@dataclass(frozen=True, slots=True)
class Prediction:
    """Capacity predicted from a run at low load."""

    rate_rps: float
    low_rps: float
    high_rps: float
    limit: str  # the resource that saturates first: "Keystone's CPU"
    at_rps: float  # rate of the run at low load
    requests: int


@dataclass(frozen=True, slots=True)
class LowLoadFigures:
    """Response times of requests that were sent one at a time."""

    response_s: float  # mean, from the actual send
    spread_s: float  # standard deviation of it
    cpu_s: float | None = None  # of a request, on all machines; None: too few requests


@dataclass(frozen=True, slots=True)
class _Host:
    """One machine with the service's roles on it."""

    cores: float
    demand_s: float  # CPU of all roles but the load generator
    others: float  # cores that are busy with something else
    roles: tuple[ResourceUse, ...]


def predict(seen: Observation, low: LowLoadFigures) -> Prediction | None:
    """Return the predicted capacity, or None if too little of the service was watched."""
    hosts = tuple(_hosts(seen))
    if not any(host.demand_s > NEGLIGIBLE for host in hosts):
        return None
    sampling = CONFIDENCE_SIGMAS * low.spread_s / max(low.response_s, NEGLIGIBLE)
    margin = math.hypot(MODEL_ERROR, sampling / math.sqrt(seen.requests))
    customers, software = _customers(seen)
    held_s = _held_s(seen, low)
    bounds = dict(_bounds(hosts))
    limit, bound_rps = min(bounds.items(), key=lambda one: one[1])
    rate_rps = low_rps = high_rps = bound_rps
    if customers is not None:
        demands = [(host.demand_s, host.cores) for host in hosts]
        rate_rps = min(bound_rps, throughput(customers, demands, held_s))
        workers_rps = customers / max(held_s, NEGLIGIBLE)
        if workers_rps < CLEARLY_LESS * bound_rps:
            limit = software
        high_rps = min(bound_rps, customers / max(held_s - _waited_s(seen), NEGLIGIBLE))
        left = [(host.demand_s, _left(host)) for host in hosts]
        low_rps = min(rate_rps, throughput(customers, left, held_s))
    low_rps = min(low_rps, *(_least_rps(host, seen) for host in hosts))
    return Prediction(
        rate_rps,
        low_rps * (1 - min(margin, 0.9)),
        max(high_rps, rate_rps) * (1 + margin),
        limit,
        seen.throughput_rps,
        seen.requests,
    )


def is_upper_bound(seen: Observation, low: LowLoadFigures) -> bool:
    """Return whether requests mostly wait for something that was not watched.

    Without the number of workers it is not known how many may wait at once, so the prediction from
    CPU is only an upper bound.
    """
    cost_s = cpu_s(seen)
    customers, _ = _customers(seen)
    return cost_s is not None and customers is None and low.response_s > MOSTLY_WAITS * cost_s


def cpu_s(seen: Observation) -> float | None:
    """Return the CPU of a request on all machines; None: not watched, or too few requests."""
    return sum(host.demand_s for host in _hosts(seen)) or None


def side_by_side(seen: Observation) -> int:
    """Return how many requests the service can process in parallel without waiting for a core."""
    cores = sum(one.capacity for one in seen.machines)
    customers, _ = _customers(seen)
    return max(int(min(cores, customers or 1)), 1)


def throughput(customers: int, demands: list[tuple[float, float]], held_s: float) -> float:
    """Return requests per second of a closed network, by convolution.

    `demands` are seconds of CPU per request and cores, one pair a machine; `held_s` is the whole
    time of a request without queueing, of which what is not CPU is a delay.
    """
    count = min(customers, MOST_CUSTOMERS)
    stations = [(demand, cores) for demand, cores in demands if demand > NEGLIGIBLE]
    delay_s = max(held_s - sum(demand for demand, _ in stations), 0.0)
    unit_s = max([delay_s / count, *(demand / cores for demand, cores in stations)])
    if unit_s <= NEGLIGIBLE:
        return math.inf
    total = np.zeros(count + 1)
    total[0] = 1.0
    for demand_s, servers in (*stations, (delay_s, math.inf)):
        at_once = np.minimum(np.arange(1, count + 1), servers)
        factors = np.cumprod(np.concatenate(([1.0], demand_s / unit_s / at_once)))
        total = np.convolve(total, factors)[: count + 1]
        scale = total.max()
        total /= scale
    return float(total[count - 1] / total[count] / unit_s)


def _hosts(seen: Observation) -> Iterator[_Host]:
    """Yield the machines on which the service used CPU."""
    cpus = [one for one in seen.uses if one.kind is BottleneckKind.CPU]
    for machine in seen.machines:
        host = host_of(machine)
        # At low load the load generator mostly waits and shows progress, so its CPU is not a cost
        # of requests (each costs it about 50 us).
        of_service = (one for one in cpus if one.role not in (MACHINE, Role.GENERATOR))
        roles = tuple(one for one in of_service if host_of(one) == host)
        demand_s = sum(one.demand_s or 0.0 for one in roles)
        if demand_s > NEGLIGIBLE:
            used = sum(one.busy for one in roles)
            yield _Host(machine.capacity, demand_s, max(machine.busy - used, 0.0), roles)
        elif host and machine.demand_s:  # another machine, whose processes are not distinguished
            yield _Host(machine.capacity, machine.demand_s, 0.0, (machine,))


def _bounds(hosts: tuple[_Host, ...]) -> Iterator[tuple[str, float]]:
    """Yield the rates at which all cores of a machine, or all that a role may use, are busy."""
    for host in hosts:
        # If a machine's cores are the limit, name the role that uses most of them.
        first = max(host.roles, key=lambda one: one.demand_s or 0.0)
        yield first.name, host.cores / host.demand_s
        for one in host.roles:
            if one.bound_rps is not None:
                known = host.cores / host.demand_s if one is first else math.inf
                yield one.name, min(one.bound_rps, known)


def _customers(seen: Observation) -> tuple[int | None, str]:
    """Return how many requests can be processed at once, and the name of that limit."""
    workers = seen.figure("workers")
    slots = seen.use(BottleneckKind.WORKERS, Role.KEYSTONE)
    sessions = seen.use(BottleneckKind.BALANCER, Role.BALANCER)
    counts, name = [], worker_threads(seen.service)
    if workers:
        counts.append((workers * (seen.figure("threads_per_worker") or 1.0), name))
    elif slots is not None:
        counts.append((slots.capacity, name))
    if sessions is not None:
        counts.append((sessions.capacity, sessions.name))
    if not counts:
        return None, ""
    count, name = min(counts)
    return max(int(count), 1), name


def _held_s(seen: Observation, low: LowLoadFigures) -> float:
    """Return how long a request holds a worker without waiting for a core.

    That is its CPU time, plus the part of its lone response time that is not CPU: disks, network.
    """
    now_s = cpu_s(seen) or 0.0
    held_s = now_s + max(low.response_s - (low.cpu_s or now_s), 0.0)
    slots = seen.use(BottleneckKind.WORKERS, Role.KEYSTONE)
    if slots is not None and slots.demand_s:
        return min(slots.demand_s, held_s)
    return held_s


def _waited_s(seen: Observation) -> float:
    """Return how long a request waited for a core at low load because of other programs."""
    waiting, workers = seen.figure("worker_cpu_wait"), seen.figure("workers")
    if not waiting or not workers:
        return 0.0
    return waiting * workers / max(seen.throughput_rps, NEGLIGIBLE)


def _left(host: _Host) -> float:
    return max(host.cores - host.others, LEAST_CORES)


def _least_rps(host: _Host, seen: Observation) -> float:
    """Return the bound given other work, and threads that share Python's global lock."""
    workers = seen.figure("workers")
    locked = (
        min(one.capacity, workers) / one.demand_s
        for one in host.roles
        if one.role == Role.KEYSTONE and workers and one.demand_s
    )
    return min([_left(host) / host.demand_s, *locked])
