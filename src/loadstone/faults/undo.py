"""Undoes faults from their journal, whoever carried them out and however that process ended."""

import json
from pathlib import Path
from typing import assert_never

from loadstone.faults import balancer, database, filling, keys, parts, rolling
from loadstone.faults.host import carry_out
from loadstone.faults.journal import Undo, UndoJournal, UndoStep
from loadstone.lab import processes

GRACE_S = 5.0  # for a process of a fault that is told to end
FAULT = "LOADSTONE_FAULT"  # environment variable of the processes that a fault starts


def undo(step: UndoStep, folder: Path) -> None:
    """Undo one step; what is undone already is left alone."""
    if step.boot != processes.boot_id() and step.undo not in (Undo.COMMAND, Undo.FREE):
        return  # its processes ended with the machine
    match step.undo:
        case Undo.CONTINUE:
            continue_(folder, step.what)
        case Undo.START:
            parts.start_again(folder, step.what)
        case Undo.READY:
            balancer.set_state(folder, step.what, "ready")
        case Undo.ADDRESS:
            server, port = step.what.split()
            balancer.set_port(folder, server, int(port))
        case Undo.KEYS:
            keys.put_back(Path(step.what))
        case Undo.WRITABLE:
            database.set_read_only(folder, is_read_only=False)
        case Undo.FREE:
            filling.free(Path(step.what))
        case Undo.CONF:
            rolling.put_back_conf(folder)
        case Undo.UPGRADE:
            rolling.finish_upgrade(folder, step.what)
        case Undo.END:
            processes.end(processes.with_variable(FAULT, step.what), grace_s=GRACE_S)
        case Undo.COMMAND:
            what = json.loads(step.what)
            carry_out(what["host"], what["command"])
        case _:
            assert_never(step.undo)


def undo_all(folder: Path) -> tuple[str, ...]:
    """Undo what the journal of a deployment still has, the last step first; say what it was."""
    journal = UndoJournal.read(folder)
    undone = []
    for step in reversed(journal.steps.copy()):
        undo(step, folder)
        journal.remove(step)
        undone.append(f"{step.undo} {step.what}")
    return tuple(undone)


def continue_(folder: Path, name: str) -> None:
    """Let the processes of a part go on."""
    found = parts.known(folder)
    for record in found.records:
        if record.part == name and record.process is not None:
            processes.continue_(processes.family(record.process))
