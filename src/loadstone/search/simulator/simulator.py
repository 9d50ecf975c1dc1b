"""Measures a simulated service as the engine measures a real one."""

import heapq
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
from loadstone.search.model import Ask
from loadstone.search.simulator.arrivals import Arrivals, arrivals
from loadstone.search.simulator.service import Service
from loadstone.search.simulator.speed import Speed
from loadstone.search.simulator.workers import Workers

PAUSE_S = 0.2  # between two trials


@dataclass(slots=True)
class Run:
    """What happens in one trial, in seconds since its start."""

    due_s: list[float] = field(default_factory=list)
    done_s: list[float] = field(default_factory=list)
    outcome: list[int] = field(default_factory=list)
    # Those in flight: when each ends, its index.
    pending: list[tuple[float, int]] = field(default_factory=list)
    ok: int = 0
    failed: int = 0

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

    def measure(self, ask: Ask) -> Trial:
        """Run one trial on the virtual clock; outstanding requests are waited for."""
        self._trials += 1
        self.now_s += ask.pause_s
        offer = ask.offer(self._trials)
        run = Run()
        source = arrivals(ask.load, self._random, all_poisson=self._service.is_poisson)
        watch = alarm(ask.load, ask.alarm_s, self._goal)
        end_s = self._play(run, source, watch, offer.planned_s)
        last_s = max(run.done_s, default=0.0)
        self.load_s += end_s
        self.now_s += max(end_s, last_s) + PAUSE_S
        return assess(offer, _samples(run), _health(last_s), self._goal)

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

    def _arrive(self, run: Run, source: Arrivals, due_s: float) -> None:
        started_s = self.now_s
        departs_s = self._workers.serve(self._speed.to_work(started_s + due_s))
        if departs_s is None:
            ends_s, outcome = due_s, Outcome.RESET
        else:
            ends_s, outcome = self._speed.to_wall(departs_s) - started_s, Outcome.OK
            if self._service.error_share and self._random.random() < self._service.error_share:
                outcome = Outcome.HTTP_STATUS
        heapq.heappush(run.pending, (ends_s, len(run.due_s)))
        run.due_s.append(due_s)
        run.done_s.append(ends_s)
        run.outcome.append(outcome)
        source.arrived(len(run.pending))

    @staticmethod
    def _end(run: Run, source: Arrivals) -> None:
        at_s, index = heapq.heappop(run.pending)
        outcome = run.outcome[index]
        if outcome == Outcome.OK:
            run.ok += 1
        else:
            run.failed += 1
        source.ended(at_s, len(run.pending), outcome == Outcome.RESET)


def _samples(run: Run) -> Samples:
    done_ns = (np.array(run.done_s) * 1e9).astype(np.int64)
    order = np.argsort(done_ns, kind="stable")
    due_ns = (np.array(run.due_s) * 1e9).astype(np.int64)[order]
    outcome = np.array(run.outcome, dtype=np.uint8)[order]
    answered = np.where(outcome == Outcome.OK, 200, 0)
    return Samples(
        due_ns=due_ns,
        sent_ns=due_ns,
        done_ns=done_ns[order],
        first_byte_us=((done_ns[order] - due_ns) // 1000).astype(np.uint32),
        iteration=np.arange(len(run.due_s), dtype=np.uint32)[order],
        connection=np.zeros(len(run.due_s), dtype=np.uint16),
        status=np.where(outcome == Outcome.HTTP_STATUS, 500, answered).astype(np.uint16),
        outcome=outcome,
        action=np.zeros(len(run.due_s), dtype=np.uint8),
    )


def _health(wall_s: float) -> Health:
    return Health(0.0, 0.0, 0.0, 0.0, wall_s, 0.0, threads=1)
