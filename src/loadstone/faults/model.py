"""Planned faults, the commands that carry them out, and their records."""

from collections.abc import Mapping
from dataclasses import dataclass

from loadstone.analysis.fault import FaultPhase
from loadstone.errors import InvalidInput
from loadstone.faults.sentence import Fault
from loadstone.system.redaction import secrets_in


@dataclass(frozen=True, slots=True)
class Planned:
    """A fault and its time."""

    fault: Fault
    at_s: float  # after the load's start


@dataclass(frozen=True, slots=True)
class FaultRecord:
    """Record of an injected fault; all times are Unix times."""

    fault: Fault
    began_s: float
    undone_s: float | None
    detected_s: float | None  # when haproxy stopped sending to the node
    targets: tuple[str, ...]
    steps: tuple[tuple[float, str], ...]  # when, what
    failure: str = ""  # why it could not be carried out or undone
    phases: tuple[FaultPhase, ...] = ()


@dataclass(frozen=True, slots=True)
class Action:
    """A command, and the command that undoes it."""

    do: str
    undo: str = ""


@dataclass(frozen=True, slots=True)
class ServiceCommands:
    """The hosts of a service, and the commands for it."""

    hosts: tuple[str, ...]  # for ssh: [USER@]HOST; or "here"
    actions: Mapping[str, Action]
    environment: tuple[str, ...] = ()  # variables that the commands need


@dataclass(frozen=True, slots=True)
class FaultCommands:
    """The services of a commands file."""

    file: str
    services: Mapping[str, ServiceCommands]

    @property
    def secrets(self) -> frozenset[str]:
        """Secrets in the commands, for redaction."""
        actions = [one for service in self.services.values() for one in service.actions.values()]
        lines = [line for action in actions for line in (action.do, action.undo)]
        return secrets_in([{"sys_call": line} for line in lines])

    def find(self, fault: Fault) -> tuple[ServiceCommands, Action]:
        """Return the service and the action that a fault names; InvalidInput if there is none."""
        name = fault.service or "node"
        service = self.services.get(name)
        if service is None:
            there = ", ".join(self.services)
            raise InvalidInput(
                f"fault {fault.sentence!r}: {self.file} has no service {name}; choose from {there}"
            )
        action = service.actions.get(fault.verb.value)
        if action is None:
            there = ", ".join(service.actions)
            raise InvalidInput(
                f"fault {fault.sentence!r}: {self.file}: {name} has no {fault.verb.value}; "
                f"choose from {there}"
            )
        return service, action
