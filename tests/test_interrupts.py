"""Signals interrupt a command, and its exit code says which one did."""

import os
import signal
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


def test_the_first_signal_counts_also_one_that_was_only_counted() -> None:
    with Interrupts() as counted:
        os.kill(os.getpid(), signal.SIGTERM)
    assert counted.count == 1
    with pytest.raises(KeyboardInterrupt):
        os.kill(os.getpid(), signal.SIGHUP)
    assert interrupts.exit_code() == 143
