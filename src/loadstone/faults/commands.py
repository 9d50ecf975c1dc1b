"""Faults of a real cloud: a user's file maps services and actions to commands."""

import os
import re
import secrets
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

from loadstone.errors import InvalidInput, LoadstoneError
from loadstone.faults.host import HERE, HostCommand, carry_out
from loadstone.faults.journal import Owner, Undo, UndoJournal, UndoStep
from loadstone.faults.model import Action, FaultCommands, FaultRecord, ServiceCommands
from loadstone.faults.observer import Injector
from loadstone.faults.parts import FAULT
from loadstone.faults.sentence import Fault, Verb
from loadstone.faults.undo import end_marked, undo_steps
from loadstone.system import yaml_file
from loadstone.system.redaction import is_secret_option, masked
from loadstone.system.yaml_file import Place

HOSTS = "hosts"
ENVIRONMENT = "environment"
NODE = "FAULT_NODE"  # variable with the number of the host in the list
_VARIABLE = re.compile(r"[A-Za-z_]\w*", re.ASCII)


def read_commands(path: Path) -> FaultCommands:
    """Read a file of services; InvalidInput says what is wrong.

    SERVICE: {hosts: [USER@HOST, ...], environment: [VARIABLE, ...], ACTION: {do: COMMAND, undo:
    COMMAND}, ...}; actions are those of the sentences, `node` is the service of sentences that name
    none, `environment` is optional.
    """
    file = yaml_file.read(path, "--faults")
    tree = file.content
    if not isinstance(tree, dict) or not tree:
        raise InvalidInput(f"{file.place()}: must be services, as keystone: {{hosts: [...], ...}}")
    services: dict[str, ServiceCommands] = {}
    for name, one in tree.items():
        key = str(name).lower()  # as sentences are, names are read without regard to case
        if key in services:
            raise InvalidInput(
                f"{file.place(name)}: two services differ in upper and lower case only"
            )
        services[key] = _service(one, lambda *keys, name=name: f"{file.place(name, *keys)}: {name}")
    return FaultCommands(str(path), services)


def _service(tree: Any, place: Place) -> ServiceCommands:
    if not isinstance(tree, dict) or not isinstance(tree.get(HOSTS), list) or not tree[HOSTS]:
        raise InvalidInput(f"{place(HOSTS)}: must have hosts, a list of [USER@]HOST or {HERE!r}")
    hosts = tuple("" if host is None else str(host) for host in tree[HOSTS])
    for index, host in enumerate(hosts):
        if not host or host.startswith("-") or not host.isprintable() or " " in host:
            raise InvalidInput(f"{place(HOSTS, index)}: {host!r} is not a host")
    actions = _actions(
        {name: value for name, value in tree.items() if name not in (HOSTS, ENVIRONMENT)}, place
    )
    return ServiceCommands(hosts, actions, _environment(tree.get(ENVIRONMENT, []), place))


def _environment(names: Any, place: Place) -> tuple[str, ...]:
    is_list = isinstance(names, list) and all(isinstance(one, str) for one in names)
    wrong = [one for one in names if not _VARIABLE.fullmatch(one)] if is_list else [names]
    if wrong:
        raise InvalidInput(
            f"{place(ENVIRONMENT)}: {ENVIRONMENT} must be a list of names of variables, as "
            f"[OS_CLOUD], not {wrong[0]!r}"
        )
    return tuple(names)


def _actions(tree: dict[Any, Any], place: Place) -> dict[str, Action]:
    verbs = {verb.value for verb in Verb if verb is not Verb.OVERLOAD}  # part of the load
    actions = {}
    for name, value in tree.items():
        if name not in verbs:
            known = ", ".join(sorted(verbs))
            raise InvalidInput(f"{place(name)}: no action {name!r}; choose from {known}")
        entry = {"do": value} if isinstance(value, str) else value
        if not isinstance(entry, dict) or "do" not in entry or set(entry) - {"do", "undo"}:
            raise InvalidInput(
                f"{place(name)}: {name} must be a command, or {{do: ..., undo: ...}}"
            )
        for key, command in entry.items():
            if not isinstance(command, str) or not command.strip():
                raise InvalidInput(
                    f"{place(name, key)}: {name}: {key} must be a command, as text, not {command!r}"
                )
        actions[str(name)] = Action(entry["do"], entry.get("undo", ""))
    return actions


@dataclass(slots=True)
class CommandInjector(Injector):
    """Carries faults out by commands; several may overlap."""

    journal: UndoJournal
    commands: FaultCommands
    owner: Owner = field(default_factory=Owner.this)
    random: Random = field(default_factory=Random)

    def check(self, fault: Fault) -> None:
        """Raise InvalidInput for a fault without commands in the file, or with a secret."""
        service, _ = self.commands.find(fault)
        self._nodes(fault, service)
        require_no_secret(fault)

    def inject(self, fault: Fault) -> FaultRecord:
        """Inject a fault, hold it, undo it; errors are in `failure` of the result."""
        log: list[tuple[float, str]] = []
        failures: list[str] = []
        hosts: tuple[str, ...] = ()
        to_undo: list[UndoStep] = []
        began_s = self.clock.unix_s()
        try:
            service, action = self.commands.find(fault)
            nodes = self._nodes(fault, service)
            hosts = tuple(service.hosts[node - 1] for node in nodes)
            for node, host in zip(nodes, hosts, strict=True):
                do = _with_parameters(action.do, fault, node)
                if action.undo:
                    command = _with_parameters(action.undo, fault, node)
                    undo = HostCommand.here_and_now(host, command, service.environment)
                    to_undo.append(self.journal.note(Undo.COMMAND, undo.as_json(), self.owner))
                log.append((self.clock.unix_s(), f"{host}: {masked(action.do)}"))
                carry_out_marked(self.journal, self.owner, do, host)
            self.begun.set()
            self.clock.wait(self.over, fault.hold_s)
        except (LoadstoneError, OSError) as problem:
            failures.append(str(problem))
        began_s = log[0][0] if log else began_s
        outcome = undo_steps(
            self.journal, to_undo, lambda step: log.append((self.clock.unix_s(), _undone(step)))
        )
        failures += [one.failure for one in outcome.failed]
        undone_s = log[-1][0] if outcome.undone and not outcome.failed else None
        return FaultRecord(fault, began_s, undone_s, None, hosts, tuple(log), "; ".join(failures))

    def _nodes(self, fault: Fault, service: ServiceCommands) -> tuple[int, ...]:
        """Return the numbers of the hosts that a fault hits, from 1."""
        if fault.node is not None:
            if not 1 <= fault.node <= len(service.hosts):
                raise InvalidInput(
                    f"fault {fault.sentence!r}: no node {fault.node}; {self.commands.file} has "
                    f"{len(service.hosts)}"
                )
            return (fault.node,)
        match fault.which:
            case "all":
                return tuple(range(1, len(service.hosts) + 1))
            case "random":
                return (self.random.randint(1, len(service.hosts)),)
            case "one":
                return (1,)


def require_no_secret(fault: Fault) -> None:
    """Refuse a secret value: it would be in the store, in messages and in lists of processes."""
    option = ".".join(fault.option)
    if is_secret_option(option.lower()) or masked(fault.value) != fault.value:
        raise InvalidInput(
            f"fault 'rolling restart of keystone with {option}=...': the value of {option} is a "
            "secret, and a fault's text is stored and shown; use 'rolling restart of keystone' and "
            "a command (--faults FILE) that takes the value from a file of the host"
        )


def _with_parameters(command: str, fault: Fault, node: int) -> str:
    """Return the command with the parameters of the sentence as variables.

    They are in its text, because ssh passes no variables on.
    """
    parameters = fault.parameters | ({NODE: str(node)} if NODE in command else {})
    given = " ".join(f"{name}={shlex.quote(one)}" for name, one in parameters.items())
    return f"export {given}; {command}" if given else command


def carry_out_marked(
    journal: UndoJournal,
    owner: Owner,
    command: str,
    host: str = HERE,
    variables: Mapping[str, str] | None = None,
) -> None:
    """Run a command; raise EnvironmentUnusable if it fails.

    If this process dies or is interrupted, the command is ended before its undo. One on another
    machine goes on: its undo waits until it has ended.
    """
    mark, is_here = secrets.token_hex(8), host == HERE
    running = journal.note(Undo.END if is_here else Undo.WAIT, mark, owner)
    try:
        # It has a session of its own, so that Ctrl-C does not reach it.
        environment = {**os.environ, **(variables or {}), FAULT: mark}
        interrupted = partial(end_marked, mark) if is_here else None
        carry_out(host, command, environment, interrupted=interrupted)
    finally:
        journal.remove(running)


def _undone(step: UndoStep) -> str:
    return f"{HostCommand.from_json(step.what).host}: undone"
