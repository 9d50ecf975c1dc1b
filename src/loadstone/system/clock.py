"""The clock of a measurement: the system's, or a virtual one in tests."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from threading import Event, Thread


def _thread(work: Callable[[], object]) -> Thread:
    return Thread(target=work, name="work")


@dataclass(frozen=True, slots=True)
class Clock:
    """Reads the time, waits, and makes threads whose waits this clock ends."""

    monotonic_s: Callable[[], float] = time.monotonic
    unix_s: Callable[[], float] = time.time
    sleep: Callable[[float], None] = time.sleep
    wait: Callable[[Event, float], object] = Event.wait  # until it is set, at most so many seconds
    thread: Callable[[Callable[[], object]], Thread] = _thread  # one that is not started yet


SYSTEM = Clock()
