"""Workers of two services on the same cores."""

import os
import subprocess
from collections.abc import Iterator
from random import Random

import pytest

from loadstone.compare.cores import shared_cores
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


@needs_cores
def test_workers_share_their_cores_and_get_all_of_them_back(
    sides: tuple[Members, Members],
) -> None:
    pids = [[one.pid for one in side() or ()] for side in sides]
    before = {pid: os.sched_getaffinity(pid) for side in pids for pid in side}
    with shared_cores(sides) as shared:
        assert shared is not None
        for seed in range(4):
            shared.deal(Random(seed))
            cores = [[os.sched_getaffinity(pid) for pid in side] for side in pids]
            assert cores[0] == cores[1]
            assert all(len(one) == 1 for one in cores[0])
            assert cores[0][0] != cores[0][1]
    assert {pid: os.sched_getaffinity(pid) for pid in before} == before


@needs_cores
def test_workers_that_may_not_use_the_same_cores_are_left_alone(
    sides: tuple[Members, Members],
) -> None:
    [first, *_] = sides[0]() or ()
    [core, *_] = os.sched_getaffinity(0)
    os.sched_setaffinity(first.pid, {core})
    with shared_cores(sides) as shared:
        assert shared is None
    assert os.sched_getaffinity(first.pid) == {core}


def test_a_service_elsewhere_has_no_workers_to_place(sides: tuple[Members, Members]) -> None:
    with shared_cores((sides[0], lambda: None)) as shared:
        assert shared is None
