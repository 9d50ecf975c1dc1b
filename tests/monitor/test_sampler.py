"""Monitors never end a run, and name once what they cannot read."""

import itertools
import threading
import time
from dataclasses import dataclass, field
from types import SimpleNamespace

from loadstone.errors import EnvironmentUnusable
from loadstone.monitor import sampler
from loadstone.monitor.metrics import Reading
from loadstone.monitor.sampler import Monitor
from loadstone.monitor.source import Unreadable


@dataclass
class Script:
    """A source that gives what its script says, one entry a read, the last one forever."""

    name: str
    entries: list
    is_remote: bool = False
    reads: int = 0
    is_closed: bool = False
    has_read: threading.Event = field(default_factory=threading.Event)

    def read(self):
        entry = self.entries[min(self.reads, len(self.entries) - 1)]
        self.reads += 1
        self.has_read.set()
        if isinstance(entry, Exception):
            raise entry
        if entry is None:
            return
        yield Reading(self.name, "value", entry)

    def close(self):
        self.is_closed = True


def test_a_source_that_cannot_be_read_is_named_once_and_the_others_go_on():
    bad, good = Script("bad", [Unreadable("no such socket")]), Script("good", [1, 2, 3])
    with Monitor([bad, good], every_s=1000) as monitor:
        for _ in range(3):
            monitor.sample()
    assert [str(one) for one in monitor.missing] == ["bad is not watched: no such socket"]
    assert bad.reads == 1
    assert bad.is_closed
    assert good.is_closed
    assert monitor.metrics().of("good", "value")[1].tolist()[-2:] == [3, 3]


@dataclass
class Endless(Script):
    """A source whose first read has no end until the test says so."""

    may_end: threading.Event = field(default_factory=threading.Event)

    def read(self):
        self.has_read.set()
        self.may_end.wait()
        yield Reading(self.name, "value", 1)


def test_a_source_whose_first_read_does_not_end_is_named(monkeypatch):
    endless = Endless("endless", [], is_remote=True)
    monkeypatch.setattr(sampler, "PATIENCE_S", 1e6)
    with Monitor([endless], every_s=1000) as monitor:
        try:
            endless.has_read.wait()
            assert monitor.missing == ()
            monkeypatch.setattr(sampler, "PATIENCE_S", 0.0)
            [missing] = monitor.missing
            assert str(missing) == "endless is not watched: no complete answer within 0 s"
        finally:
            monkeypatch.setattr(sampler, "PATIENCE_S", 1e6)
            endless.may_end.set()
    assert monitor.missing == ()


def test_one_failure_among_answers_is_forgiven_and_three_in_a_row_are_not():
    late = Script("late", [1, TimeoutError("timed out"), 2])
    gone = Script("gone", [1, OSError("broken")])
    with Monitor([late, gone], every_s=1000) as monitor:
        for _ in range(6):
            monitor.sample()
    assert [one.source for one in monitor.missing] == ["gone"]
    assert gone.is_closed


def test_a_source_that_answers_again_after_a_fault_is_watched_again():
    broken = OSError("broken")
    back = Script("back", [1, broken, broken, broken, 2, 3])
    with Monitor([back], every_s=1000) as monitor:
        assert back.has_read.wait(10)  # by its own thread
        for _ in range(3):
            monitor.sample()
        assert [one.source for one in monitor.missing] == ["back"]
        for _ in range(2):
            monitor.sample()
        assert monitor.missing == ()
        assert monitor.metrics().of("back", "value")[1].tolist()[-2:] == [2, 3]


def test_a_source_that_is_not_asked_at_each_read_is_missed_as_well():
    gone = OSError("broken")
    away = Script("away", [1, None, gone, None, gone, None, gone])
    with Monitor([away], every_s=1000) as monitor:
        for _ in range(8):
            monitor.sample()
    assert [one.source for one in monitor.missing] == ["away"]


def test_an_error_that_nobody_foresaw_ends_nothing():
    with Monitor([Script("odd", [ZeroDivisionError("division by zero")])], every_s=1000) as monitor:
        monitor.sample()
    (missing,) = monitor.missing
    assert missing.why == "ZeroDivisionError: division by zero"


def test_a_loss_that_loadstone_has_words_for_is_told_in_these_alone():
    lost = EnvironmentUnusable("lab host far was lost: its worker is gone\nlog: ...")
    with Monitor([Script("lab host far", [lost])], every_s=1000) as monitor:
        monitor.sample()
    (missing,) = monitor.missing
    assert missing.why == "lab host far was lost: its worker is gone"


def test_a_slow_source_on_another_machine_does_not_delay_a_look():
    release = threading.Event()

    class Slow(Script):
        def read(self):
            release.wait()
            return super().read()

    slow, fast = Slow("slow", [1], is_remote=True), Script("fast", [1])
    with Monitor([slow, fast], every_s=1000) as monitor:
        monitor.sample()
        assert monitor.metrics().of("fast", "value")[1].tolist()
        release.set()


def test_what_another_machine_answers_late_is_of_the_time_of_its_answer():
    release, begun = threading.Event(), threading.Event()

    class Late(Script):
        def read(self):
            begun.set()
            release.wait()
            return super().read()

    with Monitor([Late("late", [1], is_remote=True)], every_s=1000) as monitor:
        assert begun.wait(10)
        before_answer = monitor.sample()
        release.set()
    _, values = monitor.metrics(before_answer).of("late", "value")
    assert values.tolist() == [1]


def test_a_clock_that_is_set_back_does_not_make_a_counter_begin_anew(monkeypatch):
    clock = SimpleNamespace(
        time=itertools.count(1_000_000, -60).__next__,
        monotonic=time.monotonic,
        thread_time=time.thread_time,
    )
    monkeypatch.setattr(sampler, "time", clock)
    counter = Script("counter", [100, 200, 300, 400])
    with Monitor([], every_s=1000) as monitor, monitor.reading([counter]):
        assert counter.has_read.wait(10)
        for _ in range(3):
            monitor.sample()
    metrics = monitor.metrics()
    assert metrics.of("counter", "value")[1].tolist() == [100, 200, 300, 400]
    assert metrics.increase("counter", "value") == 300


def test_the_monitors_own_cpu_is_among_the_readings():
    with Monitor([Script("one", [1])], every_s=1000) as monitor:
        monitor.sample()
        monitor.sample()
    assert monitor.metrics().increase("monitor", "cpu_seconds_total") >= 0


def test_a_further_source_is_read_until_its_end_and_is_not_missed_afterwards():
    first, further = Script("first", [1]), Script("further", [1], is_remote=True)
    with Monitor([first], every_s=0.01) as monitor:
        with monitor.reading([further]):
            assert further.has_read.wait(10)
        assert further.is_closed
        reads = further.reads
        first.has_read.clear()
        assert first.has_read.wait(10)
        assert further.reads == reads
    assert monitor.missing == ()
