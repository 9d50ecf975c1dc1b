"""The clock of a measurement: the system's, or a virtual one in tests."""

import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Clock:
    """Reads the time and waits."""

    monotonic_s: Callable[[], float] = time.monotonic
    unix_s: Callable[[], float] = time.time
    sleep: Callable[[float], None] = time.sleep


SYSTEM = Clock()
