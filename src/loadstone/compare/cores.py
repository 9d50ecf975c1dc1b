"""Gives the workers of two services the same cores while they take turns.

Other work of the machine keeps one core busier than another, for seconds or minutes. A worker of A
on that core and one of B beside it would differ by it. Only one of the two has work at a time, so
they can share their cores.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from random import Random

from loadstone.faults.cores import BoundProcesses
from loadstone.faults.journal import Owner, Undo, UndoJournal, UndoStep
from loadstone.faults.watcher import watched
from loadstone.lab.processes import Process, bind, identify
from loadstone.monitor.service import Members
from loadstone.observers.profile import workers


@dataclass(slots=True)
class SharedCores:
    """The workers of both services, and the cores that they may use."""

    members: Sequence[Members]
    journals: Sequence[UndoJournal]
    owner: Owner
    cores: tuple[int, ...]
    _sides: list[tuple[Process, ...]] = field(default_factory=list, init=False)
    _steps: list[UndoStep] = field(default_factory=list, init=False)

    def deal(self, random: Random) -> None:
        """Bind worker i of both sides to the same core, another one each time."""
        cores = list(self.cores)
        random.shuffle(cores)
        for side in self._sides:
            for number, worker in enumerate(side):
                bind(worker, (cores[number % len(cores)],))

    def find_workers(self) -> None:
        """Find the workers, again after a restart, and note that they get their cores back."""
        before = self._steps
        self._sides = [tuple(map(identify, workers(one))) for one in self.members]
        self._steps = [
            journal.note(Undo.CORES, BoundProcesses(self.cores, side).to_json(), self.owner)
            for journal, side in zip(self.journals, self._sides, strict=True)
        ]
        for journal, step in zip(self.journals, before, strict=False):  # of ended workers
            journal.remove(step)

    def give_back(self) -> None:
        """Let the workers use all their cores."""
        for side, journal, step in zip(self._sides, self.journals, self._steps, strict=False):
            BoundProcesses(self.cores, side).unbind()
            journal.remove(step)


@contextmanager
def shared_cores(
    members: Sequence[Members], journals: Sequence[UndoJournal]
) -> Iterator[SharedCores | None]:
    """Yield the workers of both services; at the end they may use all their cores again.

    The journal of each side names what is to be undone, so that they get their cores back even if
    this process is killed. None if the workers are on another machine, or if they may not use the
    same cores.
    """
    sides = [tuple(workers(one)) for one in members]
    allowed = {frozenset(_cores(pid)) for side in sides for pid in side}
    if not all(sides) or len(allowed) != 1 or len(next(iter(allowed))) < 2:
        yield None
        return
    owner = Owner.this()
    with ExitStack() as stack:
        for journal in journals:
            stack.enter_context(watched(journal, owner))
        shared = SharedCores(members, journals, owner, tuple(sorted(next(iter(allowed)))))
        stack.callback(shared.give_back)
        shared.find_workers()
        yield shared


def _cores(pid: int) -> set[int]:
    with suppress(OSError):
        return os.sched_getaffinity(pid)
    return set()
