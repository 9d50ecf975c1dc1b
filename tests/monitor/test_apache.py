"""Apache's status page, as its threads run out."""

import threading
from urllib.parse import urlsplit

import pytest
from fake_server import handled, serving

from loadstone.monitor.sources import sockets
from loadstone.monitor.sources.address import MonitorAddress
from loadstone.monitor.sources.apache import ApacheSource

# As mod_status of Apache 2.4 answers with `?auto`, with the event MPM and two of four threads busy.
PAGE = """\
ServerMPM: event
Total Accesses: 93
BusyWorkers: 2
IdleWorkers: 2
Processes: 1
ConnsTotal: 2
Scoreboard: _WW_
"""


@pytest.fixture
def served(monkeypatch):
    """A source of a page that is answered until `is_stuck` is set."""
    is_stuck, over = threading.Event(), threading.Event()

    def show_page(request):
        if is_stuck.is_set():
            over.wait(30)
            request.close_connection = True
        else:
            request.answer(200, PAGE.encode())

    monkeypatch.setattr(sockets, "TIMEOUT_S", 2.0)
    with serving(handled(show_page)) as url:
        port = urlsplit(url).port
        source = ApacheSource(MonitorAddress("apache", "apache", host="127.0.0.1", port=port))
        yield source, is_stuck
        source.close()
        over.set()


def values(source):
    return {one.metric: one.value for one in source.read()}


def test_the_thread_that_answers_does_not_count(served):
    source, _ = served
    found = values(source)
    assert (found["slots_busy"], found["slots_limit"], found["slots_idle"]) == (1, 3, 2)


def test_a_page_that_is_not_answered_means_that_all_threads_are_busy(served):
    source, is_stuck = served
    values(source)
    is_stuck.set()
    found = values(source)
    assert (found["slots_busy"], found["slots_limit"]) == (3, 3)
    is_stuck.clear()
    assert values(source)["slots_busy"] == 1


def test_a_page_that_was_never_answered_says_nothing(served):
    source, is_stuck = served
    is_stuck.set()
    with pytest.raises(TimeoutError):
        values(source)
