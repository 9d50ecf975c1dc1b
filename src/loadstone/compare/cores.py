"""Gives the workers of two services the same cores while they take turns.

Other work of the machine keeps one core busier than another, for seconds or minutes. A worker of A
on that core and one of B beside it would differ by it. Only one of the two has work at a time, so
they can share their cores.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from random import Random

from loadstone.faults.cores import BoundProcesses
from loadstone.faults.journal import Owner, Undo, UndoJournal
from loadstone.faults.watcher import watched
from loadstone.lab.processes import Process, bind, identify
from loadstone.monitor.service import Members
from loadstone.observers.profile import workers


@dataclass(frozen=True, slots=True)
class SharedCores:
    """The workers of both services, and the cores that they may use."""

    sides: tuple[tuple[Process, ...], ...]
    cores: tuple[int, ...]

    def deal(self, random: Random) -> None:
        """Bind worker i of both sides to the same core, another one each time."""
        cores = list(self.cores)
        random.shuffle(cores)
        for side in self.sides:
            for number, worker in enumerate(side):
                bind(worker, (cores[number % len(cores)],))


@contextmanager
def shared_cores(
    members: Sequence[Members], journals: Sequence[UndoJournal]
) -> Iterator[SharedCores | None]:
    """Yield the workers of both services; at the end they may use all their cores again.

    The journal of each side names what is to be undone, so that they get their cores back even if
    this process is killed. None if the workers are on another machine, or if they may not use the
    same cores.
    """
    sides = tuple(tuple(map(identify, workers(one))) for one in members)
    allowed = {frozenset(_cores(one.pid)) for side in sides for one in side}
    if not all(sides) or len(allowed) != 1 or len(next(iter(allowed))) < 2:
        yield None
        return
    cores = tuple(sorted(next(iter(allowed))))
    with ExitStack() as stack:
        for side, journal in zip(sides, journals, strict=True):
            stack.enter_context(_unbound_at_the_end(BoundProcesses(cores, side), journal))
        yield SharedCores(sides, cores)


@contextmanager
def _unbound_at_the_end(bound: BoundProcesses, journal: UndoJournal) -> Iterator[None]:
    owner = Owner.this()
    with watched(journal, owner):
        step = journal.note(Undo.CORES, bound.to_json(), owner)
        try:
            yield
        finally:
            bound.unbind()
            journal.remove(step)


def _cores(pid: int) -> set[int]:
    with suppress(OSError):
        return os.sched_getaffinity(pid)
    return set()
