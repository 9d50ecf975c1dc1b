import os
from dataclasses import replace
from pathlib import Path

from loopback import OK, Serve, answering

from loadstone.engine.local import run
from loadstone.engine.progress import Progress
from loadstone.monitor.usage import Meter
from loadstone.plan.load import OpenLoad
from loadstone.plan.model import Placement


def test_a_thread_runs_on_each_core_that_was_named(serve: Serve) -> None:
    cores = tuple(sorted(os.sched_getaffinity(0))[:2])
    seen: set[frozenset[int]] = set()

    def watch(_: Progress) -> bool:
        threads = [int(task.name) for task in Path("/proc/self/task").iterdir()]
        seen.update(frozenset(os.sched_getaffinity(thread)) for thread in threads)
        return not {frozenset({core}) for core in cores} <= seen

    before = os.sched_getaffinity(0)
    plan = replace(serve(answering(OK)).plan(OpenLoad(100, 60)), placement=Placement.on(cores))
    measured = run(plan, watch)
    assert {frozenset({core}) for core in cores} <= seen
    assert measured.health.threads == len(cores)
    assert os.sched_getaffinity(0) == before


def test_without_cores_there_is_one_thread() -> None:
    assert Placement.on(()) == Placement()
    assert Placement.on((3,)) == Placement(1, (3,))


def test_what_the_generator_took_is_measured(serve: Serve) -> None:
    meter = Meter(lambda: None)
    measured = run(serve(answering(OK)).plan(OpenLoad(500, 0.5)))
    spent = meter.usage()
    assert spent.generator_cpu_s >= measured.health.cpu_s > 0
    assert 0 < spent.generator_busy <= 1
