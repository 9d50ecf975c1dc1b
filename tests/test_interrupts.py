"""Signals interrupt a command, and its exit code says which one did."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from loadstone.system import interrupts
from loadstone.system.interrupts import Interrupts


@pytest.fixture(autouse=True)
def handled(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(interrupts, "_received", [])
    numbers = (signal.SIGTERM, signal.SIGHUP)
    before = [signal.signal(number, signal.SIG_DFL) for number in numbers]
    interrupts.interrupt_on_signals()
    yield
    for number, handler in zip(numbers, before, strict=True):
        signal.signal(number, handler)


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
)
def test_the_exit_code_is_that_of_shells(number: signal.Signals, code: int) -> None:
    with pytest.raises(KeyboardInterrupt):
        os.kill(os.getpid(), number)
    assert interrupts.exit_code() == code


DROPPED = """
import os, signal, sys, time
from loadstone.system import interrupts
interrupts.interrupt_on_signals()
class Destroyed:
    def __del__(self):
        os.kill(os.getpid(), int(sys.argv[1]))
        time.sleep(0)
Destroyed()
try:
    time.sleep(60)
except KeyboardInterrupt:
    sys.exit(interrupts.exit_code())
"""


@pytest.mark.processes
@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
)
def test_a_signal_that_comes_while_a_destructor_runs_is_not_lost(number: int, code: int) -> None:
    words = [sys.executable, "-c", DROPPED, str(int(number))]
    ended = subprocess.run(words, capture_output=True, text=True, timeout=50, check=False)
    assert (ended.returncode, ended.stderr) == (code, "")


def test_the_first_signal_counts_also_one_that_was_only_counted() -> None:
    with Interrupts() as counted:
        os.kill(os.getpid(), signal.SIGTERM)
    assert counted.count == 1
    with pytest.raises(KeyboardInterrupt):
        os.kill(os.getpid(), signal.SIGHUP)
    assert interrupts.exit_code() == 143
