"""When iterations are due; the same schedules as the engine's (rust/engine/src/pacer.rs)."""

import heapq
import math
from typing import NamedTuple, Protocol, assert_never

from loadstone.plan.arrivals import due_s
from loadstone.plan.load import ClosedLoad, OpenLoad, OpenLoop, ReplayLoad, StagedLoad

SECOND_NS = 1_000_000_000


class Arrival(NamedTuple):
    """An iteration and its intended start."""

    iteration: int
    due_ns: int


class Pacer(Protocol):
    """A schedule, which may depend on when iterations end."""

    def next_due_ns(self) -> int | None:
        """Give when the next is due; None: not before another one ends, or never."""

    def take(self, now_ns: int) -> Arrival | None:
        """Take the next, if it is due."""

    def ended(self, now_ns: int) -> None:
        """Note that an iteration ended."""

    def is_over(self, now_ns: int) -> bool:
        """Say that no further one will be due."""

    def end_ns(self) -> int | None:
        """Give when the last may be due, where that is known beforehand."""


def pacer(load: OpenLoop | ClosedLoad) -> Pacer:
    """Give the schedule of a load."""
    match load:
        case OpenLoad() | StagedLoad() | ReplayLoad():
            return _Open(load)
        case ClosedLoad():
            return _Closed(load)
        case _:
            assert_never(load)


class _Open:
    def __init__(self, load: OpenLoop) -> None:
        self._end_s = load.duration_s
        self._times_s = due_s(load)
        self._next = 0
        self._due_s = next(self._times_s, math.inf)

    def next_due_ns(self) -> int | None:
        return None if math.isinf(self._due_s) else round(self._due_s * SECOND_NS)

    def take(self, now_ns: int) -> Arrival | None:
        due_ns = self.next_due_ns()
        if due_ns is None or due_ns > now_ns:
            return None
        arrival = Arrival(self._next, due_ns)
        self._next += 1
        self._due_s = next(self._times_s, math.inf)
        return arrival

    def ended(self, now_ns: int) -> None:
        pass

    def is_over(self, now_ns: int) -> bool:  # noqa: ARG002  the protocol's
        return self.next_due_ns() is None

    def end_ns(self) -> int | None:
        return round(self._end_s * SECOND_NS)


class _Closed:
    def __init__(self, load: ClosedLoad) -> None:
        self._think_ns = round(load.think_s * SECOND_NS)
        self._end_ns = None if load.duration_s is None else round(load.duration_s * SECOND_NS)
        self._most = load.iterations
        self._ready = [0] * load.workers
        self._next = 0

    def next_due_ns(self) -> int | None:
        return self._ready[0] if self._ready else None

    def take(self, now_ns: int) -> Arrival | None:
        if not self._ready or self._ready[0] > now_ns or self.is_over(now_ns):
            return None
        arrival = Arrival(self._next, heapq.heappop(self._ready))
        self._next += 1
        return arrival

    def ended(self, now_ns: int) -> None:
        heapq.heappush(self._ready, now_ns + self._think_ns)

    def is_over(self, now_ns: int) -> bool:
        is_late = self._end_ns is not None and now_ns >= self._end_ns
        return is_late or (self._most is not None and self._next >= self._most)

    def end_ns(self) -> int | None:
        return self._end_ns
