"""Tests of the messages that a function's context sends, without a worker process."""

from typing import Any

import pytest

from loadstone.engine.callables import context as context_module
from loadstone.engine.callables.context import Context, whole
from loadstone.engine.callables.model import PAUSE
from loadstone.engine.outcome import Outcome


class Clock:
    """Time that passes only in sleep()."""

    def __init__(self) -> None:
        self.now_ns = 0

    def monotonic_ns(self) -> int:
        return self.now_ns

    def sleep(self, seconds: float) -> None:
        self.now_ns += round(seconds * 1e9)


def test_a_pause_in_an_action_is_idle_time_and_not_part_of_the_action(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = Clock()
    monkeypatch.setattr(context_module, "time", clock)
    sent: list[tuple[Any, ...]] = []
    context = Context(0, {}, {}, sent.append)
    with context.action("outer"), context.action("inner"):
        clock.sleep(1)
        context.pause(5)
        clock.sleep(2)
    ends = [message[1:4] for message in sent if message[0] == "end"]
    assert ends == [
        (PAUSE, 1_000_000_000, 6_000_000_000),
        ("outer/inner", 0, 3_000_000_000),
        ("outer", 0, 3_000_000_000),
    ]


@pytest.mark.parametrize("name", ["", "(iteration)"])
def test_an_action_needs_a_name_that_is_not_one_of_loadstones_own(name: str) -> None:
    context = Context(0, {}, {}, [].append)
    with pytest.raises(ValueError, match="an action cannot be called"), context.action(name):
        pass


def test_an_iteration_that_changes_its_arguments_does_not_change_those_of_the_next() -> None:
    arguments = {"names": ["a"]}

    def take(_context: Context, names: list[str]) -> None:
        names.pop()

    context = Context(0, {}, {}, [].append)
    ends = [whole(context, take, arguments).outcome for _ in range(2)]
    assert ends == [Outcome.OK, Outcome.OK]
