"""However a run ends, what was measured is kept and no worker is left."""

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import psutil
import pytest

from loadstone.analysis.stats import compute_stats
from loadstone.engine.callables.model import ITERATION, WAIT, CallPlan, Function
from loadstone.engine.callables.run import run
from loadstone.engine.outcome import Outcome
from loadstone.plan.load import ClosedLoad, OpenLoad

PLACE = str(Path(__file__).parents[2] / "support" / "callable_scenarios.py")
PROGRAM = """
import signal, sys
from loadstone.engine.callables.model import CallPlan, Function
from loadstone.engine.callables.run import run
from loadstone.plan.load import ClosedLoad

if __name__ == "__main__":
    place, name, pids = sys.argv[1:]
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)
    plan = CallPlan(
        Function(place, name), ClosedLoad(2, duration_s=3600), {"pids": pids}, drain_s=0.2
    )
    called = run(plan)
    print(called.measured.interrupted, len(called.measured.samples) > 0)
"""


@pytest.fixture
def pids(tmp_path):
    folder = tmp_path / "pids"
    folder.mkdir()
    return folder


def wait_for(condition, what):
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.02)


def is_gone(pid):
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def started(tmp_path, pids):
    """Start a program whose two workers are stuck for good."""
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    process = subprocess.Popen(
        [sys.executable, program, PLACE, "stuck", pids], stdout=subprocess.PIPE, text=True
    )
    wait_for(lambda: len(list(pids.iterdir())) == 2, "the workers never began")
    family = psutil.Process(process.pid).children(recursive=True)
    assert {int(path.name) for path in pids.iterdir()} < {child.pid for child in family}
    return process, [child.pid for child in family]


def test_no_worker_outlives_a_program_that_was_killed(tmp_path, pids):
    process, family = started(tmp_path, pids)
    process.kill()
    process.communicate()
    wait_for(lambda: all(is_gone(pid) for pid in family), "workers outlived the program")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_the_run_with_what_was_measured(tmp_path, pids, number):
    process, family = started(tmp_path, pids)
    process.send_signal(number)
    told, _ = process.communicate()
    assert told == "True True\n"
    assert process.returncode == 0
    wait_for(lambda: all(is_gone(pid) for pid in family), "workers outlived the program")


def test_the_watch_stops_the_run_and_what_waits_is_not_sent(tmp_path, pids):
    until, seen = tmp_path / "until", []

    def watch(progress):
        seen.append(progress)
        if progress.due < 10:
            return True
        if progress.cut_off:  # the counts go on while running iterations end
            until.touch()
        return False

    arguments = {"until": str(until), "pids": str(pids)}
    plan = CallPlan(Function(PLACE, "waiting"), OpenLoad(50, 3600.0), arguments, max_in_flight=2)
    called = run(plan, watch)
    samples = called.measured.samples
    assert not called.measured.interrupted
    ended = samples.action == called.actions.index(ITERATION)
    assert samples.outcome[ended].tolist() == [Outcome.OK, Outcome.OK]
    unsent = samples.outcome == Outcome.NOT_SENT
    assert set(samples.action[unsent].tolist()) == {called.actions.index(WAIT)}
    assert unsent.sum() == seen[-1].due - 2
    assert [one.due for one in seen] == sorted(one.due for one in seen)
    assert seen[-1].sent == 2
    assert (seen[-1].failed, seen[-1].cut_off) == (0, seen[-1].due - 2)


@pytest.mark.parametrize("function", ["waiting", "waiting_after_a_failure"])
def test_ctrl_c_lets_iterations_end_and_a_second_one_cuts_them_off(tmp_path, pids, function):
    asked, seen = 0, []

    def watch(progress):
        nonlocal asked
        seen.append(progress)
        if progress.sent == 2 and asked < 2:
            asked += 1
            os.kill(os.getpid(), signal.SIGINT)
            os.kill(os.getpid(), signal.SIGINT)
        return True

    arguments = {"until": str(tmp_path / "never"), "pids": str(pids)}
    plan = CallPlan(Function(PLACE, function), ClosedLoad(2, iterations=100), arguments)
    called = run(plan, watch)
    assert called.measured.interrupted
    samples = called.measured.samples
    ended = samples.action == called.actions.index(ITERATION)
    assert Counter(samples.outcome[ended].tolist()) == {Outcome.NOT_SENT: 2}
    assert called.failures == ()
    stats = compute_stats(samples, called.actions).stats
    assert (stats.ok, stats.failed, stats.cut_off) == (0, 0, 2)
    assert all(is_gone(int(path.name)) for path in pids.iterdir())
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_an_iteration_that_does_not_end_is_given_up_after_the_drain(pids):
    arguments = {"pids": str(pids)}
    load = ClosedLoad(1, iterations=1)
    called = run(CallPlan(Function(PLACE, "stuck"), load, arguments, drain_s=0.2))
    assert not called.measured.interrupted
    (failure,) = called.failures
    assert failure.cause == "not complete within 0.2 s after the load"
    assert (failure.action, failure.count) == ("stuck", 1)
