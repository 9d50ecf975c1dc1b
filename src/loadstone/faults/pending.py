"""Faults that are still in force: named before a command measures or deletes.

A fault is pending if its process has ended, or could not undo it. Commands refuse to use its target
until it is undone or the user insists.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path

from loadstone.cloud.cloud import Endpoint
from loadstone.errors import EnvironmentUnusable, InvalidInput
from loadstone.faults.cores import BoundProcesses
from loadstone.faults.host import HERE, HostCommand
from loadstone.faults.journal import (
    FaultTarget,
    Undo,
    UndoJournal,
    UndoStep,
    journal_paths,
)
from loadstone.faults.model import FaultCommands
from loadstone.oidc.target import OidcIssuer
from loadstone.result.model import LAB, LAB_HOST, Run
from loadstone.system.say import Say
from loadstone.target.choice import (
    NamedTarget,
    OwnLab,
    TargetChoice,
    WebService,
    cloud_of,
    place_of,
)
from loadstone.target.measured import measured_target
from loadstone.target.target import Target

UNDO = "loadstone fault --undo"


@contextmanager
def undone_target(
    choice: TargetChoice,
    say: Say,
    commands: FaultCommands | None = None,
    connected: Callable[[TargetChoice, Say], AbstractContextManager[Target]] = measured_target,
) -> Iterator[Target]:
    """Connect to a target for a measurement, unless a fault of it is still in force.

    Raises EnvironmentUnusable if one is and the user has not insisted.
    """
    hosts = hosts_of(commands)
    known = chosen_target(choice)
    if isinstance(choice, OwnLab) and choice.is_purged:
        forget_lab(choice.name)
    if known is not None:  # before connecting, because a fault may be why it does not answer
        require_undone(known, say, anyway=_insists(choice), hosts=hosts)
    with connected(choice, say) as target:
        if isinstance(choice, NamedTarget) and not (known is not None and choice.anyway):
            require_undone(fault_target(target), say, anyway=choice.anyway, hosts=hosts)
        yield target


def require_undone(
    target: FaultTarget,
    say: Say,
    *,
    anyway: bool = False,
    hosts: Iterable[str] = (),
    run_id: str | None = None,
) -> None:
    """Raise EnvironmentUnusable if a fault of the target, of a host or of a run is in force.

    With `anyway`, say so instead.
    """
    readable, unreadable = _read(target)
    found = [
        (journal, steps)
        for journal in readable
        if (steps := _in_force(journal, target, frozenset(hosts), run_id))
    ]
    messages = [*unreadable, *(_refusal(journal, steps) for journal, steps in found)]
    if messages and not anyway:
        raise EnvironmentUnusable(f"{'; '.join(messages)}; or add --anyway")
    for message in messages:
        say(message)


def journals(target: FaultTarget | None) -> tuple[tuple[UndoJournal, ...], tuple[str, ...]]:
    """Return the journals that concern a target, or all; and which of them are unreadable."""
    readable, unreadable = _read(target)
    wanted = (one for one in readable if target is None or one.target.concerns(target))
    return tuple(wanted), unreadable


def forget_lab(name: str) -> None:
    """Remove from a lab's journal what ends when the lab is purged."""
    journal = UndoJournal.of(lab_target(name))
    if journal.path.exists():
        journal.forget()


def describe_failed(journal: UndoJournal, steps: Sequence[UndoStep]) -> str:
    """Say which steps could not be undone, and the command that undoes each by hand."""
    lines = []
    for step in steps:
        lines += [f"  {step.description}", *([f"    {step.failure}"] if step.failure else [])]
        lines.append(f"    by hand: {_by_hand(journal, step)}")
    count = "1 step was" if len(steps) == 1 else f"{len(steps)} steps were"
    return "\n".join(
        (
            f"{journal.target.name}: {count} not undone; repeat: {UNDO}{journal.target.option}",
            *lines,
        )
    )


def held(journal: UndoJournal) -> str:
    """Say which living processes hold faults of a journal; empty if none does."""
    return _held(journal, journal.steps())


def fault_target(target: Target) -> FaultTarget:
    """Return what the journal of a connected target belongs to."""
    access = target.access
    places = (access.cloud.endpoint, access.endpoint)
    return FaultTarget(target.lab, tuple(dict.fromkeys(one.place for one in places)))


def chosen_target(choice: TargetChoice) -> FaultTarget | None:
    """Return what the journal of a target belongs to, before connecting.

    None if only the connected target tells, or if its lab is made anew for the run.
    """
    match choice:
        case NamedTarget(lab=str(name)) | OwnLab(name=name, is_purged=False):
            return None if place_of(choice) is not None else lab_target(name)
        case NamedTarget(lab=None):
            return FaultTarget(None, (cloud_of(choice).endpoint.place,))
        case OidcIssuer(lab=str(name)):
            return lab_target(name)
        case WebService() | OidcIssuer():
            return FaultTarget(None, (choice.cloud.endpoint.place,))
        case _:
            return None


def lab_target(name: str) -> FaultTarget:
    """Return what the journal of a lab belongs to."""
    from loadstone.lab.deployment import folder_of

    return FaultTarget(folder_of(name))


def run_target(run: Run) -> FaultTarget:
    """Return what the journal of a stored run's target belongs to."""
    facts = dict(run.environment.target)
    endpoints: tuple[str, ...] = ()
    with suppress(ValueError):  # imported from elsewhere
        endpoints = (Endpoint.parse(facts.get("url", "")).place,)
    try:
        lab = lab_target(facts[LAB]).lab if LAB in facts and LAB_HOST not in facts else None
    except InvalidInput:
        lab = None  # not a name of a lab of this machine
    return FaultTarget(lab, endpoints)


def hosts_of(commands: FaultCommands | None) -> tuple[str, ...]:
    """Return the other machines of a file with commands."""
    services = () if commands is None else commands.services.values()
    return tuple(host for service in services for host in service.hosts if host != HERE)


def _insists(choice: TargetChoice) -> bool:
    return isinstance(choice, NamedTarget | OwnLab | WebService | OidcIssuer) and choice.anyway


def _read(target: FaultTarget | None) -> tuple[tuple[UndoJournal, ...], tuple[str, ...]]:
    """Return the readable journals, and why that of the target (or any) is unreadable."""
    readable, unreadable = [], []
    for path in journal_paths():
        try:
            readable.append(UndoJournal.at(path))
        except FileNotFoundError:
            continue  # all was undone in the meantime
        except EnvironmentUnusable as problem:
            if target is None or path.stem == target.key:
                unreadable.append(str(problem))
    return tuple(readable), tuple(unreadable)


def _in_force(
    journal: UndoJournal, target: FaultTarget, hosts: frozenset[str], run_id: str | None
) -> tuple[UndoStep, ...]:
    """Return the steps that concern a target, except those that this process will undo."""
    is_of_target = journal.target.concerns(target)
    pid = os.getpid()

    def concerns(step: UndoStep) -> bool:
        is_of_run = run_id is not None and step.owner.run == run_id
        return is_of_target or is_of_run or step.host in hosts

    def is_own(step: UndoStep) -> bool:
        return step.owner.pid == pid and not step.is_pending

    return tuple(step for step in journal.steps() if concerns(step) and not is_own(step))


def _refusal(journal: UndoJournal, steps: Sequence[UndoStep]) -> str:
    return "; ".join(one for one in (_left(journal, steps), _held(journal, steps)) if one)


def _left(journal: UndoJournal, steps: Sequence[UndoStep]) -> str:
    left = [step for step in steps if step.is_pending]
    if not left:
        return ""
    what = ", ".join(dict.fromkeys(step.description for step in left))
    owners = ", ".join(dict.fromkeys(step.owner.name for step in left))
    return (
        f"{journal.target.name}: a fault of {owners} is still in force; to undo: {what}; first: "
        f"{UNDO}{journal.target.option}"
    )


def _held(journal: UndoJournal, steps: Sequence[UndoStep]) -> str:
    owners = dict.fromkeys(step.owner.name for step in steps if not step.is_pending)
    if not owners:
        return ""
    return (
        f"{journal.target.name}: a fault is in force, which {' and '.join(owners)} holds and will "
        "undo: wait for it"
    )


def _by_hand(journal: UndoJournal, step: UndoStep) -> str:
    match step.undo, journal.target.lab:
        case Undo.COMMAND, _:
            return HostCommand.from_json(step.what).by_hand
        case Undo.FREE, _:
            return f"rm {Path(step.what)}"
        case Undo.UPGRADE, Path(name=name):
            return f"loadstone lab up {name}, then {UNDO} --lab {name}"
        case Undo.CORES, _:
            bound = BoundProcesses.from_json(step.what)
            cores = ",".join(map(str, bound.cores))
            return "; ".join(f"taskset -acp {cores} {one.pid}" for one in bound.processes)
        case _, Path(name=name):
            return f"loadstone lab down {name}"
        case _:
            return f"end the processes with LOADSTONE_FAULT={step.what} in their environment"
