"""Faults of a real cloud: a user's file maps services and actions to commands."""

import json
import time
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from threading import Event
from typing import Any

from loadstone import yaml_file
from loadstone.analysis.fault import FaultEffect
from loadstone.errors import InvalidInput, LoadstoneError
from loadstone.faults.host import HERE, carry_out
from loadstone.faults.journal import Undo, UndoJournal, UndoStep
from loadstone.faults.model import Action, FaultCommands, FaultRecord, Service
from loadstone.faults.sentence import Fault, Verb
from loadstone.faults.undo import undo
from loadstone.findings import Finding
from loadstone.lab import processes
from loadstone.lab.part import Say

HOSTS = "hosts"


def read_commands(path: Path) -> FaultCommands:
    """Read a file of services; InvalidInput says what is wrong.

    SERVICE: {hosts: [USER@HOST, ...], ACTION: {do: COMMAND, undo: COMMAND}, ...}; actions are
    those of the sentences, `node` is the service of sentences that name none.
    """
    tree = yaml_file.read(path, "--faults")
    if not isinstance(tree, dict) or not tree:
        raise InvalidInput(f"--faults {path}: must be services, as keystone: {{hosts: [...], ...}}")
    place = f"--faults {path}"
    services = {str(name): _service(one, f"{place}: {name}") for name, one in tree.items()}
    return FaultCommands(str(path), services)


def _service(tree: Any, place: str) -> Service:
    if not isinstance(tree, dict) or not isinstance(tree.get(HOSTS), list) or not tree[HOSTS]:
        raise InvalidInput(f"{place}: must have hosts, a list of [USER@]HOST or {HERE!r}")
    hosts = tuple(str(host) for host in tree[HOSTS])
    for host in hosts:
        if host.startswith("-") or not host.isprintable() or " " in host:
            raise InvalidInput(f"{place}: {host!r} is no host")
    verbs = {verb.value for verb in Verb}
    actions = {}
    for name, value in tree.items():
        if name == HOSTS:
            continue
        if name not in verbs:
            known = ", ".join(sorted(verbs))
            raise InvalidInput(f"{place}: no action {name!r}; there are {known}")
        entry = {"do": value} if isinstance(value, str) else value
        if not isinstance(entry, dict) or "do" not in entry or set(entry) - {"do", "undo"}:
            raise InvalidInput(f"{place}: {name} must be a command, or {{do: ..., undo: ...}}")
        actions[str(name)] = Action(str(entry["do"]), str(entry.get("undo", "")))
    return Service(hosts, actions)


@dataclass(slots=True)
class CommandInjector:
    """Carries faults out by commands; several may overlap."""

    folder: Path  # of the undo journal
    commands: FaultCommands
    random: Random = field(default_factory=Random)
    over: Event = field(default_factory=Event)
    _journal: UndoJournal = field(init=False)

    def __post_init__(self) -> None:
        self._journal = UndoJournal.read(self.folder)

    def check(self, fault: Fault) -> None:
        """Raise InvalidInput for a fault without commands in the file."""
        service, _ = self.commands.find(fault)
        self._hosts(fault, service)

    def prepare(self, fault: Fault, say: Say) -> None:
        """Need no preparation."""

    def logged_failures(self) -> None:
        """Return None: the logs of the balancer are not known."""

    def findings(self, fault: Fault, effect: FaultEffect) -> tuple[Finding, ...]:  # noqa: ARG002
        """Return nothing: the fault is its own explanation."""
        return ()

    def settle(self) -> None:
        """Return at once: the service's health is not known."""

    def inject(self, fault: Fault) -> FaultRecord:
        """Inject a fault, hold it, undo it; errors are in `failure` of the result."""
        steps: list[tuple[float, str]] = []
        failure, undone_s = "", None
        hosts: tuple[str, ...] = ()
        to_undo: list[UndoStep] = []
        began_s = time.time()
        try:
            service, action = self.commands.find(fault)
            hosts = self._hosts(fault, service)
            for host in hosts if action.undo else ():
                payload = json.dumps({"host": host, "command": action.undo})
                to_undo.append(UndoStep(Undo.COMMAND, payload, processes.boot_id()))
                self._journal.add(to_undo[-1])
            began_s = time.time()
            for host in hosts:
                steps.append((time.time(), f"{host}: {action.do}"))
                carry_out(host, action.do)
            self.over.wait(fault.hold_s)
        except LoadstoneError as problem:
            failure = str(problem)
        for step in reversed(to_undo):
            try:
                undo(step, self.folder)
                self._journal.remove(step)
                undone_s = time.time()
                steps.append((undone_s, "undone"))
            except LoadstoneError as problem:
                failure = failure or str(problem)
        return FaultRecord(fault, began_s, undone_s, None, hosts, tuple(steps), failure)

    def _hosts(self, fault: Fault, service: Service) -> tuple[str, ...]:
        if fault.node is not None:
            if not 1 <= fault.node <= len(service.hosts):
                raise InvalidInput(
                    f"fault {fault.sentence!r}: no node {fault.node}; {self.commands.file} has "
                    f"{len(service.hosts)}"
                )
            return (service.hosts[fault.node - 1],)
        match fault.which:
            case "all":
                return service.hosts
            case "random":
                return (self.random.choice(service.hosts),)
            case "one":
                return service.hosts[:1]
