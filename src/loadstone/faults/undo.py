"""Undoes faults from their journal, in this process or after the injecting process died."""

import json
from collections.abc import Callable
from pathlib import Path

from loadstone.faults import balancer, database, filling, keys, parts, rolling
from loadstone.faults.host import carry_out
from loadstone.faults.journal import Undo, UndoJournal, UndoStep
from loadstone.lab import processes

GRACE_S = 5.0  # for a fault's process to end after SIGTERM
FAULT = "LOADSTONE_FAULT"  # environment variable of the processes that a fault starts


def undo(step: UndoStep, folder: Path) -> None:
    """Undo one step; a step that is undone already has no effect."""
    if step.boot != processes.boot_id() and step.undo not in _OUTLIVE_A_BOOT:
        return  # its processes ended with the machine
    _WAYS[step.undo](folder, step.what)


def undo_all(folder: Path) -> tuple[str, ...]:
    """Undo all steps of a journal, the last one first; return their descriptions."""
    journal = UndoJournal.read(folder)
    undone = []
    for step in reversed(journal.steps.copy()):
        undo(step, folder)
        journal.remove(step)
        undone.append(step.description)
    return tuple(undone)


def continue_(folder: Path, name: str) -> None:
    """Resume the processes of a part (SIGCONT)."""
    deployment = parts.read_state(folder)
    for record in deployment.records:
        if record.part == name and record.process is not None:
            processes.continue_(processes.family(record.process))


def _start_again(folder: Path, what: str) -> None:
    name, _, pid = what.partition(" ")
    if pid:  # asked to end, it may not have ended yet
        parts.end_process(folder, name, int(pid))
    parts.start_again(folder, name)


def _send_again(folder: Path, what: str) -> None:
    server, port = what.split()
    balancer.set_port(folder, server, int(port))


def _carry_out(_: Path, what: str) -> None:
    command = json.loads(what)
    carry_out(command["host"], command["command"])


# Each with the deployment's folder, and what is undone.
_WAYS: dict[Undo, Callable[[Path, str], None]] = {
    Undo.CONTINUE: continue_,
    Undo.START: _start_again,
    Undo.READY: lambda folder, server: balancer.set_state(folder, server, "ready"),
    Undo.ADDRESS: _send_again,
    Undo.KEYS: lambda _, repository: keys.put_back(Path(repository)),
    Undo.WRITABLE: lambda folder, _: database.set_read_only(folder, is_read_only=False),
    Undo.CERTIFICATE: lambda folder, _: balancer.set_certificate(folder, is_valid=True),
    Undo.FREE: lambda _, file: filling.free(Path(file)),
    Undo.CONF: lambda folder, _: rolling.put_back_conf(folder),
    Undo.UPGRADE: rolling.finish_upgrade,
    Undo.END: lambda _, mark: processes.end(processes.with_variable(FAULT, mark), grace_s=GRACE_S),
    Undo.COMMAND: _carry_out,
}
_OUTLIVE_A_BOOT = (Undo.COMMAND, Undo.FREE)
