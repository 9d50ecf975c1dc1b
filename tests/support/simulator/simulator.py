"""Measures a simulated service as the engine measures a real one."""

import heapq
from collections import deque
from dataclasses import dataclass, field
from math import inf

import numpy as np

from loadstone.analysis.alarm import Alarm
from loadstone.analysis.goal import Goal
from loadstone.analysis.model import TICK_S, Trial
from loadstone.analysis.trial import alarm, assess
from loadstone.engine.health import Health
from loadstone.engine.progress import Progress
from loadstone.engine.samples import Outcome, Samples
from loadstone.search.model import TrialRequest
from simulator.arrivals import Arrivals, arrivals
from simulator.limits import gate
from simulator.service import Service
from simulator.speed import Speed
from simulator.workers import Workers

PAUSE_S = 0.2  # between two trials
REFUSALS = {
    "reset": Outcome.RESET,
    "refused": Outcome.REFUSED,
    "status": Outcome.HTTP_STATUS,
}


@dataclass(slots=True)
class Run:
    """What happens in one trial, in seconds since its start."""

    max_connections: float = inf
    due_s: list[float] = field(default_factory=list)
    sent_s: list[float] = field(default_factory=list)
    done_s: list[float] = field(default_factory=list)
    outcome: list[int] = field(default_factory=list)
    # Those in flight: when each ends, its index.
    pending: list[tuple[float, int]] = field(default_factory=list)
    # Those due that wait for a connection, by index.
    waiting: deque[int] = field(default_factory=deque)
    ok: int = 0
    failed: int = 0

    @property
    def in_flight(self) -> int:
        """Those that are due and have not ended."""
        return len(self.pending) + len(self.waiting)

    def progress(self, at_s: float) -> Progress:
        """Show the counts as the engine shows them."""
        due = len(self.due_s)
        return Progress(at_s, due, due, self.ok, self.failed, 0.0)


class Simulator:
    """A service, its clock and its noise; `measure` is what a search is given."""

    def __init__(self, service: Service, seed: int, goal: Goal | None = None) -> None:
        work, noise, other = np.random.default_rng(seed).spawn(3)
        self._service = service
        self._workers = Workers(service, work)
        self._speed = Speed(service, noise)
        self._gate = gate(service)
        self._refusal = REFUSALS[service.refuses_with]
        # A queue time-out is noticed when it is over.
        timeout_s = service.queue_timeout_s
        self._refused_after_s = timeout_s if timeout_s < inf else 0.0
        self._random = other
        self._goal = goal or Goal()
        self._trials = 0
        self.now_s = 0.0
        self.load_s = 0.0

    @property
    def session_rps(self) -> float:
        """The capacity that the noise left so far."""
        stalled = self._service.stalls.share if self._service.stalls else 0.0
        share = self._speed.to_work(self.now_s) / self.now_s if self.now_s else 1.0
        return self._service.capacity_rps * share / (1 - stalled)

    def measure(self, ask: TrialRequest) -> Trial:
        """Run one trial on the virtual clock; outstanding requests are waited for."""
        self._trials += 1
        self.now_s += ask.pause_s
        offer = ask.spec(self._trials)
        run = Run(ask.max_connections or inf)
        source = arrivals(ask.load, self._random, all_poisson=self._service.is_poisson)
        tolerates = ask.tolerates_errors
        watch = alarm(
            ask.load,
            ask.alarm_s,
            self._goal,
            ask.settle_s,
            tolerates_errors=tolerates,
            time_left=ask.time_left,
        )
        end_s = self._play(run, source, watch, ask.load.duration_s or inf)
        until_s = inf
        if ask.time_left is not None:
            until_s = end_s + max(0.0, ask.time_left.most_s - (ask.load.duration_s or 0.0))
        self._drain(run, source, until_s)
        last_s = max(run.done_s, default=0.0)
        self.load_s += end_s
        self.now_s += max(end_s, last_s) + PAUSE_S
        return assess(offer, _samples(run, self._service), _health(last_s), self._goal)

    def _play(self, run: Run, source: Arrivals, watch: Alarm, planned_s: float) -> float:
        look_s = TICK_S
        while True:
            due_s = source.due_s
            ends_s = run.pending[0][0] if run.pending else inf
            at_s = min(due_s, ends_s)
            if at_s == inf and planned_s == inf:
                return look_s  # as many iterations as were wanted
            if at_s >= look_s:
                if look_s >= planned_s - 1e-9 or not watch(run.progress(look_s)):
                    return look_s
                look_s += TICK_S
            elif due_s < ends_s:
                self._arrive(run, source, due_s)
            else:
                self._end(run, source)

    def _drain(self, run: Run, source: Arrivals, until_s: float) -> None:
        """Wait for what is in flight, and abandon what has not ended by an instant."""
        while run.pending and run.pending[0][0] <= until_s:
            self._end(run, source)
        for index in run.waiting:
            run.sent_s[index] = -1e-9  # never
        for index in (*(index for _, index in run.pending), *run.waiting):
            run.outcome[index], run.done_s[index] = Outcome.NOT_SENT, until_s

    def _arrive(self, run: Run, source: Arrivals, due_s: float) -> None:
        run.due_s.append(due_s)
        for column in (run.sent_s, run.done_s):
            column.append(inf)
        run.outcome.append(Outcome.NOT_SENT)
        if len(run.pending) < run.max_connections:
            self._send(run, len(run.due_s) - 1, due_s)
        else:
            run.waiting.append(len(run.due_s) - 1)
        source.arrived(run.in_flight)

    def _send(self, run: Run, index: int, sent_s: float) -> None:
        delay_s = self._service.delay_s
        begin_s = self.now_s + sent_s + delay_s / 2
        wait_s = self._gate.wait_s(begin_s) if self._gate else 0.0
        departs_s = None
        if wait_s is not None:
            departs_s = self._workers.serve(self._speed.to_work(begin_s + wait_s))
        if departs_s is None:
            ends_s, outcome = sent_s + delay_s + self._refused_after_s, self._refusal
        else:
            ends_s = self._speed.to_wall(departs_s) - self.now_s + delay_s / 2
            outcome = Outcome.OK
            if self._service.error_share and self._random.random() < self._service.error_share:
                outcome = Outcome.HTTP_STATUS
        heapq.heappush(run.pending, (ends_s, index))
        run.sent_s[index], run.done_s[index], run.outcome[index] = sent_s, ends_s, outcome

    def _end(self, run: Run, source: Arrivals) -> None:
        at_s, index = heapq.heappop(run.pending)
        outcome = run.outcome[index]
        if outcome == Outcome.OK:
            run.ok += 1
        else:
            run.failed += 1
        if run.waiting:
            self._send(run, run.waiting.popleft(), at_s)
        source.ended(at_s, run.in_flight, outcome == self._refusal)


def _samples(run: Run, service: Service) -> Samples:
    done_ns = (np.array(run.done_s) * 1e9).astype(np.int64)
    order = np.argsort(done_ns, kind="stable")
    due_ns = (np.array(run.due_s) * 1e9).astype(np.int64)[order]
    sent_ns = (np.array(run.sent_s) * 1e9).astype(np.int64)[order]
    outcome = np.array(run.outcome, dtype=np.uint8)[order]
    answered = np.where(outcome == Outcome.OK, 200, 0)
    failed = 429 if service.refuses_with == "status" else 500
    return Samples(
        due_ns=due_ns,
        sent_ns=sent_ns,
        done_ns=done_ns[order],
        first_byte_us=((done_ns[order] - sent_ns) // 1000).astype(np.uint32),
        iteration=np.arange(len(run.due_s), dtype=np.uint32)[order],
        connection=np.zeros(len(run.due_s), dtype=np.uint32),
        status=np.where(outcome == Outcome.HTTP_STATUS, failed, answered).astype(np.uint16),
        outcome=outcome,
        action=np.zeros(len(run.due_s), dtype=np.uint8),
        retried=np.zeros(len(run.due_s), dtype=np.uint8),
        generator=np.zeros(len(run.due_s), dtype=np.uint16),
    )


def _health(wall_s: float) -> Health:
    return Health(0.0, 0.0, 0.0, 0.0, wall_s, 0.0, threads=1)
