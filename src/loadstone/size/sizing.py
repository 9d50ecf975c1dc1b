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
from loadstone.monitor.roles import Role
from loadstone.report import figures
from loadstone.result.model import OF_LAB_HOST
from loadstone.size.boots import Boots
from loadstone.size.demand import ROLES, Demand, DemandEstimate, settings_that_differ

POOL, OVERFLOW = 5, 50  # defaults of oslo.db, if not in the facts of a run
NEGLIGIBLE = 0.005  # requests of a boot: less is shown as 0.00

FLEET = "fleet"  # fact: the hosts that sent the load


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
    full_at: DemandEstimate  # multiple of this load at which the measured machine is full
    has_generator: bool  # whether the load generator was on the measured machine
    assumptions: tuple[str, ...]
    boots: Boots | None = None  # their logins and validations are part of the loads


def size(
    loads: Sequence[ScenarioLoad],
    cores_per_node: int | None,
    utilisation: float,
    boots: Boots | None = None,
) -> Sizing:
    """Return the resources for all loads; `cores_per_node` None: as on the measured machine.

    The loads must include the Keystone requests of `boots`.
    """
    cores = tuple(
        (role, total.times(1 / utilisation))
        for role in ROLES
        if (total := _total(loads, role)) is not None
    )
    facts = dict(loads[0].demand.environment.settings)
    measured_cores = int(_of_machine(facts, "cores", "1"))
    has_generator = not _is_elsewhere(facts) and FLEET not in facts
    each = cores_per_node or measured_cores
    front = _sum(estimate for role, estimate in cores if role in (Role.KEYSTONE, Role.WEB))
    workers = _workers(loads, dict(cores)[Role.KEYSTONE], utilisation)
    count = ceil(workers.high or workers.value)
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
        full_at=_full_at(loads, measured_cores, has_generator=has_generator),
        has_generator=has_generator,
        assumptions=(*_assumptions(loads, facts, utilisation), *_of_boots(boots)),
        boots=boots,
    )


def _is_elsewhere(facts: Mapping[str, str]) -> bool:
    """Whether the lab was on another machine than the load generator."""
    return f"{OF_LAB_HOST}cores" in facts


def _of_machine(facts: Mapping[str, str], name: str, otherwise: str) -> str:
    """Return a fact of the machine that the service was on."""
    if _is_elsewhere(facts):
        return facts.get(f"{OF_LAB_HOST}{name}", otherwise)
    return facts.get(name, otherwise)


def round_up(estimate: DemandEstimate) -> tuple[int, int | None, int | None]:
    """Round an estimate and its interval up to integers of at least one."""

    def up(value: float) -> int:
        return max(1, ceil(value - 1e-9))

    low, high = estimate.low, estimate.high
    return up(estimate.value), None if low is None else up(low), None if high is None else up(high)


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
    return ConnectionsNeeded(held, ceil(held / utilisation), busy)


def _cache(facts: Mapping[str, str], workers: int, utilisation: float) -> ConnectionsNeeded | None:
    if facts.get("conf.uses_memcached") != "true" and "memcached" not in facts.get("cache", ""):
        return None
    # As in the audit: a thread opens one connection per region, also with a pool of connections.
    held = workers * CACHE_REGIONS
    return ConnectionsNeeded(held, ceil(held / utilisation), None)


def _whole(facts: Mapping[str, str], name: str, otherwise: int) -> int:
    text = facts.get(name, "")
    return int(text) if text.removeprefix("-").isdigit() else otherwise


def _rate(parts: Sequence[tuple[float, float | None]]) -> float | None:
    """Return the sum of rates times costs; None if a cost is unknown."""
    known = [(rate, cost) for rate, cost in parts if cost is not None]
    return sum(rate * cost for rate, cost in known) if len(known) == len(parts) else None


def _full_at(loads: Sequence[ScenarioLoad], cores: int, *, has_generator: bool) -> DemandEstimate:
    """Return the multiple of the load that uses all processors of the measured machine."""
    roles = (*ROLES, Role.GENERATOR) if has_generator else ROLES
    totals = [total for role in roles if (total := _total(loads, role))]
    busy = _sum(totals)
    return DemandEstimate(
        cores / busy.value,
        None if busy.high is None else cores / busy.high,
        None if not busy.low else cores / busy.low,
    )


def _assumptions(
    loads: Sequence[ScenarioLoad], facts: Mapping[str, str], utilisation: float
) -> Iterable[str]:
    processor = _of_machine(facts, "processor", "the processor of the measured machine")
    yield f"A core is one of those measured ({processor}); another processor costs other times."
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
    if cost.least < cost.total:
        yield (
            f"These are the run's most expensive boots; its cheapest asked for "
            f"{figures.rate(cost.least)} requests, because their tokens were kept or their "
            "iterations did less."
        )
    if cost.others >= NEGLIGIBLE:
        yield f"{figures.rate(cost.others)} requests of other kinds in each boot are left out."
