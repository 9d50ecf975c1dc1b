"""Dispatches iterations to workers and records their results."""

import time
from array import array
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field

from loadstone.engine.callables.causes import IterationEnd, struck, without
from loadstone.engine.callables.model import ITERATION, MOST_WORKERS, PAUSE, WAIT, CallPlan
from loadstone.engine.callables.pacer import SECOND_NS, Arrival, Limited
from loadstone.engine.callables.recorder import SampleRecorder, SampleRow
from loadstone.engine.callables.workers import Message, Worker, WorkerPool
from loadstone.engine.outcome import Outcome
from loadstone.errors import InvalidInput
from loadstone.plan.load import ClosedLoad, OpenLoop
from loadstone.system.redaction import LEAST_CHARACTERS, is_secret, secrets_in

SPARE = 4  # idle workers that an open loop keeps ready
# Workers that end in a row before they are ready, during the load: one that dies for lack of memory
# is replaced; a function that cannot be loaded any more ends the load.
MOST_FAILED_STARTS = 5


@dataclass(slots=True)
class RunningIteration:
    """An iteration that a worker runs."""

    arrival: Arrival
    ready_ns: int  # from here on only the generator delays it
    took_ns: int | None = None
    idle_ns: int = 0  # in pauses, which are not latency
    inside: list[tuple[str, int]] = field(default_factory=list)  # open actions, began_ns
    failed: tuple[str, str] | None = None  # the innermost action that failed last, and its cause
    failed_rows: list[int] = field(default_factory=list)


@dataclass(slots=True)
class Dispatcher:
    """State of a run; times are nanoseconds since its start."""

    plan: CallPlan
    pool: WorkerPool
    pacer: Limited
    start_ns: int
    recorder: SampleRecorder = field(default_factory=SampleRecorder)
    waiting: deque[Arrival] = field(default_factory=deque)
    lags_ns: "array[int]" = field(default_factory=lambda: array("q"))
    due: int = 0
    ok: int = 0
    failed: int = 0
    cut_off: int = 0  # not run, or not to their end, because the run ended
    latency_sum_ns: int = 0
    is_stopped: bool = False
    pending_replacements: int = (
        0  # iterations of lost workers; for the schedule they end when a replacement is ready
    )
    is_cut_short: bool = False  # by the limit on the load's time
    secrets: list[str] = field(init=False, repr=False)  # of the settings and arguments
    starved: int = 0  # arrivals that waited although the user set no limit
    has_begun: bool = False
    failed_starts: int = 0  # in a row, during the load
    ended_by: str = ""  # the last failed start, if these ended the load

    def __post_init__(self) -> None:
        known = secrets_in([dict(self.plan.settings), dict(self.plan.arguments)])
        self.secrets = _long(known)

    def begin(self) -> None:
        """Start the load: times count from here on."""
        self.start_ns = time.monotonic_ns()
        self.has_begun = True
        # They became ready before. A time in the future would hide how late they start.
        for worker in self.pool.workers:
            worker.free_since_ns = 0

    def now_ns(self) -> int:
        """Return the time since the start."""
        return time.monotonic_ns() - self.start_ns

    @property
    def most(self) -> int:
        """Return the maximum number of workers."""
        if isinstance(self.plan.load, ClosedLoad):
            return self.plan.load.workers
        return min(self.plan.max_in_flight or MOST_WORKERS, MOST_WORKERS)

    def is_over(self) -> bool:
        """Return whether no further iteration will start."""
        return self.is_stopped or (self.pacer.is_over(self.now_ns()) and not self.waiting)

    def busy(self) -> list[Worker]:
        """Return the workers that run an iteration."""
        return [one for one in self.pool.workers if one.job is not None]

    def dispatch(self) -> None:
        """Assign due iterations to free workers, and start more workers if needed."""
        if self.pacer.is_out_of_time(self.now_ns()) and not self.is_stopped:
            self.is_cut_short = self.pacer.asks_for_more(self.now_ns()) or bool(self.waiting)
            self.stop()
        if self.is_over():
            return
        while (arrival := self.pacer.take(self.now_ns())) is not None:
            self.due += 1
            self.waiting.append(arrival)
        free = self.pool.free()
        free.sort(key=lambda one: one.free_since_ns)
        for worker in free:
            if not self.waiting:
                break
            self._assign(worker, self.waiting.popleft())
        self._scale_up()

    def stop(self) -> None:
        """Start no more iterations; waiting ones are not run."""
        self.is_stopped = True
        for arrival in self.waiting:
            due_ns = arrival.due_ns
            self.recorder.row(
                WAIT, SampleRow(arrival.iteration, 0, due_ns, -1, due_ns, Outcome.NOT_SENT)
            )
        self.cut_off += len(self.waiting)
        self.waiting.clear()

    def abandon(self) -> None:
        """Cut off running iterations, because the user ends the run: none of them has failed."""
        for worker in self.busy():
            self._lose(worker, IterationEnd(Outcome.NOT_SENT))

    def give_up(self) -> None:
        """End iterations that did not end in the time after the load: each of them has failed."""
        cause = f"not complete within {self.plan.drain_s:g} s after the load"
        for worker in self.busy():
            self._lose(worker, IterationEnd(Outcome.TIMED_OUT, 0, cause))

    def expire(self) -> None:
        """End iterations that exceed their time-out, each with its worker."""
        if self.plan.timeout_s is None:
            return
        limit_ns = round(self.plan.timeout_s * SECOND_NS)
        how = IterationEnd(Outcome.TIMED_OUT, 0, f"not complete within {self.plan.timeout_s:g} s")
        for worker in self.busy():
            job: RunningIteration = worker.job
            if job.took_ns is not None and self.now_ns() - job.took_ns >= limit_ns:
                self._lose(worker, how)

    def wake_ns(self) -> int | None:
        """Return the next time at which something is due: iteration, time-out, end of schedule.

        An iteration may have become due since the last look, so its time may be past.
        """
        marks = [self.pacer.end_ns()]
        if self.plan.timeout_s is not None:
            limit_ns = round(self.plan.timeout_s * SECOND_NS)
            took = [worker.job.took_ns for worker in self.busy()]
            marks.extend(at_ns + limit_ns for at_ns in took if at_ns is not None)
        now_ns = self.now_ns()
        ahead = [at_ns for at_ns in marks if at_ns is not None and at_ns > now_ns]
        due_ns = None if self.is_over() else self.pacer.next_due_ns()
        return min(ahead if due_ns is None else [*ahead, due_ns], default=None)

    def handle(self, worker: Worker, message: Message | None) -> None:
        """Handle a message from a worker."""
        match message:
            case None:
                self._lose(worker, None)
            case ("ready",):
                self._ready(worker)
            case ("refused", str(why)):
                self.pool.drop(worker)
                self._failed_start(why)
            case ("beyond", str(address)):
                raise InvalidInput(
                    f"{self.plan.function} tried to connect to {address}, which is not this "
                    "machine, and load may harm it; if you may load it, add "
                    "--yes-load-this-target"
                )
            case _:
                self._handle_iteration(worker, worker.job, message)

    def _handle_iteration(self, worker: Worker, job: RunningIteration, message: Message) -> None:
        match message:
            case ("took", int(at_ns)):
                self._begin_iteration(worker, job, at_ns - self.start_ns)
            case ("begin", str(path), int(at_ns)):
                self.recorder.number(path)
                job.inside.append((path, at_ns - self.start_ns))
            case ("end", str(path), int(began_ns), int(ended_ns), how):
                job.inside.pop()
                self._action(
                    worker, job, path, began_ns - self.start_ns, (ended_ns, IterationEnd(*how))
                )
            case ("output", "additive" | "complete" as form, str(chart)):
                number = job.arrival.iteration
                self.recorder.output(number, form, struck(self._secrets(number), chart))
            case ("over", int(at_ns), how):
                self._end_iteration(worker, job, at_ns - self.start_ns, IterationEnd(*how))
                self.pacer.ended(at_ns - self.start_ns)

    def _assign(self, worker: Worker, arrival: Arrival) -> None:
        rows = self.plan.rows
        free_ns = worker.free_since_ns
        if self.plan.max_in_flight is None and isinstance(self.plan.load, OpenLoop):
            # The user set no limit, so a lack of workers is the generator's fault.
            self.starved += free_ns > arrival.due_ns
            free_ns = 0
        worker.job = RunningIteration(arrival, max(arrival.due_ns, free_ns))
        try:
            worker.pipe.send((arrival.iteration, rows[arrival.iteration % len(rows)]))
        except OSError:
            self._lose(worker, None)

    def _scale_up(self) -> None:
        """Start workers if there are too few; two at a time, because starting takes a while."""
        wanted = len(self.busy()) + len(self.waiting) + SPARE
        if isinstance(self.plan.load, ClosedLoad) or wanted > self.most:
            wanted = self.most
        missing = wanted - len(self.pool.workers)
        if missing > 0:
            self.pool.start(min(missing, 2))

    def _failed_start(self, cause: str) -> None:
        """Refuse a function that cannot be loaded; during the load, keep what was measured."""
        if not self.has_begun:
            raise InvalidInput(f"{self.plan.function} cannot be loaded: {cause}")
        self.failed_starts += 1
        if self.failed_starts == MOST_FAILED_STARTS:
            self.ended_by = without(self.secrets, cause)
            self.stop()

    def _ready(self, worker: Worker) -> None:
        self.failed_starts = 0
        if isinstance(self.plan.load, OpenLoop):
            # It counts as free from the start: a late start is the generator's fault.
            self.pool.ready(worker, 0)
            return
        now_ns = self.now_ns()
        self.pool.ready(worker, now_ns)
        if self.pending_replacements:
            self.pending_replacements -= 1
            self.pacer.ended(now_ns)

    def _begin_iteration(self, worker: Worker, job: RunningIteration, at_ns: int) -> None:
        job.took_ns = at_ns
        self.lags_ns.append(max(at_ns - job.ready_ns, 0))
        due_ns = job.arrival.due_ns
        self.recorder.row(WAIT, SampleRow(job.arrival.iteration, worker.slot, due_ns, at_ns, at_ns))

    def _action(
        self,
        worker: Worker,
        job: RunningIteration,
        path: str,
        began_ns: int,
        end: tuple[int, IterationEnd],
    ) -> None:
        ended_ns, how = end
        if path == PAUSE:
            job.idle_ns += ended_ns - self.start_ns - began_ns
        is_failed = how.outcome not in (Outcome.OK, Outcome.NOT_SENT)
        if is_failed and (job.failed is None or job.failed[1] != how.cause):
            job.failed = (path, how.cause)
        if is_failed:
            job.failed_rows.append(len(self.recorder))
        self.recorder.row(
            path,
            SampleRow(
                job.arrival.iteration,
                worker.slot,
                began_ns,
                began_ns,
                ended_ns - self.start_ns,
                how.outcome,
                how.status,
            ),
        )

    def _end_iteration(
        self, worker: Worker, job: RunningIteration, at_ns: int, how: IterationEnd
    ) -> None:
        arrival = job.arrival
        sent_ns = arrival.due_ns if job.took_ns is None else job.took_ns
        self.recorder.row(
            ITERATION,
            SampleRow(
                arrival.iteration,
                worker.slot,
                arrival.due_ns,
                sent_ns,
                at_ns,
                how.outcome,
                how.status,
            ),
        )
        worker.job, worker.free_since_ns = None, at_ns
        if how.outcome in (Outcome.OK, Outcome.NOT_SENT):
            # The function handled the failure itself: the iteration has not failed.
            self.recorder.mark_caught(job.failed_rows)
        match how.outcome:
            case Outcome.OK:
                self.ok += 1
            case Outcome.NOT_SENT:
                self.cut_off += 1
                return
            case _:
                self._failed(job, how)
        self.latency_sum_ns += at_ns - arrival.due_ns - job.idle_ns

    def _failed(self, job: RunningIteration, how: IterationEnd) -> None:
        self.failed += 1
        number = job.arrival.iteration
        action, cause = job.failed or (ITERATION, how.cause)
        if cause != how.cause:
            # An exception that the function caught is not the iteration's cause of failure.
            action = ITERATION
        cause = without(self._secrets(number), how.cause)
        self.recorder.failure(action, how._replace(cause=cause), number)

    def _secrets(self, number: int) -> list[str]:
        row = self.plan.rows[number % len(self.plan.rows)]
        return [*self.secrets, *_long(v for name, v in row.items() if is_secret(name))]

    def _lose(self, worker: Worker, why: IterationEnd | None) -> None:
        """Remove a worker and its iteration; `why` is set if we end it."""
        job: RunningIteration | None = worker.job
        was_ready = worker.is_ready
        code = self.pool.drop(worker)
        how = why or IterationEnd(
            Outcome.WORKER_DIED, 0, f"the worker process ended ({_word(code)})"
        )
        if not was_ready:
            self._failed_start(how.cause)
        if job is None:
            return
        now_ns = self.now_ns()
        if job.took_ns is None:
            self._begin_iteration(worker, job, now_ns)
        for path, began_ns in reversed(job.inside):
            self._action(worker, job, path, began_ns, (now_ns + self.start_ns, how))
        self._end_iteration(worker, job, now_ns, how)
        self.pending_replacements += 1


def _word(code: int | None) -> str:
    return f"signal {-code}" if code is not None and code < 0 else f"exit code {code}"


def _long(secrets: Iterable[str]) -> list[str]:
    # Numbers could be part of a chart; the store compares strings only.
    found = {one for one in secrets if len(one) >= LEAST_CHARACTERS and not one.isdecimal()}
    return sorted(found, key=len, reverse=True)
