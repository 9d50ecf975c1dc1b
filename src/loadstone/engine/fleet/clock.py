"""Measures the offset between the clocks of two hosts.

Cristian's algorithm (Probabilistic clock synchronization, Distributed Computing 3, 1989), as NTP
uses it (RFC 5905 section 8): of several round trips the shortest one bounds the error by half of
its duration.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass

# Largest drift between two quartz clocks, in addition to the errors of the two readings.
DRIFT = 200e-6
JUMP_NS = 5_000_000


@dataclass(frozen=True, slots=True)
class ClockReading:
    """Offset of a host's clock from ours with its error bound; `at_ns` is on our clock."""

    at_ns: int
    offset_ns: int
    error_ns: int

    def jump_ns(self, later: "ClockReading") -> int:
        """Return the step of the clock between two readings; 0 if drift explains the change."""
        moved_ns = later.offset_ns - self.offset_ns
        drift_ns = DRIFT * abs(later.at_ns - self.at_ns)
        allowed_ns = self.error_ns + later.error_ns + drift_ns + JUMP_NS
        return moved_ns if abs(moved_ns) > allowed_ns else 0


def read(now_ns: Callable[[], int], rounds: int) -> ClockReading:
    """Call `now_ns` (a host's time since 1970) several times; keep the shortest round trip."""
    return min((_round_trip(now_ns) for _ in range(rounds)), key=lambda one: one.error_ns)


def _round_trip(now_ns: Callable[[], int]) -> ClockReading:
    began_ns = time.time_ns()
    theirs_ns = now_ns()
    ended_ns = time.time_ns()
    middle_ns = (began_ns + ended_ns) // 2
    return ClockReading(middle_ns, theirs_ns - middle_ns, (ended_ns - began_ns) // 2)


class HostClock:
    """The system clock of a host."""

    __slots__ = ()

    def now_ns(self) -> int:
        """Return what this clock shows."""
        return time.time_ns()

    def real_ns(self, shown_ns: int) -> int:
        """Return the system time at which this clock shows `shown_ns`."""
        return shown_ns
