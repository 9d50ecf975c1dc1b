"""One run of a crew: who makes which iteration when, and what became of it."""

import time
from array import array
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from loadstone.engine.callables.causes import LEAST_SECRET, Ended, struck, without
from loadstone.engine.callables.crew import Crew, Member, Message, refused
from loadstone.engine.callables.model import ITERATION, MOST_WORKERS, WAIT, CallPlan
from loadstone.engine.callables.pacer import SECOND_NS, Arrival, Pacer
from loadstone.engine.callables.record import Record, Row
from loadstone.engine.outcome import Outcome
from loadstone.plan.load import ClosedLoad, OpenLoop

SPARE = 4  # workers that an open loop keeps ready beside those at work
_SECRET_NAMES = ("password", "secret", "token")


@dataclass(slots=True)
class Job:
    """An iteration in the hands of a worker."""

    arrival: Arrival
    ready_ns: int  # from when on the generator alone delays it
    took_ns: int | None = None
    inside: list[tuple[str, int]] = field(default_factory=list)  # open actions, began_ns
    failed: tuple[str, str] | None = None  # the innermost action that failed last, its cause
    failed_rows: list[int] = field(default_factory=list)


@dataclass(slots=True)
class Shift:
    """The state of a run; all instants are nanoseconds since its start."""

    plan: CallPlan
    crew: Crew
    pacer: Pacer
    start_ns: int
    record: Record = field(default_factory=Record)
    waiting: deque[Arrival] = field(default_factory=deque)
    lags_ns: "array[int]" = field(default_factory=lambda: array("q"))
    due: int = 0
    ok: int = 0
    failed: int = 0
    latency_sum_ns: int = 0
    is_stopped: bool = False
    owed: int = 0  # iterations of lost workers that end, for the schedule, with their successors
    found_none: int = 0  # arrivals that waited although the user did not bound their number

    def now_ns(self) -> int:
        """Give the time since the start."""
        return time.monotonic_ns() - self.start_ns

    @property
    def most(self) -> int:
        """How many workers there may be."""
        if isinstance(self.plan.load, ClosedLoad):
            return self.plan.load.workers
        return min(self.plan.max_in_flight or MOST_WORKERS, MOST_WORKERS)

    def is_over(self) -> bool:
        """Say that nothing more will be begun."""
        return self.is_stopped or (self.pacer.is_over(self.now_ns()) and not self.waiting)

    def at_work(self) -> list[Member]:
        """Give the workers that have an iteration."""
        return [one for one in self.crew.members if one.job is not None]

    def take_up(self) -> None:
        """Take what is due, give it to whom is free, and see to it that some are."""
        if self.is_over():
            return
        while (arrival := self.pacer.take(self.now_ns())) is not None:
            self.due += 1
            self.waiting.append(arrival)
        free = self.crew.free()
        free.sort(key=lambda one: one.free_since_ns)
        for member in free:
            if not self.waiting:
                break
            self._give(member, self.waiting.popleft())
        self._recruit()

    def stop(self) -> None:
        """Begin nothing more; what waits is not sent."""
        self.is_stopped = True
        for arrival in self.waiting:
            due_ns = arrival.due_ns
            self.record.row(WAIT, Row(arrival.iteration, 0, due_ns, -1, due_ns, Outcome.NOT_SENT))
        self.waiting.clear()

    def abandon(self) -> None:
        """Give up what is under way."""
        for member in self.at_work():
            self._lose(member, Ended(Outcome.TIMED_OUT, 0, "given up at the end of the run"))

    def expire(self) -> None:
        """End the iterations that take longer than they may, each with its worker."""
        if self.plan.timeout_s is None:
            return
        limit_ns = round(self.plan.timeout_s * SECOND_NS)
        how = Ended(Outcome.TIMED_OUT, 0, f"not complete within {self.plan.timeout_s:g} s")
        for member in self.at_work():
            job: Job = member.job
            if job.took_ns is not None and self.now_ns() - job.took_ns >= limit_ns:
                self._lose(member, how)

    def wake_ns(self) -> int | None:
        """Give when something is due next: an iteration, a time-out, the schedule's end."""
        marks = [self.pacer.end_ns()]
        if not self.is_over():
            marks.append(self.pacer.next_due_ns())
        if self.plan.timeout_s is not None:
            limit_ns = round(self.plan.timeout_s * SECOND_NS)
            took = [member.job.took_ns for member in self.at_work()]
            marks.extend(at_ns + limit_ns for at_ns in took if at_ns is not None)
        now_ns = self.now_ns()
        return min((at_ns for at_ns in marks if at_ns is not None and at_ns > now_ns), default=None)

    def heard(self, member: Member, message: Message | None) -> None:
        """Note what a worker said."""
        match message:
            case None:
                self._lose(member, None)
            case ("ready",):
                self._ready(member)
            case ("refused", str(why)):
                raise refused(self.plan, why)
            case _:
                self._heard_of(member, member.job, message)

    def _heard_of(self, member: Member, job: Job, message: Message) -> None:
        match message:
            case ("took", int(at_ns)):
                self._took(member, job, at_ns - self.start_ns)
            case ("begin", str(path), int(at_ns)):
                self.record.number(path)
                job.inside.append((path, at_ns - self.start_ns))
            case ("end", str(path), int(began_ns), int(ended_ns), how):
                job.inside.pop()
                self._action(member, job, path, began_ns - self.start_ns, (ended_ns, Ended(*how)))
            case ("output", "additive" | "complete" as form, str(chart)):
                number = job.arrival.iteration
                self.record.output(number, form, struck(self._secrets(number), chart))
            case ("over", int(at_ns), how):
                self._over(member, job, at_ns - self.start_ns, Ended(*how))
                self.pacer.ended(at_ns - self.start_ns)

    def _give(self, member: Member, arrival: Arrival) -> None:
        rows = self.plan.rows
        free_ns = member.free_since_ns
        if self.plan.max_in_flight is None and isinstance(self.plan.load, OpenLoop):
            # Nobody asked for a bound: that none was free is the generator's doing.
            self.found_none += free_ns > arrival.due_ns
            free_ns = 0
        member.job = Job(arrival, max(arrival.due_ns, free_ns))
        try:
            member.pipe.send((arrival.iteration, rows[arrival.iteration % len(rows)]))
        except OSError:
            self._lose(member, None)

    def _recruit(self) -> None:
        """Start workers where there are too few; two at a time, since that takes a while."""
        wanted = len(self.at_work()) + len(self.waiting) + SPARE
        if isinstance(self.plan.load, ClosedLoad) or wanted > self.most:
            wanted = self.most
        missing = wanted - len(self.crew.members)
        if missing > 0:
            self.crew.start(min(missing, 2))

    def _ready(self, member: Member) -> None:
        if isinstance(self.plan.load, OpenLoop):
            # It counts as free all along: that it was started late is the generator's doing.
            self.crew.ready(member, 0)
            return
        now_ns = self.now_ns()
        self.crew.ready(member, now_ns)
        if self.owed:
            self.owed -= 1
            self.pacer.ended(now_ns)

    def _took(self, member: Member, job: Job, at_ns: int) -> None:
        job.took_ns = at_ns
        self.lags_ns.append(max(at_ns - job.ready_ns, 0))
        due_ns = job.arrival.due_ns
        self.record.row(WAIT, Row(job.arrival.iteration, member.slot, due_ns, at_ns, at_ns))

    def _action(
        self, member: Member, job: Job, path: str, began_ns: int, end: tuple[int, Ended]
    ) -> None:
        ended_ns, how = end
        if how.outcome != Outcome.OK and (job.failed is None or job.failed[1] != how.cause):
            job.failed = (path, how.cause)
        if how.outcome != Outcome.OK:
            job.failed_rows.append(len(self.record))
        self.record.row(
            path,
            Row(
                job.arrival.iteration,
                member.slot,
                began_ns,
                began_ns,
                ended_ns - self.start_ns,
                how.outcome,
                how.status,
            ),
        )

    def _over(self, member: Member, job: Job, at_ns: int, how: Ended) -> None:
        arrival = job.arrival
        sent_ns = arrival.due_ns if job.took_ns is None else job.took_ns
        self.record.row(
            ITERATION,
            Row(
                arrival.iteration,
                member.slot,
                arrival.due_ns,
                sent_ns,
                at_ns,
                how.outcome,
                how.status,
            ),
        )
        if how.outcome == Outcome.OK:
            self.ok += 1
            # The function met the failure itself: the iteration did what it was to do.
            self.record.forgive(job.failed_rows)
        else:
            self._failed(job, how)
        self.latency_sum_ns += at_ns - arrival.due_ns
        member.job, member.free_since_ns = None, at_ns

    def _failed(self, job: Job, how: Ended) -> None:
        self.failed += 1
        number = job.arrival.iteration
        action, cause = job.failed or (ITERATION, how.cause)
        if cause != how.cause:
            # An exception that the function caught is no reason of the iteration.
            action = ITERATION
        self.record.failure(action, without(self._secrets(number), how.cause), number)

    def _secrets(self, number: int) -> list[str]:
        row = self.plan.rows[number % len(self.plan.rows)]
        return _secrets((self.plan.settings, row, self.plan.arguments))

    def _lose(self, member: Member, why: Ended | None) -> None:
        """Bury a worker, with what it was at; `why` is given where we end it."""
        job: Job | None = member.job
        was_ready = member.is_ready
        code = self.crew.drop(member)
        how = why or Ended(Outcome.WORKER_DIED, 0, f"the worker process ended ({_word(code)})")
        if not was_ready and why is None:
            raise refused(self.plan, how.cause)
        if job is None:
            return
        now_ns = self.now_ns()
        if job.took_ns is None:
            self._took(member, job, now_ns)
        for path, began_ns in reversed(job.inside):
            self._action(member, job, path, began_ns, (now_ns + self.start_ns, how))
        self._over(member, job, now_ns, how)
        self.owed += 1


def _word(code: int | None) -> str:
    return f"signal {-code}" if code is not None and code < 0 else f"exit code {code}"


def _secrets(mappings: Iterable[Mapping[str, object]]) -> list[str]:
    return [
        value
        for mapping in mappings
        for name, value in mapping.items()
        if isinstance(value, str)
        and len(value) >= LEAST_SECRET
        and any(word in name.lower() for word in _SECRET_NAMES)
    ]
