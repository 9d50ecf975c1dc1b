"""A sizing as a report."""

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from loadstone.diagnosis.demand import cpu_name, role_name
from loadstone.diagnosis.finding import three_digits
from loadstone.diagnosis.service import KEYSTONE
from loadstone.report import figures
from loadstone.report.section import (
    Answer,
    Certainty,
    Fact,
    NamedFigure,
    Report,
    Row,
    Section,
    Statement,
    Table,
)
from loadstone.report.sections.tables import columns
from loadstone.size.boots import Boots
from loadstone.size.demand import DemandEstimate
from loadstone.size.sizing import Sizing, round_up


def report_of(found: Sizing) -> Report:
    """Return the sizing as a report of one section."""
    loads = ", ".join(f"{one.rate_rps:g}/s {one.demand.title}" for one in found.loads)
    asked = f"{found.boots.rate_rps:g}/s boots of servers, which ask for " if found.boots else ""
    subject = f"{asked}{loads}, at {figures.percent(found.utilisation)} utilisation"
    section = _section(found, subject)
    return Report(
        title=section.answer.sentence,
        subject=subject,
        sections=(section,),
        name="loadstone size",
        data=_data(found),
    )


def _section(found: Sizing, subject: str) -> Section:
    value, low, high = round_up(found.nodes)
    cores = figures.counted(found.cores_per_node, "core")
    workers, *_ = round_up(found.workers)
    said = (
        f"{figures.counted(value, 'node')} of {cores}, with {figures.counted(workers, 'worker')} "
        "of Keystone"
    )
    interval = "" if low is None or high is None else f"{low} to {high}"
    return Section(
        id="sizing",
        title="what it needs",
        answer=Answer(
            label="nodes",
            text=str(value),
            unit=f"of {cores}",
            sentence=said,
            value=value,
            low=low,
            high=high,
            interval=interval,
            confidence=0.95 if interval else 0.0,
        ),
        certainty=Certainty("sustained", "computed"),
        facts=(Fact("workers", _workers(found.workers), rank=1),),
        figures=tuple(
            NamedFigure(f"{role.value}_cores", cpu_name(role, KEYSTONE), one.value)
            for role, one in found.cores
        ),
        statements=tuple(map(Statement, (_full(found), *found.assumptions))),
        tables=(
            Table(
                "What it needs",
                columns("what", numbers=("needed", "95 %")),
                tuple(map(Row, _rows(found))),
                is_primary=True,
            ),
            _costs(found),
        ),
        data={"title": subject, "scenario": ""},
    )


def _data(found: Sizing) -> dict[str, Any]:
    return {
        "document": "sizing",
        "utilisation": found.utilisation,
        "boots": _boots(found.boots),
        "rates_rps": {one.demand.scenario: one.rate_rps for one in found.loads},
        "cores": {role.value: asdict(one) for role, one in found.cores},
        "workers": _whole(found.workers),
        "cores_per_node": found.cores_per_node,
        "nodes": _whole(found.nodes),
        "database": asdict(found.database) | {"statements_rps": found.statements_rps}
        if found.database
        else None,
        "memcached": asdict(found.cache) | {"gets_rps": found.cache_gets_rps}
        if found.cache
        else None,
        "measured_machine_full_at": asdict(found.full.at) if found.full else None,
        "demands": [
            {
                "scenario": one.demand.scenario,
                "title": one.demand.title,
                "cpu_ms": {role.value: asdict(cpu.times(1e3)) for role, cpu in one.demand.cpu_s},
                "service_ms": asdict(one.demand.service_s.times(1e3)),
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
        name = role_name(role, KEYSTONE)
        yield f"cores of {name.removeprefix('the ')}", three_digits(one.value), _interval(one)
    yield "workers of Keystone", *_whole_cells(found.workers)
    yield f"nodes of {figures.counted(found.cores_per_node, 'core')}", *_whole_cells(found.nodes)
    for name, connections in (("database", found.database), ("memcached", found.cache)):
        if connections is not None:
            yield f"connections to {name}, held", str(connections.held), figures.MISSING
            yield f"connections that {name} allows", str(connections.limit), figures.MISSING
    if found.statements_rps is not None:
        yield "SQL statements per second", f"{found.statements_rps:,.0f}", figures.MISSING


def _costs(found: Sizing) -> Table:
    roles = [role for role, _ in found.cores]
    names = (
        *(cpu_name(role, KEYSTONE) for role in roles),
        "holds a worker",
        "statements",
        "trials",
        "runs",
    )
    rows = []
    for load in found.loads:
        demand = load.demand
        costs = (demand.of(role) for role in roles)
        shown = (figures.milliseconds(1e3 * one.value) if one else figures.MISSING for one in costs)
        statements = figures.MISSING if demand.statements is None else f"{demand.statements:.1f}"
        held = figures.milliseconds(1e3 * demand.service_s.value)
        counts = (str(demand.trials), str(len(demand.runs)))
        rows.append(Row((demand.title, *shown, held, statements, *counts)))
    heads = columns("one iteration costs", numbers=names)
    return Table("What one iteration costs", heads, tuple(rows), is_primary=True)


def _full(found: Sizing) -> str:
    machines = [one for load in found.loads for one in load.demand.machines]
    if found.full is None:
        unknown = dict.fromkeys(one.name for one in machines if one.cores is None)
        why = (
            f"how many cores {', '.join(unknown)} had is not known"
            if unknown
            else "the scenarios were measured on different machines"
        )
        return f"The rate of this mix at which a measured machine is full is unknown: {why}."
    machine = found.full.machine
    total = sum(one.rate_rps for one in found.loads)
    rate = figures.rate(total * found.full.at.value)
    if len({one.host for one in machines}) > 1:
        and_ = " and the load generator" if machine.has_generator else ""
        return (
            f"Of the machines that were measured, {machine.name} would be full first: at {rate}/s "
            f"of this mix, if only the service{and_} ran on it and each machine kept its share of "
            "the load."
        )
    if machine.host:
        return (
            f"The machine that was measured, {machine.name}, would be full at {rate}/s of this mix "
            "if only the service ran on it."
        )
    with_ = ", the load generator too" if machine.has_generator else ""
    return (
        f"The machine that was measured, with everything on it{with_}, would be full at {rate}/s "
        f"of this mix."
    )


def _interval(one: DemandEstimate) -> str:
    if one.low is None or one.high is None:
        return figures.MISSING
    return f"{three_digits(one.low)} to {three_digits(one.high)}"


def _workers(one: DemandEstimate) -> str:
    value, within = _whole_cells(one)
    return value if within == figures.MISSING else f"{value} ({within}, 95 %)"


def _whole_cells(one: DemandEstimate) -> tuple[str, str]:
    value, low, high = round_up(one)
    return str(value), figures.MISSING if low is None or high is None else f"{low} to {high}"


def _whole(one: DemandEstimate) -> dict[str, int | None]:
    value, low, high = round_up(one)
    return {"value": value, "low": low, "high": high}
