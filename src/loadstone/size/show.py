"""A sizing as a table and as data."""

from collections.abc import Iterator
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from loadstone.diagnosis.demand import NAMES
from loadstone.report import figures
from loadstone.size.boots import Boots
from loadstone.size.demand import DemandEstimate
from loadstone.size.sizing import ConnectionsNeeded, Sizing, round_up


def show(found: Sizing, console: Console) -> None:
    """Print the sizing, the cost of one iteration, and the assumptions."""
    loads = ", ".join(f"{one.rate_rps:g}/s {one.demand.title}" for one in found.loads)
    if found.boots is not None:
        console.print(
            f"{found.boots.rate_rps:g}/s boots of servers; with them Keystone is asked for"
        )
    console.print(f"{loads}, at {figures.percent(found.utilisation)} utilisation:")
    table = Table("what", box=SIMPLE_HEAD)
    table.add_column("needed", justify="right")
    table.add_column("95 %", justify="right")
    for cells in _rows(found):
        table.add_row(*cells)
    console.print(table)
    console.print(_costs(found))
    console.print(_full(found), soft_wrap=True)
    for sentence in found.assumptions:
        console.print(f"- {sentence}", soft_wrap=True)


def as_data(found: Sizing) -> dict[str, Any]:
    """Return the sizing as JSON values."""
    return {
        "utilisation": found.utilisation,
        "boots": _boots(found.boots),
        "rates_rps": {one.demand.scenario: one.rate_rps for one in found.loads},
        "cores": {role.value: _estimate(one) for role, one in found.cores},
        "workers": _whole(found.workers),
        "cores_per_node": found.cores_per_node,
        "nodes": _whole(found.nodes),
        "database": _connections(found.database) | {"statements_rps": found.statements_rps}
        if found.database
        else None,
        "memcached": _connections(found.cache) | {"gets_rps": found.cache_gets_rps}
        if found.cache
        else None,
        "measured_machine_full_at": _estimate(found.full_at),
        "demands": [
            {
                "scenario": one.demand.scenario,
                "title": one.demand.title,
                "cpu_ms": {role.value: _estimate(cpu, 1e3) for role, cpu in one.demand.cpu_s},
                "service_ms": _estimate(one.demand.service_s, 1e3),
                "statements": one.demand.statements,
                "cache_gets": one.demand.cache_gets,
                "trials": one.demand.trials,
                "runs": list(one.demand.runs),
            }
            for one in found.loads
        ],
        "assumptions": list(found.assumptions),
    }


def _boots(found: Boots | None) -> dict[str, Any] | None:
    if found is None:
        return None
    cost = found.cost
    return {
        "rate_rps": found.rate_rps,
        "logins": cost.logins,
        "validations": cost.validations,
        "others": cost.others,
        "scenario": cost.scenario,
        "counted": cost.counted,
        "run_id": cost.run_id,
    }


def _rows(found: Sizing) -> Iterator[tuple[str, str, str]]:
    for role, one in found.cores:
        name = NAMES[role].removesuffix("'s CPU")
        yield f"cores of {name.removeprefix('the ')}", f"{one.value:.3g}", _interval(one)
    yield "workers of Keystone", *_whole_cells(found.workers)
    yield f"nodes of {found.cores_per_node} cores", *_whole_cells(found.nodes)
    for name, connections in (("database", found.database), ("memcached", found.cache)):
        if connections is not None:
            yield f"connections to {name}, held", str(connections.held), figures.MISSING
            yield f"connections that {name} allows", str(connections.limit), figures.MISSING
    if found.statements_rps is not None:
        yield "SQL statements per second", f"{found.statements_rps:,.0f}", figures.MISSING


def _costs(found: Sizing) -> Table:
    table = Table("one iteration costs", box=SIMPLE_HEAD)
    roles = [role for role, _ in found.cores]
    for role in roles:
        table.add_column(NAMES[role], justify="right")
    for head in ("holds a worker", "statements", "trials", "runs"):
        table.add_column(head, justify="right")
    for load in found.loads:
        demand = load.demand
        costs = [demand.of(role) for role in roles]
        table.add_row(
            demand.title,
            *(figures.milliseconds(1e3 * one.value) if one else figures.MISSING for one in costs),
            figures.milliseconds(1e3 * demand.service_s.value),
            figures.MISSING if demand.statements is None else f"{demand.statements:.1f}",
            str(demand.trials),
            str(len(demand.runs)),
        )
    return table


def _full(found: Sizing) -> str:
    total = sum(one.rate_rps for one in found.loads)
    rate = figures.rate(total * found.full_at.value)
    return (
        f"The machine that was measured, with everything on it, the load generator too, would be "
        f"full at {rate}/s of this mix."
    )


def _interval(one: DemandEstimate) -> str:
    if one.low is None or one.high is None:
        return figures.MISSING
    return f"{one.low:.3g} to {one.high:.3g}"


def _whole_cells(one: DemandEstimate) -> tuple[str, str]:
    value, low, high = round_up(one)
    return str(value), figures.MISSING if low is None or high is None else f"{low} to {high}"


def _estimate(one: DemandEstimate, factor: float = 1.0) -> dict[str, float | None]:
    low, high = one.low, one.high
    return {
        "value": one.value * factor,
        "low": None if low is None else low * factor,
        "high": None if high is None else high * factor,
    }


def _whole(one: DemandEstimate) -> dict[str, int | None]:
    value, low, high = round_up(one)
    return {"value": value, "low": low, "high": high}


def _connections(one: ConnectionsNeeded) -> dict[str, Any]:
    return {"held": one.held, "limit": one.limit, "busy": one.busy}
