"""Ten families of services by someone who did not look at the search.

Each is a whole model of a service: it draws the work of each request itself, mirrors `Workers`, and
returns the factor that makes the request depart when the model says so. `Service.capacity_rps` is
nominal here; `lasting_rps` returns N.
"""

import copy
import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from heapq import heapify, heappop, heappush, heapreplace
from math import exp
from typing import Any

import numpy as np

from simulator.service import Service
from simulator.workers import Workers

Random = np.random.Generator
DRAWN_AT_ONCE = 1024
SATURATED = 150_000  # requests of a simulated N
WARMING = 15_000  # of them, at first
WAITING = 8
LEAKS = 100_000  # of a simulated reaper
CYCLES = 20  # of a simulated machine that gets hot


@dataclass
class Machine:
    """A first come, first served service with `places`; a pace that decides all departures."""

    seed: int
    places: int  # Service.workers
    nominal_s: float  # service time that Workers takes, to which the factor is applied
    work_s: float  # mean seconds of work of a request
    variation: float
    free_s: list[float] = field(init=False)  # mirrors Workers
    random: Random = field(init=False)
    drawn: list[float] = field(init=False, default_factory=list)

    def __post_init__(self) -> None:
        """Begin with all places free."""
        self.free_s = [0.0] * self.places
        self.random = np.random.default_rng(self.seed)
        self.begin()

    def __copy__(self) -> "Machine":
        """Return a machine of its own: Workers copies the pace of a service."""
        return copy.deepcopy(self)

    def begin(self) -> None:
        """Set up what a family needs."""

    def slower(self, at_s: float, inside: int, served: int) -> float:  # noqa: ARG002
        """Return the factor with which the request departs when it should."""
        begin_s = max(at_s, self.free_s[0])
        departs_s = self.departs(begin_s)
        heapreplace(self.free_s, departs_s)
        return (departs_s - begin_s) / self.nominal_s

    def departs(self, begin_s: float) -> float:
        """Say when the request that gets a place at `begin_s` (never decreasing) departs."""
        raise NotImplementedError

    def work(self) -> float:
        """Draw the seconds of work of a request."""
        if not self.drawn:
            self.drawn = lognormal(self.random, self.work_s, self.variation, DRAWN_AT_ONCE).tolist()
        return self.drawn.pop()


def lognormal(random: Random, mean: float, variation: float, count: int) -> np.ndarray:
    """Draw positive numbers."""
    sigma = math.sqrt(math.log1p(variation**2))
    return mean * np.exp(random.normal(-(sigma**2) / 2, sigma, count))


def busy_s(free_s: list[float], since_s: float, until_s: float) -> float:
    """Return the seconds for which workers are busy in a time in which none begins anew."""
    passed_s = until_s - since_s
    return sum(min(max(one - since_s, 0.0), passed_s) for one in free_s)


@dataclass
class Respawn(Machine):
    """Each worker process is replaced after so many requests, which takes seconds."""

    most: int = 100
    jitter: float = 0.0  # each process ends after most * (1 - jitter) to most requests
    start_s: float = 1.0
    is_together: bool = True  # processes are of one age when the session begins
    workers: list[tuple[float, int, int]] = field(init=False)  # free at, number, requests left

    def begin(self) -> None:
        """Draw how many requests each process has left."""
        ages = self.random.uniform(0, 1, self.places)
        if self.is_together:
            ages[:] = ages[0]
        lives = [max(1, math.ceil(self.life() * (1 - age))) for age in ages]
        self.workers = [(0.0, number, life) for number, life in enumerate(lives)]

    def life(self) -> int:
        """Draw the requests of a process."""
        least = max(1, round(self.most * (1 - self.jitter)))
        return int(self.random.integers(least, self.most + 1))

    @property
    def mean_life(self) -> float:
        """Requests that a process serves in the mean."""
        return (max(1, round(self.most * (1 - self.jitter))) + self.most) / 2

    def departs(self, begin_s: float) -> float:
        """Serve it by the process that is free first."""
        free_s, number, left = self.workers[0]
        departs_s = max(begin_s, free_s) + self.work()
        ready_s, left = departs_s, left - 1
        if left == 0:
            ready_s, left = departs_s + self.start_s, self.life()
        heapreplace(self.workers, (ready_s, number, left))
        return departs_s

    def n_rps(self) -> float:
        """Return N: a process serves its requests, then starts."""
        return self.places / (self.work_s + self.start_s / self.mean_life)


def _respawn(service: Service, random: Random) -> Service:
    """N = workers / (work + start / requests of a process): one value."""
    work_s = service.workers / service.capacity_rps
    cycle_s = _between(random, 10.0, 120.0)
    start_s = min(_between(random, 0.5, 6.0), 0.3 * cycle_s)
    jitter = float(random.choice([0.0, random.uniform(0.05, 0.5)]))
    return _made(
        service, random, Respawn, work_s,
        most=max(20, round(cycle_s / work_s)),
        jitter=jitter,
        start_s=start_s,
        is_together=bool(random.integers(2)),
    )  # fmt: skip


@dataclass
class Expiry(Machine):
    """A cache all of whose entries expire at once every so often, and are filled by misses."""

    lasts_s: float = 30.0
    keys: int = 1000
    gain: float = 3.0  # a miss costs 1 + gain
    phase: float = 0.0
    period: int = -1
    filled: int = 0

    def begin(self) -> None:
        """Begin with a cache that is as full as it would be in use."""
        self.period = math.floor(self.phase)
        used = self.phase * self.lasts_s * self.places / self.work_s / 2
        self.filled = round(self.keys * (1 - exp(-used / self.keys)))

    def departs(self, begin_s: float) -> float:
        """Serve it from the cache, or fill an entry."""
        period = math.floor(begin_s / self.lasts_s + self.phase)
        if period > self.period:
            self.period, self.filled = period, 0
        work_s = self.work()
        if self.random.random() * self.keys >= self.filled:
            self.filled += 1
            work_s *= 1 + self.gain
        return begin_s + work_s

    def n_rps(self) -> float:
        """Return N: the requests of a period and their misses fill the period."""
        most = self.lasts_s * self.places / self.work_s
        low, high = 0.0, most
        for _ in range(60):
            count = (low + high) / 2
            misses = self.keys * (1 - (1 - 1 / self.keys) ** count)
            low, high = (count, high) if count + self.gain * misses < most else (low, count)
        return low / self.lasts_s


def _expiry(service: Service, random: Random) -> Service:
    """N solves N T + gain * keys (1 - exp(-N T / keys)) = T * full speed: one value."""
    lasts_s, gain = _between(random, 8.0, 90.0), _between(random, 0.5, 8.0)
    share = float(random.uniform(0.05, 0.4))  # of the period, if all is filled
    keys = max(5, round(share * lasts_s * service.capacity_rps / gain))
    return _made(
        service, random, Expiry, service.workers / service.capacity_rps,
        lasts_s=lasts_s,
        keys=keys,
        gain=gain,
        phase=float(random.uniform(0, 1)),
    )  # fmt: skip


@dataclass
class Quota(Machine):
    """A cgroup's quota: workers stop when it is used up, until the next period begins."""

    period_s: float = 0.1
    quota_s: float = 0.2  # processor seconds per period
    phase: float = 0.0
    used_s: dict[int, float] = field(init=False, default_factory=dict)
    oldest: int = 0

    def departs(self, begin_s: float) -> float:
        """Let it take what it can of each period."""
        left_s, at_s = self.work(), begin_s
        period = math.floor(at_s / self.period_s + self.phase)
        while self.oldest < period:
            self.used_s.pop(self.oldest, None)
            self.oldest += 1
        while True:
            ends_s = (period + 1 - self.phase) * self.period_s
            used_s = self.used_s.get(period, 0.0)
            runs_s = max(0.0, min(left_s, self.quota_s - used_s, ends_s - at_s))
            self.used_s[period] = used_s + runs_s
            left_s -= runs_s
            if left_s <= 1e-12:
                return at_s + runs_s
            period, at_s = period + 1, max(at_s, ends_s)

    def n_rps(self) -> float:
        """Return N: what the quota pays for."""
        return self.quota_s / self.period_s / self.work_s


def _quota(service: Service, random: Random) -> Service:
    """N = quota / period / work of a request: one value."""
    period_s, share = _between(random, 0.1, 1.0), float(random.uniform(0.25, 0.9))
    return _made(
        service, random, Quota, service.workers / service.capacity_rps,
        period_s=period_s,
        quota_s=share * service.workers * period_s,
        phase=float(random.uniform(0, 1)),
    )  # fmt: skip


@dataclass
class Thermal(Machine):
    """Heats up while it is busy; slow from a temperature on until a lower one is reached."""

    lasting_s: float = 20.0  # time constant
    factor: float = 2.0
    power: float = 0.25  # of the slow state when busy; 1 is that of the fast one
    hot: float = 0.8  # of the temperature that full speed would lead to
    cool: float = 0.6
    heat: float = 0.0
    is_slow: bool = False
    last_s: float = 0.0

    def departs(self, begin_s: float) -> float:
        """Bring the temperature up to date, and serve it at the present speed."""
        passed_s = begin_s - self.last_s
        if passed_s > 0:
            busy = busy_s(self.free_s, self.last_s, begin_s) / passed_s / self.places
            goes_to = busy * (self.power if self.is_slow else 1.0)
            self.heat = goes_to + (self.heat - goes_to) * exp(-passed_s / self.lasting_s)
            self.last_s = begin_s
        self.is_slow = self.heat > (self.cool if self.is_slow else self.hot)
        return begin_s + self.work() * (self.factor if self.is_slow else 1.0)

    def n_rps(self) -> tuple[float, float]:
        """Return the mean rate of the hot machine, and the rate at which it does not get hot."""
        machine, edges, count = copy.copy(self), [], 0
        while len(edges) <= CYCLES:
            was_slow = machine.is_slow
            machine.slower(0.0, 0, 0)  # there is always one that waits
            if machine.is_slow and not was_slow:
                edges.append((machine.last_s, count))
            count += 1
        (since_s, since), (until_s, until) = edges[1], edges[-1]
        mean_rps = (until - since) / (until_s - since_s)
        return mean_rps, max(mean_rps, self.hot * self.places / self.work_s)


def _thermal(service: Service, random: Random) -> Service:
    """N from the mean of both states when saturated to that at which it never gets hot: a range."""
    factor = float(random.uniform(1.25, 3.0))
    power = 1 / factor**2
    hot = power + (1 - power) * float(random.uniform(0.4, 0.9))
    cool = power + (hot - power) * float(random.uniform(0.3, 0.9))
    return _made(
        service, random, Thermal, service.workers / service.capacity_rps,
        lasting_s=_between(random, 5.0, 60.0),
        factor=factor,
        power=power,
        hot=hot,
        cool=cool,
        heat=float(random.uniform(0, 0.5)) * hot,
    )  # fmt: skip


@dataclass
class Autoscaler(Machine):
    """An instance is added after so many seconds of full load, and taken away after idle ones."""

    each: int = 4  # workers of an instance
    least: int = 1
    most: int = 3
    busy_from: float = 0.8
    idle_to: float = 0.3
    after_s: float = 45.0
    back_s: float = 120.0
    look_s: float = 5.0  # load is smoothed over
    instances: int = 1
    load: float = 0.0
    busy_for_s: float = 0.0
    idle_for_s: float = 0.0
    last_s: float = 0.0
    workers: list[float] = field(init=False)

    def begin(self) -> None:
        """Begin with the fewest instances."""
        self.instances = self.least
        self.workers = [0.0] * (self.each * self.least)

    def departs(self, begin_s: float) -> float:
        """Look whether to scale, and serve it by the worker that is free first."""
        at_s = max(begin_s, self.workers[0])
        if at_s > self.last_s:
            self._scale(at_s, at_s - self.last_s)
            self.last_s = at_s
        departs_s = max(begin_s, self.workers[0]) + self.work()
        heapreplace(self.workers, departs_s)
        return departs_s

    def _scale(self, at_s: float, passed_s: float) -> None:
        busy = busy_s(self.workers, self.last_s, at_s) / passed_s / len(self.workers)
        kept = exp(-passed_s / self.look_s)
        self.load = kept * self.load + (1 - kept) * busy
        self.busy_for_s = self.busy_for_s + passed_s if self.load >= self.busy_from else 0.0
        self.idle_for_s = self.idle_for_s + passed_s if self.load <= self.idle_to else 0.0
        if self.busy_for_s >= self.after_s and self.instances < self.most:
            self.instances, self.busy_for_s = self.instances + 1, 0.0
            for _ in range(self.each):
                heappush(self.workers, at_s)
        if self.idle_for_s >= self.back_s and self.instances > self.least:
            self.instances, self.idle_for_s = self.instances - 1, 0.0
            for _ in range(self.each):
                heappop(self.workers)

    def n_rps(self) -> float:
        """Return N of all instances."""
        return self.most * self.each / self.work_s


def _autoscaler(service: Service, random: Random) -> Service:
    """N is that of the most instances, which full load leads to: one value."""
    least, more = int(random.integers(1, 3)), int(random.integers(1, 4))
    each = min(8, service.workers)
    service = replace(service, workers=each * (least + more))
    return _made(
        service, random, Autoscaler, service.workers / service.capacity_rps,
        each=each,
        least=least,
        most=least + more,
        busy_from=float(random.uniform(0.65, 0.9)),
        idle_to=float(random.uniform(0.1, 0.4)),
        after_s=_between(random, 15.0, 90.0),
        back_s=_between(random, 60.0, 300.0),
        look_s=_between(random, 2.0, 15.0),
    )  # fmt: skip


@dataclass
class Commit(Machine):
    """Group commit: those who come during a flush of the log share the next one, in order."""

    flush_s: float = 0.02
    flush_variation: float = 0.2
    entered_s: float = 0.0  # the log's last record
    flush_begins_s: float = 0.0  # the last flush that is planned
    flush_ends_s: float = 0.0

    def departs(self, begin_s: float) -> float:
        """Work, then wait for the end of a flush that begins after that."""
        self.entered_s = max(self.entered_s, begin_s + self.work())
        if self.entered_s >= self.flush_ends_s:
            self._flush(self.entered_s)
        elif self.entered_s > self.flush_begins_s:
            self._flush(self.flush_ends_s)
        return self.flush_ends_s

    def _flush(self, begin_s: float) -> None:
        seconds = float(lognormal(self.random, self.flush_s, self.flush_variation, 1)[0])
        self.flush_begins_s, self.flush_ends_s = begin_s, begin_s + seconds


def _commit(service: Service, random: Random) -> Service:
    """N is the rate of all sessions in a closed loop, which is simulated: one value."""
    work, flush = _between(random, 0.05, 0.6), _between(random, 0.15, 0.6)
    sessions = max(4, service.workers)
    unit_s = sessions / service.capacity_rps / (work + 1.5 * flush)
    service = replace(service, workers=sessions)
    return _made(
        service, random, Commit, work * unit_s,
        flush_s=flush * unit_s,
        flush_variation=float(random.uniform(0.05, 0.5)),
    )  # fmt: skip


@dataclass
class Reaper(Machine):
    """Every so many requests leak their pooled connection; a reaper gives all back now and then."""

    leaks: int = 100  # every so manieth request does in the mean
    every_s: float = 15.0
    phase: float = 0.0
    count: int = 1  # requests until the next leak
    pool: list[float] = field(init=False)

    def begin(self) -> None:
        """Begin with a whole pool."""
        self.pool = [0.0] * self.places

    def departs(self, begin_s: float) -> float:
        """Serve it by a connection that it may leak."""
        departs_s = max(begin_s, self.pool[0]) + self.work()
        ready_s = departs_s
        self.count -= 1
        if self.count <= 0:
            # Half as many to half as many again, else leaks and the reaper could fall into step.
            least = (self.leaks + 1) // 2
            self.count = int(self.random.integers(least, 2 * self.leaks - least + 1))
            ticks = math.floor(departs_s / self.every_s + self.phase) + 1
            ready_s = (ticks - self.phase) * self.every_s
        heapreplace(self.pool, ready_s)
        return departs_s

    def n_rps(self) -> float:
        """Return N of a saturated pool: a mean over many leaks and periods, without the queue."""
        random = np.random.default_rng([0, 1])
        least = (self.leaks + 1) // 2
        gaps = iter(random.integers(least, 2 * self.leaks - least + 1, LEAKS).tolist())
        at_s, tick_s, pool, served, to_leak = 0.0, self.every_s, self.places, 0, 0.0
        for gap in gaps:
            to_leak, served = float(gap), served + gap
            while pool == 0 or at_s + to_leak * self.work_s / pool >= tick_s:
                to_leak -= (tick_s - at_s) * pool / self.work_s
                at_s, tick_s, pool = tick_s, tick_s + self.every_s, self.places
            at_s, pool = at_s + to_leak * self.work_s / pool, pool - 1
        return served / at_s


def _reaper(service: Service, random: Random) -> Service:
    """N is the mean over leaks and returns of a saturated pool, which is simulated: one value."""
    service = replace(service, workers=max(4, service.workers))
    work_s = service.workers / service.capacity_rps
    every_s = max(_between(random, 5.0, 40.0), 8 * work_s)
    lost = _between(random, 0.1, 0.8)  # leaks of a connection per period, if it were given back
    leaks = max(10, round(every_s / work_s / lost))
    return _made(
        service, random, Reaper, work_s,
        leaks=leaks,
        every_s=every_s,
        phase=float(random.uniform(0, 1)),
        count=1 + int(random.integers(leaks)),
    )  # fmt: skip


@dataclass
class Compaction(Machine):
    """Leaves work for later, and does it beside the requests once enough is left (an LSM tree)."""

    extra: float = 0.3  # work left by a request, as a share of its own
    share: float = 0.5  # of the machine, taken while it is done
    mark: float = 500.0  # requests whose work is left when it begins
    left: float = 0.0  # requests since then
    until_s: float = 0.0  # it lasts

    def departs(self, begin_s: float) -> float:
        """Begin to do what is left where it is due, and serve it with what is free."""
        if self.left >= self.mark and begin_s >= self.until_s:
            # Requests in progress keep their speed, which lengthens it.
            running_s = sum(max(0.0, free_s - begin_s) for free_s in self.free_s)
            seconds = self.left * self.extra * self.work_s + self.share * running_s
            self.until_s = begin_s + seconds / (self.share * self.places)
            self.left = 0
        self.left += 1
        left_s, free = self.work(), 1 - self.share
        slow_s = max(0.0, min(left_s / free, self.until_s - begin_s))
        return begin_s + slow_s + left_s - slow_s * free

    def n_rps(self) -> float:
        """Return N: a request costs its work and what it leaves."""
        return self.places / self.work_s / (1 + self.extra)


def _compaction(service: Service, random: Random) -> Service:
    """N = full speed / (1 + extra). It serves faster until the work is due."""
    extra = _between(random, 0.1, 0.7)
    needed = extra / (1 + extra)
    mark = service.capacity_rps * _between(random, 3.0, 40.0)
    return _made(
        service, random, Compaction, service.workers / service.capacity_rps,
        extra=extra,
        share=float(random.uniform(min(1.4 * needed, 0.7), 0.85)),
        mark=mark,
        left=mark * float(random.uniform(0, 1)),
    )  # fmt: skip


@dataclass
class Vacuum(Machine):
    """Slower with each request (dead rows) until one cleans up, every so many requests."""

    loss: float = 0.5  # of speed, just before it is cleaned
    every: int = 5000
    cleans_s: float = 2.0  # taken by one worker
    since: int = 0

    def departs(self, begin_s: float) -> float:
        """Serve it among so many dead rows; the last one cleans up."""
        work_s = self.work() * (1 + self.loss * self.since / self.every)
        self.since += 1
        if self.since >= self.every:
            self.since = 0
            work_s += self.cleans_s
        return begin_s + work_s

    def n_rps(self) -> float:
        """Return N: the mean over a cycle."""
        mean = 1 + self.loss * (self.every - 1) / 2 / self.every
        return self.places / (self.work_s * mean + self.cleans_s / self.every)


def _vacuum(service: Service, random: Random) -> Service:
    """N = workers / (mean work over a cycle + share of the cleaning): one value."""
    every = max(50, round(service.capacity_rps * _between(random, 12.0, 150.0)))
    return _made(
        service, random, Vacuum, service.workers / service.capacity_rps,
        loss=_between(random, 0.15, 1.5),
        every=every,
        cleans_s=_between(random, 0.3, 5.0),
        since=int(random.integers(every)),
    )  # fmt: skip


@dataclass
class Poller(Machine):
    """A consumer that wakes every so often, and takes at most so many of those that wait."""

    every_s: float = 0.5
    batch: int = 50
    phase: float = 0.0
    tick: int = -1  # that the last request was taken at
    taken: int = 0  # at that tick
    done_s: float = 0.0

    def departs(self, begin_s: float) -> float:
        """Take it at the next tick that has room, and do one after the other."""
        tick = max(self.tick, math.ceil(begin_s / self.every_s + self.phase))
        if tick == self.tick and self.taken >= self.batch:
            tick += 1
        if tick > self.tick:
            self.tick, self.taken = tick, 0
        self.taken += 1
        self.done_s = max(self.done_s, (tick - self.phase) * self.every_s) + self.work()
        return self.done_s

    def n_rps(self) -> float:
        """Return N: a full batch each time."""
        return self.batch / self.every_s


def _poller(service: Service, random: Random) -> Service:
    """N = batch / period, if there are that many in flight: one value."""
    every_s = _between(random, 0.2, 2.0)
    batch = max(8, round(service.capacity_rps * every_s))
    every_s = batch / service.capacity_rps
    # Works for at most half of the period, so that no batch is late.
    work_s = every_s / batch * _between(random, 0.05, 0.5)
    return _made(
        replace(service, workers=batch), random, Poller, work_s,
        every_s=every_s,
        batch=batch,
        phase=float(random.uniform(0, 1)),
    )  # fmt: skip


UNSEEN: dict[str, Callable[[Service, Random], Service]] = {
    "respawn": _respawn,
    "expiry": _expiry,
    "quota": _quota,
    "thermal": _thermal,
    "autoscaler": _autoscaler,
    "commit": _commit,
    "reaper": _reaper,
    "compaction": _compaction,
    "vacuum": _vacuum,
    "poller": _poller,
}


def lasting_rps(family: str, service: Service) -> tuple[float, float]:
    """Return N, the rate that lasts for good, as a range (of one point but for `thermal`)."""
    machine: Any = service.pace
    match family:
        case "thermal":
            low_rps, high_rps = machine.n_rps()
            return low_rps, high_rps
        case "commit":
            rate_rps = saturated_rps(service)
        case _:
            rate_rps = machine.n_rps()
    return rate_rps, rate_rps


def saturated_rps(service: Service) -> float:
    """Simulate the service with some requests waiting all the time; return its mean rate."""
    workers = Workers(service, np.random.default_rng(0))
    ends_s = [workers.serve(0.0) or 0.0 for _ in range(service.workers + WAITING)]
    heapify(ends_s)
    since_s = 0.0
    for number in range(SATURATED):
        if number == WARMING:
            since_s = ends_s[0]
        heapreplace(ends_s, workers.serve(ends_s[0]) or 0.0)
    return (SATURATED - WARMING) / (ends_s[0] - since_s)


def _made(
    service: Service, random: Random, kind: type[Machine], work_s: float, **more: Any
) -> Service:
    """Return the service with a machine for its pace."""
    machine = kind(
        seed=int(random.integers(1 << 30)),
        places=service.workers,
        nominal_s=service.workers / service.capacity_rps,
        work_s=work_s,
        variation=service.variation,
        **more,
    )
    return replace(service, variation=0.0, pace=machine)


def _between(random: Random, low: float, high: float) -> float:
    return float(np.exp(random.uniform(math.log(low), math.log(high))))
