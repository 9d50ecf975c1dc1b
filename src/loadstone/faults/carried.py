"""Faults in a run: what is checked before, and who undoes them whatever happens."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from loadstone.errors import InvalidInput
from loadstone.faults.inject import Injector
from loadstone.faults.observer import Faults, Planned
from loadstone.faults.sentence import Fault, read
from loadstone.faults.undo import undo_all
from loadstone.faults.watcher import watched
from loadstone.keystone.target import Target
from loadstone.plan.hooks import FaultInjection, Hook

Say = Callable[[str], None]


def require_possible(target: Target, planned: Sequence[Planned], hooks: Sequence[Hook]) -> None:
    """Raise InvalidInput for a fault that the target cannot have, before any load."""
    faults = [one.fault for one in planned]
    faults += [read(one.action.sentence) for one in hooks if isinstance(one.action, FaultInjection)]
    for fault in faults:
        Injector(_folder(target, fault)).check(fault)


@contextmanager
def under_faults(target: Target, say: Say) -> Iterator[Target]:
    """Return the target as it is while its parts may die, and undo all faults at the end."""
    if target.lab is None:
        raise AssertionError("faults were found to be possible")
    for words in undo_all(target.lab):
        say(f"  undone what an earlier run has left: {words}")
    with watched(target.lab):
        yield replace(target, failure=lambda: None)


def begun_faults(target: Target, planned: Sequence[Planned], say: Say) -> Faults:
    """Return the observer that carries out the faults of one trial."""
    if target.lab is None:
        raise AssertionError("faults were found to be possible")
    return Faults(Injector(target.lab), planned, say)


def _folder(target: Target, fault: Fault) -> Path:
    if target.lab is None:
        raise InvalidInput(
            f"fault {fault.sentence!r}: is carried out on a lab only; choose one with --lab NAME"
        )
    return target.lab
