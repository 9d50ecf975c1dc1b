"""Faults of a trial, and what becomes of those that cannot be carried out."""

import time
from dataclasses import dataclass, field, replace
from threading import Event, Thread

import numpy as np
import pytest
from made_runs import runs

from loadstone.engine.callables.model import PAUSE
from loadstone.engine.outcome import Outcome
from loadstone.engine.progress import Progress
from loadstone.engine.samples import Samples
from loadstone.errors import EnvironmentUnusable, InvalidInput
from loadstone.faults.carried import FaultRunner
from loadstone.faults.journal import FaultTarget
from loadstone.faults.model import Action, FaultCommands, FaultRecord, Planned, ServiceCommands
from loadstone.faults.observer import Faults
from loadstone.faults.sentence import read
from loadstone.plan.hooks import Event as At
from loadstone.plan.hooks import FaultInjection, Hook
from loadstone.report.sections import fault_charts
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
class Failing:
    """An injector that can carry out nothing."""

    over: Event = field(default_factory=Event)

    def inject(self, fault):
        return FaultRecord(fault, 1.0, None, None, (), (), "db_sync --expand failed")

    def logged_failures(self):
        return None


@pytest.mark.parametrize("injector", [Failing(), Broken(OSError("no space"))])
@pytest.mark.parametrize("sentence", ["kill keystone service", "upgrade keystone to 30.0.0"])
def test_the_load_ends_once_a_fault_could_not_be_carried_out(injector, sentence):
    planned = (Planned(read(sentence), 1.0), Planned(read(sentence), 50.0))
    faults = Faults(injector, planned, print, lambda *_, **__: None)
    assert faults.on_progress(Progress(0.5, 10, 10, 10, 0, 1.0))
    faults.on_progress(Progress(2.0, 10, 10, 10, 0, 1.0))
    faults.close()  # the fault has ended
    assert not faults.on_progress(Progress(3.0, 10, 10, 10, 0, 1.0))


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


START_S = 1_000_000.0  # of the load, a Unix time


@dataclass
class Recorded:
    """An injector whose faults have happened already."""

    records: list[FaultRecord]
    over: Event = field(default_factory=Event)

    def inject(self, fault):  # noqa: ARG002
        return self.records.pop(0)

    def findings(self, *_):
        return ()

    def logged_failures(self):
        return 250

    def settle(self):
        pass


def dark_samples(*dark):
    """Return a minute of 50 requests a second that fail in these periods."""
    due_s = np.arange(0.01, 60.0, 0.02)
    is_dark = np.any([(due_s >= begin) & (due_s < end) for begin, end in dark], axis=0)
    due_ns, rows = (due_s * 1e9).astype(np.int64), np.arange(len(due_s), dtype=np.uint32)
    nothing = np.zeros(len(due_s), np.uint8)
    return Samples(
        due_ns=due_ns,
        sent_ns=due_ns,
        done_ns=due_ns + 5_000_000,
        first_byte_us=rows,
        iteration=rows,
        connection=rows,
        status=np.where(is_dark, 0, 201).astype(np.uint16),
        outcome=np.where(is_dark, Outcome.REFUSED, Outcome.OK).astype(np.uint8),
        action=nothing,
        retried=nothing,
        generator=nothing.astype(np.uint16),
    )


def test_each_of_two_faults_in_one_load_has_its_own_effect_only():
    """As of a hook with two moments."""
    sentence, dark = "kill keystone service", ((20.0, 22.0), (40.0, 43.0))
    records = [
        FaultRecord(read(sentence), START_S + begin, START_S + end, None, (), ())
        for begin, end in dark
    ]
    faults = Faults(Recorded(records), (), print, lambda *_, **__: None)
    for _ in dark:
        faults.inject_sentence(sentence)
    faults.on_load_end(dark_samples(*dark))
    trial = runs()["search"].measurements[0].trials[0]
    found = faults.on_trial_end(replace(trial, start_s=START_S)).faults
    assert [(one.failed, one.baseline_failed) for one in found] == [(100, 0), (150, 0)]
    assert [one.logged_failures for one in found] == [None, None]  # they are of the whole load
    assert [one.downtime_s for one in found] == pytest.approx([2.0, 3.0], abs=0.04)
    assert [one.mttr_s for one in found] == pytest.approx([2.0, 3.0], abs=0.04)


def pausing_samples(slow):
    """Return a minute of 50 iterations a second: a request, then a pause of 5 s.

    The request takes 10 ms, and 50 ms in the period `slow`.
    """
    due_s = np.arange(0.01, 60.0, 0.02)
    is_slow = (due_s >= slow[0]) & (due_s < slow[1])
    begin_ns = (due_s * 1e9).astype(np.int64)
    end_ns = begin_ns + np.where(is_slow, 50_000_000, 10_000_000)
    number, nothing = np.arange(len(due_s), dtype=np.uint32), np.zeros(2 * len(due_s), np.uint8)
    rows = Samples(
        due_ns=np.concatenate([begin_ns, end_ns]),
        sent_ns=np.concatenate([begin_ns, end_ns]),
        done_ns=np.concatenate([end_ns, end_ns + 5_000_000_000]),
        first_byte_us=nothing.astype(np.uint32),
        iteration=np.concatenate([number, number]),
        connection=nothing.astype(np.uint32),
        status=np.repeat(np.array([201, 0], np.uint16), len(due_s)),
        outcome=nothing,
        action=np.repeat(np.array([0, 1], np.uint8), len(due_s)),
        retried=nothing,
        generator=nothing.astype(np.uint16),
    )
    return rows.by_completion()


def test_pauses_are_no_part_of_what_a_fault_does():
    record = FaultRecord(read("kill keystone service"), START_S + 20, START_S + 23, None, (), ())
    faults = Faults(Recorded([record]), (), print, lambda *_, **__: None)
    faults.inject_sentence("kill keystone service")
    samples = pausing_samples((20.0, 23.0))
    faults.on_load_end(samples)
    trial = runs()["search"].measurements[0].trials[0]
    trial = replace(trial, start_s=START_S, actions=("request", PAUSE))
    trial = faults.on_trial_end(trial)
    [found] = trial.faults
    assert found.baseline_s == pytest.approx(0.01)
    assert found.absolute_s == pytest.approx(0.04, rel=0.05)
    assert found.degraded == (pytest.approx((20.0, 23.0), abs=0.04),)
    measurement = replace(runs()["search"].measurements[0], trials=(trial,))
    latency = fault_charts.charts(measurement, "x", lambda _: samples)[0]
    assert max(y for one in latency.series for _, y in one.data) == pytest.approx(50.0)


def test_faults_that_overlap_have_one_effect():
    records = [
        FaultRecord(read("kill keystone service"), START_S + begin, START_S + 23.0, None, (), ())
        for begin in (20.0, 21.0)
    ]
    faults = Faults(Recorded(records), (), print, lambda *_, **__: None)
    for _ in range(2):
        faults.inject_sentence("kill keystone service")
    faults.on_load_end(dark_samples((20.0, 23.0)))
    trial = runs()["search"].measurements[0].trials[0]
    found = faults.on_trial_end(replace(trial, start_s=START_S)).faults
    assert [(one.failed, one.baseline_failed) for one in found] == [(150, 0), (100, 0)]
    assert [one.mttr_s for one in found] == pytest.approx([3.0, 2.0], abs=0.04)


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
        FaultRunner(FaultTarget(), None, "run").require_possible((), (hook,), None)


def test_a_lab_on_another_host_is_named_and_the_way_to_break_it():
    runner = FaultRunner(FaultTarget(), None, "run", "host-2")
    planned = (Planned(read("kill keystone service"), 1.0),)
    with pytest.raises(InvalidInput, match=r"of this machine, .* is on host-2; .*--faults"):
        runner.require_possible(planned, (), None)


def of_commands(actions, clock=SYSTEM):
    """Return an injector that runs these commands."""
    commands = FaultCommands("faults.yaml", {"keystone": ServiceCommands(("here",), actions)})
    target = FaultTarget(endpoints=("127.0.0.1:9",))
    return FaultRunner(target, commands, "run", clock=clock)


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
