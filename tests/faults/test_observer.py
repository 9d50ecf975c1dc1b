"""Faults of a trial, and what becomes of those that cannot be carried out."""

import time
from dataclasses import dataclass, field
from threading import Event, Thread
from types import SimpleNamespace

import pytest
from made_runs import runs

from loadstone.cloud.cloud import Endpoint
from loadstone.engine.progress import Progress
from loadstone.errors import EnvironmentUnusable, InvalidInput
from loadstone.faults.carried import FaultRunner
from loadstone.faults.model import Action, FaultCommands, FaultRecord, Planned, ServiceCommands
from loadstone.faults.observer import Faults
from loadstone.faults.sentence import read
from loadstone.plan.hooks import Event as At
from loadstone.plan.hooks import FaultInjection, Hook
from loadstone.system.clock import SYSTEM, Clock


@dataclass
class Broken:
    """An injector whose every fault ends with an exception."""

    problem: Exception
    over: Event = field(default_factory=Event)

    def inject(self, fault):  # noqa: ARG002
        raise self.problem

    def logged_failures(self):
        return None


@pytest.mark.parametrize(
    ("problem", "expected"),
    [
        (OSError(28, "No space left on device"), EnvironmentUnusable),
        (ZeroDivisionError("a defect"), ZeroDivisionError),
    ],
)
def test_a_fault_that_ends_with_an_exception_is_no_trial_without_a_fault(problem, expected):
    planned = (Planned(read("kill keystone service"), 1.0),)
    faults = Faults(Broken(problem), planned, print, lambda *_, **__: None)
    faults.on_progress(Progress(2.0, 10, 10, 10, 0, 1.0))
    faults.close()
    with pytest.raises(expected, match=r"No space left|a defect"):
        faults.on_trial_end(runs()["search"].measurements[0].trials[0])


@dataclass
class Slow:
    """An injector that needs long to undo."""

    over: Event = field(default_factory=Event)
    may_undo: Event = field(default_factory=Event)
    has_waited: bool = False

    def inject(self, fault):
        self.over.wait()
        self.has_waited = self.may_undo.wait(5)
        return FaultRecord(fault, 1.0, 9.0, None, (), ())

    def logged_failures(self):
        return None

    def settle(self):
        assert self.has_waited


def test_what_the_load_used_is_read_before_a_long_undo_ends():
    injector = Slow()
    planned = (Planned(read("rolling restart of keystone with token.expiration=7200"), 1.0),)
    faults = Faults(injector, planned, print, lambda *_, **__: None)
    faults.on_progress(Progress(2.0, 10, 10, 10, 0, 1.0))
    faults.on_load_end(None)
    injector.may_undo.set()  # after the readings of other observers
    faults.on_trial_end(runs()["search"].measurements[0].trials[0])
    assert injector.has_waited


@pytest.mark.parametrize(
    ("sentence", "words"),
    [
        ("overload 2x for 10 seconds", "is part of the load"),
        ("upgrade keystone to 30.0.0", "is prepared before the load"),
        ("rolling restart of keystone with token.expiration=7200", "is prepared before the load"),
    ],
)
def test_what_a_hook_cannot_do_is_refused_before_the_load(sentence, words):
    hook = Hook(FaultInjection(sentence), At("time", (1,)))
    with pytest.raises(InvalidInput, match=words):
        FaultRunner(None, None, "run").require_possible((), (hook,), None)


def test_a_lab_on_another_host_is_named_and_the_way_to_break_it():
    there = (("lab", "far"), ("lab host", "host-2"))
    runner = FaultRunner(SimpleNamespace(lab=None, facts=there), None, "run")
    planned = (Planned(read("kill keystone service"), 1.0),)
    with pytest.raises(InvalidInput, match=r"of this machine, .* far is on host-2; .*--faults"):
        runner.require_possible(planned, (), None)


def of_commands(actions, clock=SYSTEM):
    """Return an injector that runs these commands."""
    place = Endpoint.parse("http://127.0.0.1:9")
    access = SimpleNamespace(cloud=SimpleNamespace(endpoint=place), endpoint=place)
    commands = FaultCommands("faults.yaml", {"keystone": ServiceCommands(("here",), actions)})
    return FaultRunner(SimpleNamespace(lab=None, access=access), commands, "run", clock)


def test_an_upgrade_by_commands_of_the_user_needs_no_preparation():
    hook = Hook(FaultInjection("upgrade keystone to 30.0.0"), At("time", (1,)))
    of_commands({"upgrade": Action("true")}).require_possible((), (hook,), None)


@pytest.mark.processes
def test_n_is_measured_once_a_slow_command_has_broken_the_service(tmp_path, monkeypatch):
    monkeypatch.setenv("LOADSTONE_HOME", str(tmp_path))
    broken = tmp_path / "broken"
    actions = {"kill": Action(f"sleep 0.5; touch {broken}", f"rm {broken}")}
    runner = of_commands(actions, Clock(sleep=lambda seconds: time.sleep(min(seconds, 0.1))))
    with runner.hold(read("kill keystone service"), print):
        assert broken.exists()
    assert not broken.exists()


@pytest.mark.processes
def test_nothing_is_measured_while_a_fault_that_failed_should_be_held(tmp_path, monkeypatch):
    monkeypatch.setenv("LOADSTONE_HOME", str(tmp_path))
    threads = []

    def thread(work):
        threads.append(Thread(target=work))
        return threads[-1]

    runner = of_commands(
        {"kill": Action("false")}, Clock(sleep=lambda _: threads[0].join(), thread=thread)
    )
    with (
        pytest.raises(EnvironmentUnusable, match="false ended with 1"),
        runner.hold(read("kill keystone service"), print),
    ):
        pytest.fail("a whole service is measured")
