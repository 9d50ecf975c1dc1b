import threading

import pytest

from loadstone.system.concurrently import each


def test_results_come_in_the_order_of_the_items():
    assert each(lambda n: n * n, range(20), workers=3) == tuple(n * n for n in range(20))
    assert each(str, [], workers=3) == ()


def test_so_many_at_a_time():
    meeting = threading.Barrier(4)
    assert len(each(lambda _: meeting.wait(timeout=30), range(8), workers=4)) == 8


def test_the_first_failure_starts_no_further_call():
    called = []

    def call(number):
        called.append(number)
        if number == 2:
            raise RuntimeError("no")

    with pytest.raises(RuntimeError, match="no"):
        each(call, range(1000), workers=1)
    assert called == [0, 1, 2]


def test_calls_on_their_way_end_before_the_failure_is_raised():
    started, failed = threading.Event(), threading.Event()
    ended = []

    def call(name):
        if name == "fails":
            started.wait(timeout=30)
            failed.set()
            raise RuntimeError
        started.set()
        failed.wait(timeout=30)
        ended.append(name)

    with pytest.raises(RuntimeError):
        each(call, ["slow", "fails"], workers=2)
    assert ended == ["slow"]


def test_it_is_said_how_far_it_is(monkeypatch):
    monkeypatch.setattr("loadstone.system.concurrently.PROGRESS_S", 0.001)
    enough, said = threading.Event(), []

    def tell(line):
        said.append(line)
        enough.set()

    each(lambda _: enough.wait(timeout=30), range(2), workers=1, say=tell)
    assert said[0] == "  0 of 2"
