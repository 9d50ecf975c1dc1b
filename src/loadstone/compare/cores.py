"""Gives the workers of two services the same cores while they take turns.

Other work of the machine keeps one core busier than another, for seconds or minutes. A worker of A
on that core and one of B beside it would differ by it. Only one of the two has work at a time, so
they can share their cores.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from random import Random

from loadstone.monitor.service import Members
from loadstone.observers.profile import workers


@dataclass(frozen=True, slots=True)
class SharedCores:
    """The workers of both services, and the cores that they may use."""

    sides: tuple[tuple[int, ...], ...]  # pids
    cores: tuple[int, ...]

    def deal(self, random: Random) -> None:
        """Bind worker i of both sides to the same core, another one each time."""
        cores = list(self.cores)
        random.shuffle(cores)
        for pids in self.sides:
            for number, pid in enumerate(pids):
                _bind(pid, {cores[number % len(cores)]})


@contextmanager
def shared_cores(members: Sequence[Members]) -> Iterator[SharedCores | None]:
    """Yield the workers of both services; at the end they may use all their cores again.

    None if they are on another machine, or if they may not use the same cores.
    """
    sides = tuple(tuple(workers(one)) for one in members)
    before = {pid: _cores(pid) for pids in sides for pid in pids}
    allowed = set(map(frozenset, before.values()))
    if not all(sides) or len(allowed) != 1 or len(next(iter(allowed))) < 2:
        yield None
        return
    try:
        yield SharedCores(sides, tuple(sorted(next(iter(allowed)))))
    finally:
        for pid, cores in before.items():
            _bind(pid, cores)


def _cores(pid: int) -> set[int]:
    with suppress(OSError):
        return os.sched_getaffinity(pid)
    return set()


def _bind(pid: int, cores: set[int]) -> None:
    """Bind all threads of a process; a process that has ended is none."""
    with suppress(OSError):
        for thread in Path(f"/proc/{pid}/task").iterdir():
            with suppress(OSError):
                os.sched_setaffinity(int(thread.name), cores)
