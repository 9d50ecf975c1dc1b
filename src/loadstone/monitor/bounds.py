"""Upper bounds of throughput, as a service is and with one change.

No resource does more than capacity/demand, so the smallest such quotient bounds the throughput
(Denning and Buzen, 1978; Lazowska et al., Quantitative System Performance, 1984, chapter 5). A
bound is no forecast: requests also wait, and a change may cost something elsewhere.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from loadstone.monitor.demand import MACHINE, NEGLIGIBLE, BottleneckKind, Observation, ResourceUse
from loadstone.monitor.roles import Role


@dataclass(frozen=True, slots=True)
class UpperBound:
    """The highest throughput that the resources allow."""

    rate_rps: float
    limit: str  # the resource that gives way first: "Keystone's CPU"


@dataclass(frozen=True, slots=True)
class Change:
    """What differs from the service that was measured."""

    cores: int = 0  # more of them
    workers: int = 0  # more processes of Keystone
    saved_s: float = 0.0  # less of Keystone's CPU per request


AS_IT_IS = Change()
CHANGES = (
    ("one more core", Change(cores=1)),
    ("one more worker", Change(workers=1)),
    ("one more of both", Change(cores=1, workers=1)),
)


def upper_bound(seen: Observation, change: Change = AS_IT_IS) -> UpperBound | None:
    """Return the bound after a change; None: the service is not watched on one machine alone."""
    machines = [one for one in seen.uses if (one.kind, one.role) == (BottleneckKind.CPU, MACHINE)]
    if len(machines) != 1 or seen.use(BottleneckKind.CPU, Role.KEYSTONE) is None:
        return None
    found = list(_bounds(seen, machines[0].capacity, change))
    return min(found, key=lambda one: one.rate_rps) if found else None


def _bounds(seen: Observation, cores: float, change: Change) -> Iterator[UpperBound]:
    for use in seen.uses:
        if not use.is_time_shared or use.role == Role.GENERATOR or use.demand_s is None:
            continue
        demand_s = use.demand_s - _saved_s(use, seen, change)
        if demand_s > NEGLIGIBLE:
            yield UpperBound(_capacity(use, seen, cores, change) / demand_s, use.name)


def _saved_s(use: ResourceUse, seen: Observation, change: Change) -> float:
    """Return what a request no longer takes of a resource."""
    if use.kind is BottleneckKind.WORKERS:  # a worker that waits for a core is not what is short
        waiting, workers = seen.figure("worker_cpu_wait") or 0.0, seen.figure("workers") or 0.0
        return change.saved_s + waiting * workers / max(seen.throughput_rps, NEGLIGIBLE)
    is_its_cpu = use.kind is BottleneckKind.CPU and use.role in (Role.KEYSTONE, MACHINE)
    return change.saved_s if is_its_cpu else 0.0


def _capacity(use: ResourceUse, seen: Observation, cores: float, change: Change) -> float:
    """Return how much there is of a resource after the change."""
    threads = seen.figure("threads_per_worker") or 1.0
    if use.kind is BottleneckKind.WORKERS:
        return use.capacity + change.workers * threads
    if use.kind is not BottleneckKind.CPU:
        return use.capacity
    slots = (seen.figure("workers") or cores) * threads
    if use.role == Role.KEYSTONE and use.capacity == min(cores, slots):
        return min(cores + change.cores, slots + change.workers * threads)
    # A server that may use each core may use one more; one that is bound to some keeps those.
    return use.capacity + change.cores if use.capacity == cores else use.capacity
