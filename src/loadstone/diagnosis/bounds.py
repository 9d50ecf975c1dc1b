"""Upper bounds of throughput for a service as it is, and with one change.

No resource does more than capacity/demand, so the smallest such quotient bounds the throughput
(Denning and Buzen, 1978; Lazowska et al., Quantitative System Performance, 1984, chapter 5). A
bound is no forecast: requests also wait, and a change may cost something elsewhere.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from loadstone.diagnosis.demand import MACHINE, NEGLIGIBLE, BottleneckKind, Observation, ResourceUse
from loadstone.monitor.roles import Role


@dataclass(frozen=True, slots=True)
class UpperBound:
    """The highest throughput that the resources allow."""

    rate_rps: float
    limit: str  # the resource that saturates first: "Keystone's CPU"


@dataclass(frozen=True, slots=True)
class ServiceChange:
    """A hypothetical change of the service that was measured."""

    more_cores: int = 0
    more_workers: int = 0  # processes of Keystone
    cpu_saved_s: float = 0.0  # of Keystone's CPU time per request


UNCHANGED = ServiceChange()
CHANGES = {
    "one more core": ServiceChange(more_cores=1),
    "one more worker": ServiceChange(more_workers=1),
    "one more of both": ServiceChange(more_cores=1, more_workers=1),
}


@dataclass(frozen=True, slots=True)
class UpperBounds:
    """Bounds for the service as it is, and for each of `CHANGES` by name."""

    unchanged: UpperBound
    changed: dict[str, UpperBound]


def upper_bounds(seen: Observation) -> UpperBounds | None:
    """Return the bounds; None if the watched service is not on exactly one machine."""
    unchanged = upper_bound(seen)
    if unchanged is None:
        return None
    each = {name: upper_bound(seen, change) for name, change in CHANGES.items()}
    return UpperBounds(unchanged, {name: bound for name, bound in each.items() if bound})


def upper_bound(seen: Observation, change: ServiceChange = UNCHANGED) -> UpperBound | None:
    """Return the bound after a change; None if the service is not on exactly one machine."""
    if len(seen.machines) != 1 or seen.use(BottleneckKind.CPU, Role.KEYSTONE) is None:
        return None
    found = list(_bounds(seen, seen.machines[0].capacity, change))
    return min(found, key=lambda one: one.rate_rps) if found else None


def _bounds(seen: Observation, cores: float, change: ServiceChange) -> Iterator[UpperBound]:
    for use in seen.uses:
        if not use.is_time_shared or use.role == Role.GENERATOR or use.demand_s is None:
            continue
        demand_s = use.demand_s - _saved_s(use, seen, change)
        if demand_s > NEGLIGIBLE:
            yield UpperBound(_capacity(use, seen, cores, change) / demand_s, use.name)


def _saved_s(use: ResourceUse, seen: Observation, change: ServiceChange) -> float:
    """Return the demand per request that the change removes from a resource."""
    if use.kind is BottleneckKind.WORKERS:  # a worker that waits for a core is not what is short
        waiting, workers = seen.figure("worker_cpu_wait") or 0.0, seen.figure("workers") or 0.0
        return change.cpu_saved_s + waiting * workers / max(seen.throughput_rps, NEGLIGIBLE)
    is_its_cpu = use.kind is BottleneckKind.CPU and use.role in (Role.KEYSTONE, MACHINE)
    return change.cpu_saved_s if is_its_cpu else 0.0


def _capacity(use: ResourceUse, seen: Observation, cores: float, change: ServiceChange) -> float:
    """Return the capacity of a resource after the change."""
    threads = seen.figure("threads_per_worker") or 1.0
    if use.kind is BottleneckKind.WORKERS:
        return use.capacity + change.more_workers * threads
    if use.kind is not BottleneckKind.CPU:
        return use.capacity
    slots = (seen.figure("workers") or cores) * threads
    allowed = min(seen.figure("cores_allowed") or cores, cores)
    if use.role == Role.KEYSTONE and use.capacity == min(allowed, slots):
        # A quota stays as it is when the machine gets more cores.
        most = allowed if allowed < cores else cores + change.more_cores
        return min(most, slots + change.more_workers * threads)
    # A server that may use every core gets the new cores; one that is bound to some does not.
    return use.capacity + change.more_cores if use.capacity == cores else use.capacity
