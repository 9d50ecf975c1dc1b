"""Cores, workers, nodes and connections that a load needs.

Utilisation law: a resource that each iteration occupies for D seconds is busy X D seconds per
second at a rate of X, so a utilisation of u needs X D / u of it (Denning and Buzen, The operational
analysis of queueing network models, 1978). Workers by Little's law: X S of them are occupied on
average, with S the duration of an iteration without queueing.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil, hypot

from loadstone.diagnosis.demand import role_name
from loadstone.diagnosis.service import CACHE_REGIONS, KEYSTONE
from loadstone.errors import InvalidInput
from loadstone.monitor.roles import Role
from loadstone.report import figures
from loadstone.size.boots import Boots
from loadstone.size.demand import (
    ROLES,
    Demand,
    DemandEstimate,
    MachineDemand,
    settings_that_differ,
)

POOL, OVERFLOW = 5, 50  # defaults of oslo.db, if not in the facts of a run
NEGLIGIBLE = 0.005  # requests of a boot: less is shown as 0.00


@dataclass(frozen=True, slots=True)
class ScenarioLoad:
    """A scenario's demand and its rate."""

    demand: Demand
    rate_rps: float


@dataclass(frozen=True, slots=True)
class ConnectionsNeeded:
    """Connections of the workers, and the limit that the server should have."""

    held: int  # maximum over all workers
    limit: int  # with some reserve
    busy: float | None  # on average; None: not measured


@dataclass(frozen=True, slots=True)
class FullMachine:
    """The measured machine that a growing load fills first."""

    machine: MachineDemand
    at: DemandEstimate  # multiple of the load that uses all its cores


@dataclass(frozen=True, slots=True)
class Sizing:
    """Resources that a load needs at a utilisation."""

    loads: tuple[ScenarioLoad, ...]
    utilisation: float
    cores: tuple[tuple[Role, DemandEstimate], ...]  # by role
    workers: DemandEstimate  # processes with one thread
    cores_per_node: int
    nodes: DemandEstimate  # for Keystone and its web server
    database: ConnectionsNeeded | None  # None: the deployment has no database server
    cache: ConnectionsNeeded | None  # None: it has no memcached
    statements_rps: float | None
    cache_gets_rps: float | None
    full: FullMachine | None  # None: unknown
    assumptions: tuple[str, ...]
    boots: Boots | None = None  # their logins and validations are part of the loads


def size(
    loads: Sequence[ScenarioLoad],
    cores_per_node: int | None,
    utilisation: float,
    boots: Boots | None = None,
) -> Sizing:
    """Return the resources for all loads; `cores_per_node` None: as measured.

    The loads must include the Keystone requests of `boots`. Raises InvalidInput without
    `cores_per_node` if the cores of the measured machines are unknown or differ.
    """
    cores = tuple(
        (role, total.times(1 / utilisation))
        for role in ROLES
        if (total := _total(loads, role)) is not None
    )
    facts = dict(loads[0].demand.environment.settings)
    each = cores_per_node or _measured_cores(loads)
    front = _sum(estimate for role, estimate in cores if role in (Role.KEYSTONE, Role.WEB))
    workers = _workers(loads, dict(cores)[Role.KEYSTONE], utilisation)
    count = _up(workers.high or workers.value)
    return Sizing(
        loads=tuple(loads),
        utilisation=utilisation,
        cores=cores,
        workers=workers,
        cores_per_node=each,
        nodes=front.times(1 / each),
        database=_database(loads, facts, count, utilisation),
        cache=_cache(facts, count, utilisation),
        statements_rps=_rate([(one.rate_rps, one.demand.statements) for one in loads]),
        cache_gets_rps=_rate([(one.rate_rps, one.demand.cache_gets) for one in loads]),
        full=_full(loads),
        assumptions=(*_assumptions(loads, utilisation), *_of_boots(boots)),
        boots=boots,
    )


def _measured_cores(loads: Sequence[ScenarioLoad]) -> int:
    """Return the cores of each machine that Keystone was on; InvalidInput if they differ."""
    machines = [one for load in loads for one in load.demand.machines if one.has_keystone]
    unknown = dict.fromkeys(one.name for one in machines if one.cores is None)
    if unknown:
        raise InvalidInput(
            f"how many cores {', '.join(unknown)} had is not known: give --cores-per-node"
        )
    counts = {one.cores for one in machines if one.cores is not None}
    if len(counts) > 1:
        each = dict.fromkeys(f"{one.name} {one.cores}" for one in machines)
        raise InvalidInput(
            f"the measured machines have different numbers of cores ({', '.join(each)}): "
            "give --cores-per-node"
        )
    return counts.pop()


def round_up(estimate: DemandEstimate) -> tuple[int, int | None, int | None]:
    """Round an estimate and its interval up to integers of at least one."""
    low, high = estimate.low, estimate.high
    return (
        _up(estimate.value),
        None if low is None else _up(low),
        None if high is None else _up(high),
    )


def _up(value: float) -> int:
    """Round up to an integer of at least one, but not for an error of floating point."""
    return max(1, ceil(value - 1e-9))


def _total(loads: Sequence[ScenarioLoad], role: Role) -> DemandEstimate | None:
    """Return the busy cores of a role under all loads."""
    parts = [
        estimate.times(load.rate_rps)
        for load in loads
        if (estimate := load.demand.of(role)) is not None
    ]
    return _sum(parts) if parts else None


def _sum(parts: Iterable[DemandEstimate]) -> DemandEstimate:
    """Add estimates whose errors are independent."""
    estimates = list(parts)
    value = sum(one.value for one in estimates)
    lows = [one.value - one.low for one in estimates if one.low is not None]
    highs = [one.high - one.value for one in estimates if one.high is not None]
    if len(lows) < len(estimates) or len(highs) < len(estimates):
        return DemandEstimate(value)
    return DemandEstimate(value, max(0.0, value - hypot(*lows)), value + hypot(*highs))


def _workers(
    loads: Sequence[ScenarioLoad], cores: DemandEstimate, utilisation: float
) -> DemandEstimate:
    """Return the number of occupied workers, at least one for each busy core."""
    busy = _sum(one.demand.service_s.times(one.rate_rps) for one in loads)
    held = busy.times(1 / utilisation)
    return held if held.value >= cores.value else cores


def _database(
    loads: Sequence[ScenarioLoad], facts: Mapping[str, str], workers: int, utilisation: float
) -> ConnectionsNeeded | None:
    # As in the audit: one connection per thread plus one, up to the limit of the pool.
    if not any(load.demand.of(Role.DATABASE) for load in loads):
        return None
    size = _whole(facts, "conf.database.max_pool_size", POOL)
    overflow = _whole(facts, "conf.database.max_overflow", OVERFLOW)
    # SQLAlchemy's pool has no limit with a size of 0 or a negative overflow.
    held = workers * (2 if size == 0 or overflow < 0 else min(2, size + overflow))
    busy = _rate([(load.rate_rps, load.demand.connection_s) for load in loads])
    return ConnectionsNeeded(held, _up(held / utilisation), busy)


def _cache(facts: Mapping[str, str], workers: int, utilisation: float) -> ConnectionsNeeded | None:
    if facts.get("conf.uses_memcached") != "true" and "memcached" not in facts.get("cache", ""):
        return None
    # As in the audit: a thread opens one connection per region, also with a pool of connections.
    held = workers * CACHE_REGIONS
    return ConnectionsNeeded(held, _up(held / utilisation), None)


def _whole(facts: Mapping[str, str], name: str, otherwise: int) -> int:
    text = facts.get(name, "")
    return int(text) if text.removeprefix("-").isdigit() else otherwise


def _rate(parts: Sequence[tuple[float, float | None]]) -> float | None:
    """Return the sum of rates times costs; None if a cost is unknown."""
    known = [(rate, cost) for rate, cost in parts if cost is not None]
    return sum(rate * cost for rate, cost in known) if len(known) == len(parts) else None


def _full(loads: Sequence[ScenarioLoad]) -> FullMachine | None:
    """Return the measured machine that is full first; None: unknown."""
    # What a scenario costs on a machine on which it was not measured is unknown.
    measured_on = {
        frozenset((one.host, one.cores) for one in load.demand.machines if one.has_keystone)
        for load in loads
    }
    if len(measured_on) > 1:
        return None
    machines = [(load.rate_rps, one) for load in loads for one in load.demand.machines]
    found = [
        _filled([pair for pair in machines if pair[1].host == host])
        for host in dict.fromkeys(one.host for _, one in machines)
    ]
    known = [one for one in found if one is not None]
    return min(known, key=lambda one: one.at.value) if len(known) == len(found) else None


def _filled(parts: Sequence[tuple[float, MachineDemand]]) -> FullMachine | None:
    """Return one machine under the rates of the scenarios there; None: its cores are unknown."""
    _, machine = parts[0]
    cores = machine.cores
    if cores is None:
        return None
    busy = _sum(cpu_s.times(rate) for rate, one in parts for _, cpu_s in one.cpu_s)
    at = DemandEstimate(
        cores / busy.value,
        None if busy.high is None else cores / busy.high,
        None if not busy.low else cores / busy.low,
    )
    return FullMachine(machine, at)


def _assumptions(loads: Sequence[ScenarioLoad], utilisation: float) -> Iterable[str]:
    yield from _of_machines(loads)
    yield (
        f"Costs grow in proportion to the rate up to {figures.percent(utilisation)} utilisation, "
        "over any number of cores and nodes (`loadstone study run workers` shows how far that is "
        "so)."
    )
    yield "The database, memcached and the balancer are one server each; their cores do not add up."
    yield "A worker is a process with one thread. A node that fails is not accounted for: add one."
    for load in loads:
        if not load.demand.is_light:
            yield (
                f"{load.demand.title}: no trial with little load was stored, so the time that a "
                "worker is held contains queueing, and the workers are too many."
            )
        if load.demand.service_s.low is None:
            yield f"{load.demand.title}: one run tells nothing of how its duration scatters."
    yield from _not_counted(loads)
    for one in settings_that_differ([load.demand for load in loads]):
        values = ", ".join(value or "not known" for value in one.values)
        yield f"The scenarios were measured with different settings: {one.name} {values}."


def _of_machines(loads: Sequence[ScenarioLoad]) -> Iterable[str]:
    """Say what a core is, and which machines were watched if there may be others."""
    machines = [one for load in loads for one in load.demand.machines]
    known = dict.fromkeys(one.processor for one in machines if one.processor)
    unknown = dict.fromkeys(one.name for one in machines if not one.processor)
    not_known = (f"processor of {', '.join(unknown)} not known",) if unknown else ()
    yield (
        f"A core is one of those measured ({', '.join((*known, *not_known))}); another processor "
        "costs other times."
    )
    if not any(one.host for one in machines):
        return
    titles: dict[str, list[str]] = {}
    for load in loads:
        names = ", ".join(one.name for one in load.demand.machines)
        titles.setdefault(names, []).append(load.demand.title)
    for names, of in titles.items():
        yield f"{', '.join(of)}: CPU was counted on {names}."
    yield (
        "Parts of the service on machines that were not watched are left out, and what its "
        "programs did for others at that time is included."
    )


def _not_counted(loads: Sequence[ScenarioLoad]) -> Iterable[str]:
    """Say which scenarios have no cost in a role in which others have one."""
    for role in ROLES:
        known = [load for load in loads if load.demand.of(role) is not None]
        if not known:
            continue
        for load in loads:
            if load.demand.of(role) is None:
                yield (
                    f"{load.demand.title}: no CPU of {role_name(role, KEYSTONE)} was counted, so "
                    "that its cores are without this load."
                )


def _of_boots(boots: Boots | None) -> Iterable[str]:
    if boots is None:
        return
    cost = boots.cost
    cloud = ", ".join(f"{name} {value}" for name, value in cost.cloud)
    yield (
        f"A boot asks Keystone for {figures.rate(cost.logins)} logins and "
        f"{figures.rate(cost.validations)} validations, as {cost.counted} iterations of "
        f"{cost.scenario} did in run {cost.run_id}{f' ({cloud})' if cloud else ''}."
    )
    if cost.total - cost.least >= NEGLIGIBLE:
        yield (
            f"These are the run's most expensive boots; its cheapest asked for "
            f"{figures.rate(cost.least)} requests, because their tokens were kept or their "
            "iterations did less."
        )
    if cost.others >= NEGLIGIBLE:
        yield f"{figures.rate(cost.others)} requests of other kinds in each boot are left out."
