"""A load on a simulated service, event by event."""

import heapq
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import inf

import numpy as np

from loadstone.engine.progress import Progress
from loadstone.engine.samples import Outcome, Samples
from loadstone.plan.load import Load
from simulator.arrivals import Arrivals, arrivals
from simulator.limits import Buckets, gate
from simulator.service import Service
from simulator.speed import Speed
from simulator.workers import Workers

REFUSALS = {
    "reset": Outcome.RESET,
    "refused": Outcome.REFUSED,
    "status": Outcome.HTTP_STATUS,
}


@dataclass(frozen=True, slots=True)
class Sent:
    """What is sent: a load of iterations of so many requests, within the engine's limits."""

    load: Load
    statuses: tuple[int, ...] = (200,)  # expected of each request of an iteration
    max_connections: float = inf
    max_rate_rps: float = inf  # iterations begun
    load_s: float = inf  # ends the load before its schedule does
    request_timeout_s: float = inf
    drain_s: float = inf  # after the schedule; whatever is not answered by then is abandoned
    lag_s: float = 0.0  # every send is late by this: a busy generator

    @property
    def schedule_s(self) -> float:
        """How long iterations are started."""
        return min(self.load.duration_s or inf, self.load_s)


@dataclass(slots=True)
class Played:
    """What happened in one load, in seconds since its start; a row for each request."""

    sent: Sent
    due_s: list[float] = field(default_factory=list)
    sent_s: list[float] = field(default_factory=list)
    done_s: list[float] = field(default_factory=list)
    outcome: list[int] = field(default_factory=list)
    iteration: list[int] = field(default_factory=list)
    rows: list[list[int]] = field(default_factory=list)  # of each iteration
    action: list[int] = field(default_factory=list)
    # Requests in flight: when each ends, its row.
    pending: list[tuple[float, int]] = field(default_factory=list)
    # Iterations due that wait for a connection: the row of their first request.
    waiting: deque[int] = field(default_factory=deque)
    ended: list[int] = field(default_factory=list)  # iterations since the last progress
    begun: int = 0  # iterations
    ok: int = 0
    failed: int = 0
    throttled: int = 0
    throttled_s: float = 0.0
    free_s: float = 0.0  # the rate ceiling lets no iteration begin before this
    latency_s: float = 0.0  # sum over the iterations that ended since the last progress
    end_s: float = 0.0  # of the schedule

    @property
    def in_flight(self) -> int:
        """Iterations that are due and have not ended."""
        return len(self.pending) + len(self.waiting)

    @property
    def last_s(self) -> float:
        """When the last request ended."""
        return max(self.done_s, default=0.0)

    @property
    def is_whole(self) -> bool:
        """Whether as many iterations have begun as the load has, if it has a number of them."""
        return self.begun == getattr(self.sent.load, "iterations", None)

    @property
    def is_cut_short(self) -> bool:
        """Whether the engine's limit on the load time ended it before its schedule did."""
        is_over = self.is_whole or (self.sent.load.duration_s or inf) <= self.sent.load_s
        return not is_over and self.end_s >= self.sent.load_s - 1e-9

    def progress(self, at_s: float) -> Progress:
        """Return the counts, as the engine reports them."""
        mean_ms = 1000 * self.latency_s / len(self.ended) if self.ended else 0.0
        return Progress(at_s, self.begun, len(self.due_s), self.ok, self.failed, mean_ms)

    def add(self, later: "Played", at_s: float) -> None:
        """Add the requests of a load that began after so many seconds."""
        self.due_s += [at_s + one for one in later.due_s]
        self.sent_s += [at_s + one for one in later.sent_s]
        self.done_s += [at_s + one for one in later.done_s]
        self.iteration += [self.begun + one for one in later.iteration]
        self.outcome += later.outcome
        self.action += later.action
        self.begun += later.begun

    def samples(self, refused_with: int, rows: Sequence[int] | None = None) -> Samples:
        """Return the sample table, or those of its rows, in the order of completion."""
        chosen = sorted(
            range(len(self.due_s)) if rows is None else rows, key=self.done_s.__getitem__
        )
        done_ns, sent_ns = _ns(self.done_s, chosen), _ns(self.sent_s, chosen)
        outcome = np.array([self.outcome[row] for row in chosen], dtype=np.uint8)
        action = np.array([self.action[row] for row in chosen], dtype=np.uint8)
        expected = np.array(self.sent.statuses, dtype=np.uint16)[action]
        status = np.where(outcome == Outcome.OK, expected, 0)
        nothing = np.zeros(len(chosen))
        return Samples(
            due_ns=_ns(self.due_s, chosen),
            sent_ns=sent_ns,
            done_ns=done_ns,
            first_byte_us=((done_ns - sent_ns) // 1000).astype(np.uint32),
            iteration=np.array([self.iteration[row] for row in chosen], dtype=np.uint32),
            connection=nothing.astype(np.uint32),
            status=np.where(outcome == Outcome.HTTP_STATUS, refused_with, status).astype(np.uint16),
            outcome=outcome,
            action=action,
            retried=nothing.astype(np.uint8),
            generator=nothing.astype(np.uint16),
        )


def _ns(seconds: list[float], rows: Sequence[int]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return (np.array([seconds[row] for row in rows], dtype=np.float64) * 1e9).astype(np.int64)


class SimulatedService:
    """A service with its noise, which goes on from load to load."""

    def __init__(
        self, service: Service, seed: int, is_away: Callable[[], bool] = lambda: False
    ) -> None:
        work, noise, other = np.random.default_rng(seed).spawn(3)
        self.service = service
        self._is_away = is_away  # refuses connections, as where nothing listens
        self.speed = Speed(service, noise)
        self._workers = Workers(service, work)
        self._gate = gate(service)
        self._refusal = REFUSALS[service.refuses_with]
        # A queue time-out is noticed when it is over.
        timeout_s = service.queue_timeout_s
        self._refused_after_s = timeout_s if timeout_s < inf else 0.0
        self._random = other
        self._is_restarted = False

    def use_share_of_users(self, share: float) -> None:
        """Send the next loads by a share of the users, if a limiter tells users apart."""
        if isinstance(self._gate, Buckets):
            self._gate.users_share = share

    @property
    def refused_with(self) -> int:
        """The status of a response that is none of those expected."""
        return 429 if self.service.refuses_with == "status" else 500

    def slower(self, now_s: float) -> float:
        """Return the present factor of the service times, as a mean over requests."""
        return self._workers.mean_slower(self.speed.to_work(now_s))

    def play(
        self, sent: Sent, now_s: float, tick_s: float, goes_on: Callable[[float, Played], bool]
    ) -> Played:
        """Play a load that starts at `now_s`, and wait for outstanding requests.

        `goes_on` is called every `tick_s`, with the seconds since the start; False ends the load.
        """
        run = Played(sent)
        source = arrivals(sent.load, self._random, all_poisson=self.service.is_poisson)
        run.end_s = self._schedule(run, source, now_s, tick_s, goes_on)
        until_s = run.end_s + sent.drain_s
        while run.pending and run.pending[0][0] <= until_s:
            self._end(run, source, now_s)
        _abandon(run, until_s)
        return run

    def _schedule(
        self,
        run: Played,
        source: Arrivals,
        now_s: float,
        tick_s: float,
        goes_on: Callable[[float, Played], bool],
    ) -> float:
        planned_s, look_s, looks = run.sent.schedule_s, tick_s, 1
        while True:
            due_s = source.due_s
            ends_s = run.pending[0][0] if run.pending else inf
            at_s = min(due_s, ends_s)
            if at_s == inf and run.is_whole:
                return run.last_s  # as many iterations as were wanted
            if at_s >= look_s:
                if look_s >= planned_s - 1e-9 or not goes_on(look_s, run):
                    return look_s
                looks += 1
                look_s = looks * tick_s
            elif due_s < ends_s:
                self._arrive(run, source, due_s, now_s)
            else:
                self._end(run, source, now_s)

    def _arrive(self, run: Played, source: Arrivals, due_s: float, now_s: float) -> None:
        row = _new_row(run, due_s, run.begun, 0)
        run.begun += 1
        if len(run.pending) < run.sent.max_connections:
            self._begin(run, row, due_s, now_s)
        else:
            run.waiting.append(row)
        source.arrived(run.in_flight)

    def _begin(self, run: Played, row: int, at_s: float, now_s: float) -> None:
        sent_s = max(at_s, run.free_s)
        if sent_s > at_s:
            run.throttled += 1
            run.throttled_s += sent_s - at_s
        run.free_s = sent_s + 1 / run.sent.max_rate_rps
        self._send(run, row, sent_s + run.sent.lag_s, now_s)

    def _send(self, run: Played, row: int, sent_s: float, now_s: float) -> None:
        ends_s, outcome = self._answered(sent_s, now_s)
        if ends_s - sent_s > run.sent.request_timeout_s:
            ends_s, outcome = sent_s + run.sent.request_timeout_s, Outcome.FIRST_BYTE_TIMEOUT
        heapq.heappush(run.pending, (ends_s, row))
        run.sent_s[row], run.done_s[row], run.outcome[row] = sent_s, ends_s, outcome

    def _answered(self, sent_s: float, now_s: float) -> tuple[float, Outcome]:
        service = self.service
        delay_s = service.delay_s
        begin_s = now_s + sent_s + delay_s / 2
        if self._is_away():
            return sent_s + delay_s, Outcome.REFUSED
        outage = service.outage
        if outage is not None and begin_s >= outage.at_s:
            if begin_s < outage.back_at_s:
                return sent_s + delay_s, Outcome.REFUSED
            if not self._is_restarted:
                self._is_restarted = True
                self._workers.restart(self.speed.to_work(outage.back_at_s))
        wait_s = self._gate.wait_s(begin_s) if self._gate else 0.0
        departs_s = None
        if wait_s is not None:
            departs_s = self._workers.serve(self.speed.to_work(begin_s + wait_s))
        if departs_s is None:
            return sent_s + delay_s + self._refused_after_s, self._refusal
        ends_s = self.speed.to_wall(departs_s) - now_s + delay_s / 2
        if outage is not None and begin_s < outage.at_s < now_s + ends_s:
            return outage.at_s - now_s, Outcome.RESET
        if service.error_share and self._random.random() < service.error_share:
            return ends_s, Outcome.HTTP_STATUS
        return ends_s, Outcome.OK

    def _end(self, run: Played, source: Arrivals, now_s: float) -> None:
        at_s, row = heapq.heappop(run.pending)
        outcome, iteration, later = run.outcome[row], run.iteration[row], run.action[row] + 1
        if outcome == Outcome.OK and later < len(run.sent.statuses):
            self._send(run, _new_row(run, at_s, iteration, later), at_s, now_s)
            return
        if outcome == Outcome.OK:
            run.ok += 1
        else:
            run.failed += 1
        run.ended.append(iteration)
        run.latency_s += at_s - run.due_s[row]
        if run.waiting:
            self._begin(run, run.waiting.popleft(), at_s, now_s)
        source.ended(at_s, run.in_flight, outcome in (self._refusal, Outcome.REFUSED))


def _abandon(run: Played, at_s: float) -> None:
    """End the requests that are left as requests that were cut off."""
    for row in run.waiting:
        run.sent_s[row] = -1e-9  # never
    for row in (*(row for _, row in run.pending), *run.waiting):
        run.outcome[row], run.done_s[row] = Outcome.NOT_SENT, at_s


def _new_row(run: Played, due_s: float, iteration: int, action: int) -> int:
    run.due_s.append(due_s)
    run.sent_s.append(inf)
    run.done_s.append(inf)
    run.outcome.append(Outcome.NOT_SENT)
    run.iteration.append(iteration)
    run.action.append(action)
    if action == 0:
        run.rows.append([])
    run.rows[iteration].append(len(run.due_s) - 1)
    return len(run.due_s) - 1
