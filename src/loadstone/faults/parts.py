"""The parts of a running deployment: choosing those that a fault hits, and restarting them."""

import signal
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from random import Random

import psutil

from loadstone.errors import EnvironmentUnusable, InvalidInput
from loadstone.faults.sentence import Fault, Verb
from loadstone.lab import composition, processes, state, watcher
from loadstone.lab.keystone import compose, settings
from loadstone.lab.keystone.blueprint import Blueprint
from loadstone.lab.keystone.deployment import WEB
from loadstone.lab.parts.part import Part
from loadstone.lab.ports import Ports
from loadstone.lab.state import DeploymentState, Record
from loadstone.system import locks

FAULT = "LOADSTONE_FAULT"  # environment variable of the processes that a fault starts
# Keystone's, and the compute cloud's: in a cloud these are one server.
_MARIADB = ("mariadb", "compute-database")
# Names that a sentence may use -> kinds of parts.
SERVICES = {
    "keystone": ("uwsgi", "apache", "gunicorn", "granian", "single", "rust-keystone"),
    "mysql": _MARIADB,
    "mariadb": _MARIADB,
    "postgres": ("postgres",),
    "postgresql": ("postgres",),
    "database": (*_MARIADB, "postgres"),
    "memcached": ("memcached",),
    "haproxy": ("haproxy",),
    "nginx": ("nginx",),
    "ldap": ("slapd",),
    # Of the compute cloud. With compute=nova one process has all services of Nova.
    "nova-api": ("nova",),
    "nova-conductor": ("nova-conductor",),
    "nova-scheduler": ("nova-scheduler",),
    "nova-compute": ("nova-compute",),
    "placement-api": ("placement",),
    "glance-api": ("glance",),
    "neutron-server": ("neutron",),
    "rabbitmq": ("rabbitmq",),
}
OF_A_NODE = (*SERVICES["keystone"], "nginx")  # killed when a node reboots


def kind_of(part: str) -> str:
    """Return the kind of a part: "uwsgi" of "uwsgi-2"."""
    kind, _, number = part.rpartition("-")
    return kind if number.isdigit() else part


def node_of(part: str) -> int:
    """Return the node number of a part, from 1."""
    number = part.rpartition("-")[2]
    return int(number) if number.isdigit() else 1


def nodes_of(records: Iterable[Record]) -> list[int]:
    """Return the numbers of the nodes of some parts, in rising order."""
    return sorted({node_of(record.part) for record in records})


def of_nodes(records: Iterable[Record]) -> list[Record]:
    """Return the parts that are of a node."""
    return [record for record in records if kind_of(record.part) in OF_A_NODE]


def members(records: Iterable[Record]) -> tuple[processes.Process, ...]:
    """Return all living processes of some parts."""
    leaders = [record.process for record in records if record.process is not None]
    return tuple(one for family in processes.families(leaders) for one in family)


def read_state(folder: Path) -> DeploymentState:
    """Return the state of a running deployment."""
    deployment = state.read(folder)
    if deployment is None or not deployment.was_started:
        raise EnvironmentUnusable(f"lab {folder.name} does not run (any more)")
    return deployment


def hit(fault: Fault, deployment: DeploymentState, random: Random) -> tuple[Record, ...]:
    """Return the parts that a fault hits; raise InvalidInput if the deployment has none."""
    running = [record for record in deployment.records if record.process is not None]
    kinds = _kinds(fault)
    own = [record for record in running if kind_of(record.part) in kinds]
    if not own:
        there = ", ".join(record.part for record in running)
        service = fault.service or "keystone"
        raise InvalidInput(
            f"fault {fault.sentence!r}: lab {deployment.name} has no {service}; its parts are "
            f"{there}"
        )
    hit_nodes = _nodes(fault, nodes_of(own), random)
    return tuple(record for record in own if node_of(record.part) in hit_nodes)


def _kinds(fault: Fault) -> Sequence[str]:
    if not fault.service:
        return OF_A_NODE
    if fault.service not in SERVICES:
        raise InvalidInput(
            f"fault {fault.sentence!r}: no service {fault.service!r}; choose from "
            f"{', '.join(SERVICES)}"
        )
    kinds = SERVICES[fault.service]
    is_node = fault.verb is Verb.REBOOT and fault.service == "keystone"
    return OF_A_NODE if is_node else kinds


def _nodes(fault: Fault, nodes: Sequence[int], random: Random) -> Sequence[int]:
    if fault.node is not None:
        if fault.node not in nodes:
            raise InvalidInput(
                f"fault {fault.sentence!r}: no node {fault.node}; choose from "
                f"{', '.join(map(str, nodes))}"
            )
        return (fault.node,)
    match fault.which:
        case "all":
            return nodes
        case "random":
            return (random.choice(nodes),)
        case "one":
            return nodes[:1]


def blueprint(folder: Path) -> Blueprint:
    """Return the blueprint of a running deployment, without passwords."""
    deployment = read_state(folder)
    ports = dict(deployment.ports)
    return Blueprint(folder, settings.started(deployment), Ports({}, ports), ports[WEB])


def part(folder: Path, name: str) -> Part:
    """Return a part of a deployment, which can be started again but not prepared."""
    return next(one for one in compose.parts(blueprint(folder)) if one.name == name)


def undo_target(record: Record) -> str:
    """Return "PART PID", or "PART" for a stopped part, for the undo journal."""
    return record.part if record.process is None else f"{record.part} {record.process.pid}"


def end_process(folder: Path, name: str, pid: int) -> None:
    """End a part's process if it still has this PID."""
    record = next(one for one in read_state(folder).records if one.part == name)
    if record.process is not None and record.process.pid == pid:
        processes.stop(record.process, stop_signal=signal.Signals(record.ask))


def start_again(folder: Path, name: str) -> None:
    """Start a part if it does not run, and wait until it serves."""
    started, process = launch(folder, name)
    if process is not None:
        composition.await_health(started, process)


def launch(folder: Path, name: str) -> tuple[Part, processes.Process | None]:
    """Start a part if it does not run; return it and its process, which need not serve yet."""
    started = part(folder, name)
    with locks.held(folder / watcher.LOCK):
        deployment = read_state(folder)
        record = next(one for one in deployment.records if one.part == name)
        process = record.process
        if process is None or not processes.alive(process):
            if process is not None:
                processes.end(processes.family(process), grace_s=0.0)
            processes.end(_unknown(folder, deployment), grace_s=0.0)
            process = started.start()
            state.write(folder, deployment.with_record(replace(record, process=process)))
    return started, process


def replace_process(folder: Path, name: str, process: processes.Process) -> None:
    """Record the new process of a part."""
    with locks.held(folder / watcher.LOCK):
        deployment = read_state(folder)
        record = next(one for one in deployment.records if one.part == name)
        state.write(folder, deployment.with_record(replace(record, process=process)))


def _unknown(folder: Path, deployment: DeploymentState) -> tuple[processes.Process, ...]:
    """Return processes of the deployment that no record lists: started just before a crash.

    Those of a fault that is in force are left to it: several faults may overlap.
    """
    own = set(members(deployment.records))
    others = (process for process in processes.marked(folder) if process not in own)
    return tuple(process for process in others if not _is_of_a_fault(process))


def _is_of_a_fault(process: processes.Process) -> bool:
    with suppress(psutil.Error):
        return FAULT in psutil.Process(process.pid).environ()
    return True  # it has ended
