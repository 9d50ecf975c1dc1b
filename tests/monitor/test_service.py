"""CPU of a tree of processes, beside what each counted of itself with getrusage."""

import multiprocessing
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from loadstone.monitor import generator
from loadstone.monitor.service import ServiceCpu, ServiceProcess
from loadstone.monitor.usage import Meter

PROGRAM = Path(__file__).parent.parent / "support" / "burning_tree.py"
TICK_S = 0.01  # the kernel counts in /proc in hundredths
SPENT_S = 0.25


class Tree:
    """A parent whose children use CPU when told to."""

    def __init__(self, *words: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, str(PROGRAM), *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def do(self, word: str, given: float | int) -> tuple[float, int]:
        """Carry out one command; returns CPU seconds and the pid of the child that used them."""
        assert self.process.stdin
        assert self.process.stdout
        self.process.stdin.write(f"{word} {given}\n")
        self.process.stdin.flush()
        used = ("0", "0")
        if word in ("spend", "nest", "hold"):
            used = tuple(self.process.stdout.readline().split())
        if word != "hold":
            assert self.process.stdout.readline() == "done\n"
        return float(used[0]), int(used[1])

    def members(self) -> Iterator[ServiceProcess]:
        """The parent and all that descends from it and lives."""
        root = psutil.Process(self.process.pid)
        for one in (root, *root.children(recursive=True)):
            if one.status() != psutil.STATUS_ZOMBIE:
                yield ServiceProcess(one.pid, "tree")

    def end(self) -> None:
        """End the parent and what is left of its children."""
        left = psutil.Process(self.process.pid).children() if self.process.poll() is None else []
        for one in left:
            one.kill()
        self.process.communicate()


@pytest.fixture
def tree() -> Iterator[Callable[..., Tree]]:
    """Start trees that end with the test."""
    made: list[Tree] = []

    def start(*words: str) -> Tree:
        made.append(Tree(*words))
        made[-1].do("spend", 0)  # it has started
        return made[-1]

    yield start
    for one in made:
        one.end()


def about(seconds: float, processes: int) -> object:
    """What was counted: two ticks for each process, and what its start and end take."""
    return pytest.approx(seconds, rel=0.05, abs=(2 * TICK_S + 0.02) * processes)


def test_processes_that_live_and_die_between_two_looks_are_counted_once(
    tree: Callable[..., Tree],
) -> None:
    one = tree()
    cpu = ServiceCpu(one.members)
    spent_s = sum(one.do("spend", SPENT_S)[0] for _ in range(4))
    cpu.sample(1.0)
    assert cpu.cpu_s == about(spent_s, 4)
    spent_s += one.do("nest", SPENT_S)[0]
    cpu.sample(2.0)
    cpu.sample(3.0)
    assert cpu.cpu_s == about(spent_s, 6)
    assert cpu.ended == ()


def test_the_other_side_of_a_comparison_is_counted_apart(tree: Callable[..., Tree]) -> None:
    one, other = tree(), tree()
    meter = Meter(one.members, other.members)
    spent_s = one.do("spend", SPENT_S)[0]
    other_s = other.do("spend", 2 * SPENT_S)[0]
    usage = meter.usage()
    assert usage.service_cpu_s == about(spent_s, 1)
    assert usage.other_side_cpu_s == about(other_s, 1)


def test_workers_of_a_fleet_on_this_machine_are_the_load_generator_of_its_client(
    tree: Callable[..., Tree], monkeypatch: pytest.MonkeyPatch
) -> None:
    worker, other = tree("distributed.cli.dask_worker", "load=1"), tree()
    monkeypatch.delitem(sys.modules, generator.FLEET_CLIENT, raising=False)
    assert worker.process.pid not in set(generator.workers())
    monkeypatch.setitem(sys.modules, generator.FLEET_CLIENT, sys)
    found = set(generator.workers())
    assert worker.process.pid in found
    assert other.process.pid not in found
    meter = Meter(lambda: None)
    spent_s = worker.do("spend", SPENT_S)[0]
    assert meter.usage().generator_cpu_s >= spent_s - 2 * TICK_S


def test_processes_of_multiprocessing_are_the_load_generator() -> None:
    context = multiprocessing.get_context("forkserver")
    worker = context.Process(target=time.sleep, args=(60,), daemon=True)
    worker.start()
    try:
        assert worker.pid in set(generator.workers())
    finally:
        worker.kill()
        worker.join()


def test_many_short_processes_lose_nothing_to_the_clock_of_proc(tree: Callable[..., Tree]) -> None:
    one = tree()
    cpu = ServiceCpu(one.members)
    spent_s = sum(one.do("spend", 0.004)[0] for _ in range(100))
    cpu.sample(1.0)
    assert cpu.cpu_s >= spent_s - 4 * TICK_S


def test_a_process_that_was_seen_and_is_waited_for_is_counted_once(
    tree: Callable[..., Tree],
) -> None:
    one = tree()
    cpu = ServiceCpu(one.members)
    spent_s, pid = one.do("hold", SPENT_S)
    cpu.sample(1.0)
    assert cpu.cpu_s == about(spent_s, 1)
    one.do("kill", pid)
    cpu.sample(2.0)
    assert cpu.cpu_s == about(spent_s, 1)
    assert [(ended.pid, ended.at_s) for ended in cpu.ended] == [(pid, 2.0)]
    spent_s += one.do("spend", SPENT_S)[0]
    cpu.sample(3.0)
    assert cpu.cpu_s == about(spent_s, 2)


def test_what_nobody_waits_for_is_counted_as_last_seen(tree: Callable[..., Tree]) -> None:
    one = tree("unwaited")
    cpu = ServiceCpu(one.members)
    spent_s, pid = one.do("hold", SPENT_S)
    cpu.sample(1.0)
    one.do("kill", pid)
    cpu.sample(2.0)
    assert cpu.cpu_s == about(spent_s, 1)
    more_s, other = one.do("hold", SPENT_S)
    cpu.sample(3.0)
    assert cpu.cpu_s == about(spent_s + more_s, 2)
    assert [ended.pid for ended in cpu.ended] == [pid]
    assert other != pid


def test_cpu_from_before_the_first_look_is_not_counted(tree: Callable[..., Tree]) -> None:
    one = tree()
    one.do("spend", SPENT_S)
    _, pid = one.do("hold", SPENT_S)
    cpu = ServiceCpu(one.members)
    one.do("kill", pid)  # what it used before is handed to its parent now
    spent_s = one.do("spend", SPENT_S)[0]
    cpu.sample(1.0)
    assert cpu.cpu_s == about(spent_s, 2)
    assert [ended.pid for ended in cpu.ended] == [pid]


def test_a_killed_parent_takes_nothing_along(tree: Callable[..., Tree]) -> None:
    one = tree()
    left: list[ServiceProcess] = []
    cpu = ServiceCpu(lambda: left or one.members())
    spent_s = one.do("spend", SPENT_S)[0]
    more_s, pid = one.do("hold", SPENT_S)
    cpu.sample(1.0)
    one.process.kill()
    one.process.wait()
    left.append(ServiceProcess(pid, "tree"))
    cpu.sample(2.0)
    psutil.Process(pid).kill()
    assert cpu.cpu_s == about(spent_s + more_s, 2)
    assert [ended.pid for ended in cpu.ended] == [one.process.pid]


def test_a_process_that_ended_and_was_not_waited_for_yet_has_ended(
    tree: Callable[..., Tree],
) -> None:
    one = tree()
    cpu = ServiceCpu(one.members)
    spent_s, pid = one.do("hold", SPENT_S)
    cpu.sample(1.0)
    child = psutil.Process(pid)
    child.kill()  # its parent does not know yet
    psutil.wait_procs([child], timeout=0)
    while child.status() != psutil.STATUS_ZOMBIE:
        pass
    cpu.sample(2.0)
    cpu.sample(3.0)
    assert [(ended.pid, ended.at_s) for ended in cpu.ended] == [(pid, 2.0)]
    assert cpu.cpu_s == about(spent_s, 1)
