"""Rally's Dummy scenarios, which send no requests and test the tool itself."""

import random
import time
from typing import Any

from loadstone.engine.callables.context import Context


class DummyScenarioException(Exception):
    """Raised by Dummy scenarios that are meant to fail."""

    def __init__(self, message: str) -> None:
        super().__init__(f"Dummy scenario expected exception: '{message}'")


def dummy(context: Context, sleep: float = 0, **_: Any) -> None:
    """Sleep, in a nested action."""
    with context.action("foo"), context.action("bar"):
        time.sleep(sleep)


def openstack(context: Context, sleep: float = 0, **_: Any) -> None:
    """Sleep, with users of a cloud."""
    dummy(context, sleep)


def failure(
    context: Context,
    sleep: float = 0.1,
    from_iteration: int = 0,
    to_iteration: int = 0,
    each: int = 1,
) -> None:
    """Fail in every n-th iteration of a range."""
    time.sleep(sleep)
    if from_iteration <= context.iteration <= to_iteration and context.iteration % each == 0:
        raise DummyScenarioException("Expected failure")


def dummy_exception(
    context: Context,  # noqa: ARG001  every function gets it
    size_of_message: int = 1,
    sleep: float = 1,
    message: str = "",
) -> None:
    """Sleep, then fail."""
    time.sleep(sleep)
    raise DummyScenarioException(message or "M" * size_of_message)


def dummy_exception_probability(
    context: Context,  # noqa: ARG001
    exception_probability: float = 0.5,
) -> None:
    """Fail with a probability."""
    if random.random() < exception_probability:  # noqa: S311
        raise DummyScenarioException(
            f"Dummy Scenario Exception: Probability: {exception_probability}"
        )


def dummy_random_fail_in_atomic(context: Context, exception_probability: float = 0.5) -> None:
    """Fail with a probability in one of four actions."""
    # Rally divides it among the actions, except if failure is certain.
    share = exception_probability if exception_probability == 1 else exception_probability / 4
    for _ in range(2):
        with context.action("dummy_fail_test"):
            _roulette(share)
            with context.action("dummy_fail_inner_test"):
                _roulette(share)


def _roulette(probability: float) -> None:
    if random.random() < probability:  # noqa: S311
        raise KeyError("Dummy test exception")


def dummy_random_action(
    context: Context, actions_num: int = 5, sleep_min: float = 0, sleep_max: float = 0
) -> None:
    """Sleep for random times in several actions."""
    for number in range(actions_num):
        with context.action(f"action_{number}"):
            time.sleep(random.uniform(sleep_min, sleep_max))  # noqa: S311


def dummy_timed_atomic_actions(
    context: Context, number_of_actions: int = 5, sleep_factor: float = 1
) -> None:
    """Sleep longer in each action."""
    for number in range(number_of_actions):
        with context.action(f"action_{number}"):
            time.sleep(number * sleep_factor)
