"""Gives the processes of two services the same cores while they take turns.

Other work of the machine keeps one core busier than another, for seconds or minutes. A worker of A
on that core and one of B beside it would differ by it. Only one of the two has work at a time, so
they can share their cores.

A cache spreads the connections of a worker over its threads. The kernel keeps such a thread where
it once ran, for as long as Keystone runs: on the core of the worker that asks, or on that of
another worker, which it interrupts for each answer. On two cores, one of two equal Keystones with
memcached completed up to 1.3 times as many requests as the other. So the caches of both sides share
their cores, too.
"""

import os
from collections.abc import Iterator, Sequence, Set
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from itertools import chain
from random import Random

from loadstone.faults.cores import BoundProcesses
from loadstone.faults.journal import Owner, Undo, UndoJournal, UndoStep
from loadstone.faults.watcher import watched
from loadstone.lab.processes import Process, bind, identify
from loadstone.monitor.roles import Role, role_of
from loadstone.monitor.service import Members
from loadstone.observers.profile import workers

CACHE_SHARE = 4  # one core in so many is for a cache, which takes little beside the workers


@dataclass(slots=True)
class SharedCores:
    """The workers and caches of both services, and the cores that they may use."""

    members: Sequence[Members]
    caches: Sequence[tuple[Process, ...]]  # of each side
    journals: Sequence[UndoJournal]
    owner: Owner
    cores: tuple[int, ...]
    width: int = 1  # cores of a worker: as many as it has threads, on the side where it has more
    _sides: list[tuple[Process, ...]] = field(default_factory=list, init=False)  # workers
    _steps: list[UndoStep] = field(default_factory=list, init=False)

    def deal(self, random: Random) -> None:
        """Bind worker i of both sides to the same cores, and their caches; others each time."""
        count = len(self.cores)
        cores = random.sample(self.cores, count)
        for side in self._sides:
            for number, worker in enumerate(side):
                first = number * self.width
                bind(worker, {cores[(first + one) % count] for one in range(self.width)})
        of_caches = random.sample(self.cores, max(1, len(self.cores) // CACHE_SHARE))
        for cache in chain(*self.caches):
            bind(cache, of_caches)

    def find_workers(self) -> None:
        """Find the workers, again after a restart, and note which processes get cores back."""
        before = self._steps
        self._sides = [tuple(map(identify, workers(one))) for one in self.members]
        self._steps = [
            journal.note(Undo.CORES, BoundProcesses(self.cores, bound).to_json(), self.owner)
            for journal, bound in zip(self.journals, self._bound, strict=True)
        ]
        for journal, step in zip(self.journals, before, strict=False):  # of ended workers
            journal.remove(step)

    def give_back(self) -> None:
        """Let workers and caches use all their cores."""
        for bound, journal, step in zip(self._bound, self.journals, self._steps, strict=False):
            BoundProcesses(self.cores, bound).unbind()
            journal.remove(step)

    @property
    def _bound(self) -> list[tuple[Process, ...]]:
        """The processes of each side that are bound."""
        return [(*side, *caches) for side, caches in zip(self._sides, self.caches, strict=True)]


@contextmanager
def shared_cores(
    members: Sequence[Members], journals: Sequence[UndoJournal], threads: int | None
) -> Iterator[SharedCores | None]:
    """Yield the processes of both services; at the end they may use all their cores again.

    `threads` is how many cores a worker can use at most; None: as many as there are.

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
        cores = next(iter(allowed))
        caches = [tuple(map(identify, _caches(one, cores))) for one in members]
        width = min(threads or len(cores), len(cores))
        shared = SharedCores(members, caches, journals, owner, tuple(sorted(cores)), width)
        stack.callback(shared.give_back)
        shared.find_workers()
        yield shared


def _caches(members: Members, cores: Set[int]) -> Iterator[int]:
    """Yield the caches that may use these cores, all of them and no others."""
    of_service = [one for one in members() or () if role_of(one.part) is Role.CACHE]
    yield from (one.pid for one in of_service if _cores(one.pid) == cores)


def _cores(pid: int) -> set[int]:
    with suppress(OSError):
        return os.sched_getaffinity(pid)
    return set()
