"""Workers of two services on the same cores."""

import os
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from dead_owner import dead_owner

from loadstone.compare.cores import shared_cores
from loadstone.faults.cores import BoundProcesses
from loadstone.faults.journal import FaultTarget, Undo, UndoJournal
from loadstone.faults.undo import undo_pending
from loadstone.lab import processes
from loadstone.monitor.service import Members, ServiceProcess

pytestmark = pytest.mark.processes
needs_cores = pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="one core")


@pytest.fixture
def sides() -> Iterator[tuple[Members, Members]]:
    """Two services of two workers each."""
    started = [subprocess.Popen(["sleep", "60"]) for _ in range(4)]
    found = [ServiceProcess(one.pid, "uwsgi") for one in started]
    yield lambda: found[:2], lambda: found[2:]
    for one in started:
        one.kill()
        one.wait()


@pytest.fixture
def journals(tmp_path: Path) -> tuple[UndoJournal, ...]:
    """Journals of two labs."""
    return tuple(UndoJournal(tmp_path / name, FaultTarget(tmp_path / name)) for name in "ab")


@needs_cores
def test_workers_share_their_cores_and_get_all_of_them_back(
    sides: tuple[Members, Members], journals: tuple[UndoJournal, ...]
) -> None:
    pids = [[one.pid for one in side() or ()] for side in sides]
    before = {pid: os.sched_getaffinity(pid) for side in pids for pid in side}
    with shared_cores(sides, journals, 1) as shared:
        assert shared is not None
        assert [step.description for one in journals for step in one.steps()] == [
            "give the service's processes all their cores"
        ] * 2
        for seed in range(4):
            shared.deal(Random(seed))
            cores = [[os.sched_getaffinity(pid) for pid in side] for side in pids]
            assert cores[0] == cores[1]
            assert all(len(one) == 1 for one in cores[0])
            assert cores[0][0] != cores[0][1]
    assert not any(one.steps() for one in journals)
    assert {pid: os.sched_getaffinity(pid) for pid in before} == before


@needs_cores
@pytest.mark.parametrize("threads", [2, 1000, None])
def test_a_worker_has_as_many_cores_as_threads(
    sides: tuple[Members, Members], journals: tuple[UndoJournal, ...], threads: int | None
) -> None:
    [first, *_] = sides[0]() or ()
    allowed = os.sched_getaffinity(first.pid)
    with shared_cores(sides, journals, threads) as shared:
        assert shared is not None
        shared.deal(Random(1))
        wanted = len(allowed) if threads is None else min(threads, len(allowed))
        assert len(os.sched_getaffinity(first.pid)) == wanted


@needs_cores
def test_the_caches_of_both_sides_share_a_core_which_changes(
    sides: tuple[Members, Members], journals: tuple[UndoJournal, ...]
) -> None:
    [[worker, one], [_, other]] = [side() or () for side in sides]
    before = {pid: os.sched_getaffinity(pid) for pid in (one.pid, other.pid)}
    both = [[worker, replace(one, part="memcached")], [worker, replace(other, part="memcached-2")]]
    with shared_cores((lambda: both[0], lambda: both[1]), journals, 1) as shared:
        assert shared is not None
        assert str(one.pid) in journals[0].steps()[0].what
        seen = set()
        for seed in range(8):
            shared.deal(Random(seed))
            cores = [os.sched_getaffinity(pid) for pid in before]
            assert cores[0] == cores[1] != before[one.pid]
            seen.add(frozenset(cores[0]))
        assert len(seen) > 1
    assert {pid: os.sched_getaffinity(pid) for pid in before} == before


@needs_cores
def test_workers_of_a_later_start_share_their_cores_too(
    sides: tuple[Members, Members], journals: tuple[UndoJournal, ...]
) -> None:
    [first, second] = sides[0]() or ()
    now = [first]
    before = os.sched_getaffinity(second.pid)
    with shared_cores((lambda: now, sides[1]), journals, 1) as shared:
        assert shared is not None
        now[:] = [second]
        shared.find_workers()
        assert [len(one.steps()) for one in journals] == [1, 1]
        assert str(second.pid) in journals[0].steps()[0].what
        shared.deal(Random(1))
        assert len(os.sched_getaffinity(second.pid)) == 1
    assert os.sched_getaffinity(second.pid) == before
    assert not any(one.steps() for one in journals)


@needs_cores
def test_workers_get_their_cores_back_if_the_comparison_was_killed(
    sides: tuple[Members, Members], journals: tuple[UndoJournal, ...]
) -> None:
    worker = processes.identify(next(one.pid for one in sides[0]() or ()))
    before = os.sched_getaffinity(worker.pid)
    bound = BoundProcesses(tuple(before), (worker,))
    journals[0].note(Undo.CORES, bound.to_json(), dead_owner())
    processes.bind(worker, (min(before),))
    assert undo_pending(journals[0]).failed == ()
    assert os.sched_getaffinity(worker.pid) == before
    assert journals[0].steps() == ()


@needs_cores
def test_workers_that_may_not_use_the_same_cores_are_left_alone(
    sides: tuple[Members, Members], journals: tuple[UndoJournal, ...]
) -> None:
    [first, *_] = sides[0]() or ()
    [core, *_] = os.sched_getaffinity(0)
    os.sched_setaffinity(first.pid, {core})
    with shared_cores(sides, journals, 1) as shared:
        assert shared is None
    assert os.sched_getaffinity(first.pid) == {core}


def test_a_service_elsewhere_has_no_workers_to_place(
    sides: tuple[Members, Members], journals: tuple[UndoJournal, ...]
) -> None:
    with shared_cores((sides[0], lambda: None), journals, 1) as shared:
        assert shared is None
