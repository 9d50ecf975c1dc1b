"""Undoes faults from their journal, in this process or after the injecting process died."""

import signal
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from loadstone.errors import EnvironmentUnusable
from loadstone.faults import balancer, database, filling, keys, parts, rolling
from loadstone.faults.cores import BoundProcesses
from loadstone.faults.host import PATIENCE_S, HostCommand
from loadstone.faults.journal import Undo, UndoJournal, UndoStep
from loadstone.faults.parts import FAULT
from loadstone.lab import processes, state

GRACE_S = 5.0  # for a fault's process to end after SIGTERM
MOST_GENERATIONS = 10  # of processes that a command starts while it is ended
POLL_S = 0.2  # between two looks whether a command has ended
# Between the attempts to undo what has failed: a host that restarts a service needs seconds.
PAUSES_S = (0.5, 1.0, 2.0)


@dataclass(frozen=True, slots=True)
class UndoOutcome:
    """The steps that were undone, and those that could not be, with their failure."""

    undone: tuple[UndoStep, ...] = ()
    failed: tuple[UndoStep, ...] = ()


def undo_steps(
    journal: UndoJournal,
    steps: Sequence[UndoStep],
    on_undone: Callable[[UndoStep], None] = lambda _: None,
) -> UndoOutcome:
    """Undo steps, the last one first; repeat those that fail, whatever the others do.

    An undone step leaves the journal, a failed one stays there with its failure.
    """
    undone: list[UndoStep] = []
    left = tuple(reversed(steps))
    for pause_s in (0.0, *PAUSES_S):
        time.sleep(pause_s)
        attempted = [_attempt(journal, step) for step in left]
        for step in attempted:
            if not step.failure:
                undone.append(step)
                on_undone(step)
        left = tuple(step for step in attempted if step.failure)
        if not left:
            break
    for step in left:
        journal.set_failure(step, step.failure)
    return UndoOutcome(tuple(undone), left)


def undo_all(journal: UndoJournal, is_wanted: Callable[[UndoStep], bool]) -> UndoOutcome:
    """Undo the wanted steps of a journal, once no other process undoes steps of it."""
    with journal.undoing():
        return undo_steps(journal, [step for step in journal.steps() if is_wanted(step)])


def undo_pending(journal: UndoJournal) -> UndoOutcome:
    """Undo the steps of a journal that no living process will undo."""
    return undo_all(journal, lambda step: step.is_pending)


def undo(step: UndoStep, lab: Path | None) -> None:
    """Undo one step; a step that is undone already has no effect."""
    if step.undo is Undo.COMMAND:
        HostCommand.from_json(step.what).run()
    elif step.undo in _OF_PROCESSES:
        if step.owner.boot == processes.boot_id():  # else they ended with the machine
            _OF_PROCESSES[step.undo](step.what)
    elif step.undo is Undo.FREE:
        filling.free(Path(step.what))
    elif lab is not None and lab.exists():  # else it was removed with all that was broken in it
        _undo_in_lab(step, lab)


def end_marked(mark: str) -> None:
    """End the processes of a command that were started with this mark in their environment."""
    # One that ends may just have started another.
    for _ in range(MOST_GENERATIONS):
        found = processes.with_variable(FAULT, mark)
        if not found:
            return
        processes.end(found, grace_s=GRACE_S)


def await_marked(mark: str) -> None:
    """Wait until the ssh that was started with this mark has ended; end it if it goes on too long.

    Ending it at once would leave its command running on the other machine.
    """
    deadline = time.monotonic() + PATIENCE_S
    while running := [one for one in processes.with_variable(FAULT, mark) if not _is_shared(one)]:
        if time.monotonic() > deadline:
            processes.end(running, grace_s=GRACE_S)
            return
        time.sleep(POLL_S)


def _is_shared(process: processes.Process) -> bool:
    """Return whether it is the connection that ssh keeps for later ones (ControlPersist)."""
    with suppress(OSError):
        return b"[mux]" in Path(f"/proc/{process.pid}/cmdline").read_bytes()
    return True  # it has ended


def continue_(folder: Path, name: str) -> None:
    """Resume the processes of a part (SIGCONT)."""
    own = [record for record in parts.read_state(folder).records if record.part == name]
    processes.send(signal.SIGCONT, parts.members(own))


def _attempt(journal: UndoJournal, step: UndoStep) -> UndoStep:
    """Return the step with its failure, which is empty once it is undone."""
    try:
        undo(step, journal.target.lab)
        journal.remove(step)
    except Exception as problem:  # whatever it is, the other steps must still be undone
        return replace(step, failure=str(problem) or type(problem).__name__)
    return replace(step, failure="")


def _undo_in_lab(step: UndoStep, lab: Path) -> None:
    last = state.read(lab)
    is_running = last is not None and last.was_started
    is_of_last_start = last is not None and step.start in ("", last.run)
    if is_running and (is_of_last_start or step.undo not in _OF_A_START):
        _WAYS[step.undo](lab, step.what)
    elif step.undo is Undo.KEYS:
        keys.put_back(Path(step.what))
    elif step.undo is Undo.WRITABLE and not is_running:
        database.set_writable_at_rest(lab)
    elif step.undo is Undo.CONF:
        rolling.put_back_conf_at_rest(lab, is_of_last_start=is_of_last_start)
    elif step.undo is Undo.UPGRADE:
        raise EnvironmentUnusable(
            f"lab {lab.name} does not run, and its upgrade to {step.what} can only be finished "
            f"while it does; start it as it was: loadstone lab up {lab.name}"
        )
    # Of the others, nothing outlives the processes of one start, or the next start removes it.


def _start_again(folder: Path, what: str) -> None:
    name, _, pid = what.partition(" ")
    if pid:  # asked to end, it may not have ended yet
        parts.end_process(folder, name, int(pid))
    parts.start_again(folder, name)


def _send_again(folder: Path, what: str) -> None:
    server, port = what.split()
    balancer.set_port(folder, server, int(port))


_OF_PROCESSES: dict[Undo, Callable[[str], None]] = {
    Undo.END: end_marked,
    Undo.WAIT: await_marked,
    Undo.CORES: lambda what: BoundProcesses.from_json(what).unbind(),
}
# Each with the deployment's folder, and what is undone.
_WAYS: dict[Undo, Callable[[Path, str], None]] = {
    Undo.CONTINUE: continue_,
    Undo.START: _start_again,
    Undo.READY: lambda folder, server: balancer.set_state(folder, server, "ready"),
    Undo.ADDRESS: _send_again,
    Undo.KEYS: lambda _, repository: keys.put_back(Path(repository)),
    Undo.WRITABLE: lambda folder, _: database.set_read_only(folder, is_read_only=False),
    Undo.STATEMENTS: lambda folder, _: database.count_no_statements(folder),
    Undo.CERTIFICATE: lambda folder, _: balancer.set_certificate(folder, is_valid=True),
    Undo.CONF: lambda folder, _: rolling.put_back_conf(folder),
    Undo.UPGRADE: rolling.finish_upgrade,
}
# What a later start of the lab does not have any more: it has written its keystone.conf itself.
_OF_A_START = (
    Undo.CONTINUE,
    Undo.START,
    Undo.READY,
    Undo.ADDRESS,
    Undo.CERTIFICATE,
    Undo.CONF,
)
