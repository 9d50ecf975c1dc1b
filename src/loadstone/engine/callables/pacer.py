"""When iterations are due; the same schedules as the engine's (rust/engine/src/pacer.rs)."""

import heapq
import math
from dataclasses import dataclass
from typing import NamedTuple, Protocol, Self, assert_never

from loadstone.engine.callables.model import CallPlan
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
        """Return when the next iteration is due; None: not before another one ends, or never."""

    def take(self) -> Arrival:
        """Return the next iteration, which is due."""

    def ended(self, now_ns: int) -> None:
        """Record that an iteration ended."""

    def is_over(self, now_ns: int) -> bool:
        """Return whether no further iteration will be due."""

    def end_ns(self) -> int | None:
        """Return when the last iteration may be due, if that is known."""


# As rust/engine/src/pacer/ceiling.rs, but without its batches at high rates: how much lateness the
# generator may catch up on at once, and the tolerance between times that are computed in two ways.
CATCH_UP_NS = 10_000_000
ROUNDING_NS = 1000


@dataclass(slots=True)
class Limited:
    """A schedule with limits on rate and time.

    Iterations start at least `gap_ns` apart. An iteration that the limit delays is due when it may
    start; a late generator does not move due times.
    """

    schedule: Pacer
    gap_ns: float
    load_end_ns: int | None
    throttled: int = 0  # delayed iterations
    throttled_ns: int = 0  # sum of their delays
    _next_due_ns: float = 0.0
    _next_begin_ns: float = 0.0

    @classmethod
    def of(cls, plan: CallPlan) -> Self:
        """Return the schedule of a plan with its limits."""
        gap_ns = SECOND_NS / plan.max_rate_rps if plan.max_rate_rps else 0.0
        end_ns = None if plan.load_s is None else round(plan.load_s * SECOND_NS)
        return cls(pacer(plan.load), gap_ns, end_ns)

    def take(self, now_ns: int) -> Arrival | None:
        """Return the next iteration if it is due and may start."""
        due_ns = self.schedule.next_due_ns()
        if due_ns is None or self._begins_ns(due_ns) > now_ns or self.is_over(now_ns):
            return None
        arrival = self.schedule.take()
        permitted_ns = self._permits_ns(due_ns)
        self.throttled += permitted_ns > due_ns
        self.throttled_ns += permitted_ns - due_ns
        self._next_due_ns = max(self._next_due_ns, due_ns) + self.gap_ns
        self._next_begin_ns = max(self._next_begin_ns, due_ns, now_ns - CATCH_UP_NS) + self.gap_ns
        return Arrival(arrival.iteration, permitted_ns)

    def next_due_ns(self) -> int | None:
        """Return when the next may start; None: not before another one ends, or never."""
        due_ns = self.schedule.next_due_ns()
        return None if due_ns is None else self._begins_ns(due_ns)

    def ended(self, now_ns: int) -> None:
        """Record that an iteration ended."""
        self.schedule.ended(now_ns)

    def is_over(self, now_ns: int) -> bool:
        """Return whether no further iteration will start."""
        return self.is_out_of_time(now_ns) or self.schedule.is_over(now_ns)

    def is_out_of_time(self, now_ns: int) -> bool:
        """Return whether the time limit is reached."""
        return self.load_end_ns is not None and now_ns >= self.load_end_ns

    def asks_for_more(self, now_ns: int) -> bool:
        """Return whether the schedule has further iterations."""
        return not self.schedule.is_over(now_ns)

    def end_ns(self) -> int | None:
        """Return when the last iteration may be due, if that is known."""
        ends_ns = [self.schedule.end_ns(), self.load_end_ns]
        return min((end_ns for end_ns in ends_ns if end_ns is not None), default=None)

    def _permits_ns(self, due_ns: int) -> int:
        """Return when an iteration of the schedule is due."""
        return self._not_before(self._next_due_ns, due_ns)

    def _begins_ns(self, due_ns: int) -> int:
        """Return when it may start: later than it is due if a late generator has to catch up."""
        return self._not_before(self._next_begin_ns, self._permits_ns(due_ns))

    def _not_before(self, next_ns: float, at_ns: int) -> int:
        if not self.gap_ns or next_ns - at_ns <= ROUNDING_NS:
            return at_ns
        return math.ceil(next_ns)


def pacer(load: OpenLoop | ClosedLoad) -> Pacer:
    """Return the pacer for a load."""
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

    def take(self) -> Arrival:
        arrival = Arrival(self._next, round(self._due_s * SECOND_NS))
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

    def take(self) -> Arrival:
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
