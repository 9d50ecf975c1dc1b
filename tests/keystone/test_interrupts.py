"""Signals, on a process of its own."""

import os
import signal
import subprocess
import sys
import threading
from contextlib import contextmanager

import pytest

from loadstone.cloud import connect, from_environment
from loadstone.keystone.clean import clean, remaining

RUN = "int1"
NAME = f"loadstone-{RUN}"

# A run that prepares users and then waits to be stopped.
MAKE_USERS = """
import os, select, sys
from pathlib import Path
from loadstone.keystone.contexts.model import Users
from loadstone.keystone.contexts.users import RunJournal
from loadstone.keystone.contexts.workload import contexts
from loadstone.cloud import connect, from_environment
from loadstone.system.interrupts import interrupt_on_signals
interrupt_on_signals()
with connect(from_environment(os.environ, "--lab test")) as access:
    with contexts(access, RunJournal("int1", Path(sys.argv[1])), [Users(2, 3)], print):
        print("made", flush=True)
        # A signal just before a call that waits for ever would not end it.
        while not select.select([sys.stdin], [], [], 0.05)[0]:
            pass
"""


@contextmanager
def running(variables, journal):
    process = subprocess.Popen(
        [sys.executable, "-u", "-c", MAKE_USERS, str(journal)],
        env={**os.environ, **variables},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


@pytest.fixture
def process(variables, journal):
    with running(variables, journal) as process:
        yield process


def held(fake, wanted):
    """Hold calls of this method up: gives when the first has come, and what lets them all go."""
    come, go = threading.Event(), threading.Event()

    def hold(method, path):
        if wanted in ((method, path), method):
            come.set()
            go.wait(timeout=500)

    fake.disturb = hold
    return come, go


@pytest.mark.parametrize("path", ["/v3/users", "/v3/domains"])
def test_ctrl_c_while_something_is_made_waits_for_what_is_on_its_way(fake, process, journal, path):
    come, go = held(fake, ("POST", path))
    assert come.wait(timeout=500)
    process.send_signal(signal.SIGINT)
    go.set()
    shown, trouble = process.communicate()
    assert "made\n" not in shown
    assert "KeyboardInterrupt" in trouble
    assert not any(fake.things.values())
    assert remaining(journal) == ()


def test_a_second_ctrl_c_lists_what_is_left_and_ends(fake, process, access, journal, said):
    while process.stdout.readline().strip() != "made":
        assert process.poll() is None
    come, go = held(fake, "DELETE")
    process.send_signal(signal.SIGINT)
    assert come.wait(timeout=500)
    process.send_signal(signal.SIGINT)
    shown, _ = process.communicate()
    go.set()
    assert f"remove with: loadstone results clean {RUN} --lab test" in shown
    assert f"user {NAME}-u1" in shown
    fake.disturb = lambda _method, _path: None
    assert clean(access, journal, said.append) == ()
    assert not any(fake.things.values())


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_the_first_signal_during_the_removal_does_not_end_it(fake, process, journal, number):
    while process.stdout.readline().strip() != "made":
        assert process.poll() is None
    come, go = held(fake, "DELETE")
    process.stdin.close()  # the run ends
    assert come.wait(timeout=500)
    process.send_signal(number)
    go.set()
    process.stdin = None  # communicate would flush it
    shown, trouble = process.communicate()
    assert "not removed yet" not in shown
    assert trouble.strip().endswith("KeyboardInterrupt")
    assert process.returncode != 0
    assert not any(fake.things.values())
    assert remaining(journal) == ()


# Calls of such a run: 1 discovery, 2 log in, 3 roles, 4 domain, 5, 6 projects, then users.
@pytest.mark.parametrize("call", [4, 5, 7, 12])
def test_killed_at_any_call_all_is_found_and_removed(fake, variables, journal, said, call):
    arrived, answer_after = threading.Event(), threading.Event()

    def count(_method, _path):
        if sum(fake.calls.values()) == call:
            arrived.set()
            # The process is dead when the service carries its call out.
            answer_after.wait(timeout=500)

    fake.disturb = count
    with running(variables, journal) as process:
        assert arrived.wait(timeout=500)
        process.kill()
        process.wait()
    answer_after.set()
    fake.disturb = lambda _method, _path: None
    fake.idle.wait(timeout=500)
    with connect(from_environment(variables, "--lab test")) as access:
        assert clean(access, journal, said.append) == ()
    assert not any(fake.things.values())
    assert remaining(journal) == ()
