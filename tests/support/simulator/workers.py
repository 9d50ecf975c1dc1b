"""The service itself: requests in, departures out, in operational time."""

import copy
import heapq
from collections import deque
from collections.abc import Callable
from math import exp, inf, log1p, sqrt

import numpy as np

from simulator.service import Service

COLD_S = 3.0
DRAWN_AT_ONCE = 1024
AVERAGED = 1000  # requests before and after, of which every nth may be slower


class Workers:
    """First come, first served by whoever is free first; keeps its state between trials."""

    def __init__(self, service: Service, random: np.random.Generator) -> None:
        self._service = service
        self._random = random
        self._free_s = [0.0] * service.workers
        self._waiting: deque[float] = deque()  # when those who wait will be begun
        self._open_s: list[float] = []  # when each open connection is done with its request
        self._drawn: list[float] = []
        self._uneven_s = [0.0] * len(service.uneven)  # when each of the uneven servers is free
        self._served = 0
        self._leak = service.leak_per_minute / (60.0 * service.capacity_rps)
        most = min(service.queue_limit, service.queue_timeout_s)
        self._is_plain = (
            service.crowding is None
            and service.pace is None
            and (most == inf or service.exclusive > 0)
        )
        self._pace = copy.copy(service.pace)
        self._is_even = service.crowding is None and service.pace is None
        self._serve = self._order()

    def _order(self) -> Callable[[float], float | None]:
        """Return how requests are given to the workers."""
        if self._service.is_split:
            return self._serve_split
        if self._service.uneven:
            return self._serve_uneven
        return self._serve_plain if self._is_plain else self._serve_limited

    def serve(self, at_s: float) -> float | None:
        """Take a request and say when it departs; None: refused, the queue is full."""
        if self._service.connections == inf:
            return self._serve(at_s)
        while self._open_s and self._open_s[0] <= at_s:
            heapq.heappop(self._open_s)
        if len(self._open_s) >= self._service.connections:
            return None
        departs_s = self._serve(at_s)
        if departs_s is not None:
            heapq.heappush(self._open_s, departs_s)
        return departs_s

    def mean_slower(self, at_s: float) -> float:
        """Return the present factor of the service times of a busy service."""
        pace = copy.copy(self._pace)
        if pace is None:
            return 1.0
        near = range(max(0, self._served - AVERAGED), self._served + AVERAGED)
        return sum(pace.slower(at_s, 1, served) for served in near) / len(near)

    def restart(self, at_s: float) -> None:
        """Forget all requests; every worker is free at `at_s`."""
        self._free_s = [at_s] * self._service.workers
        self._waiting.clear()
        self._open_s.clear()

    def _serve_limited(self, at_s: float) -> float | None:
        service, waiting = self._service, self._waiting
        while waiting and waiting[0] <= at_s:
            waiting.popleft()
        if len(waiting) >= service.queue_limit and self._free_s[0] > at_s:
            return None
        begin_s = max(at_s, self._free_s[0])
        if begin_s - at_s > service.queue_timeout_s:
            return None
        seconds = self._service_s()
        if not self._is_even:
            seconds *= self._slower(at_s, len(waiting))
        departs_s = begin_s + seconds
        heapq.heapreplace(self._free_s, departs_s)
        if begin_s > at_s:
            waiting.append(begin_s)
        return departs_s

    def _serve_plain(self, at_s: float) -> float:
        if self._service.exclusive and self._random.random() < self._service.exclusive:
            departs_s = max(at_s, *self._free_s) + self._service_s()
            self._free_s = [departs_s] * self._service.workers
            return departs_s
        departs_s = max(at_s, self._free_s[0]) + self._service_s()
        heapq.heapreplace(self._free_s, departs_s)
        return departs_s

    def _serve_split(self, at_s: float) -> float:
        worker = int(self._random.integers(self._service.workers))
        self._free_s[worker] = max(at_s, self._free_s[worker]) + self._service_s()
        return self._free_s[worker]

    def _serve_uneven(self, at_s: float) -> float:
        server = self._served % len(self._service.uneven)
        # The mean service time of a worker is that of a whole service divided by the workers.
        seconds = self._service_s() / self._service.workers / self._service.uneven[server]
        self._uneven_s[server] = max(at_s, self._uneven_s[server]) + seconds
        return self._uneven_s[server]

    def _slower(self, at_s: float, waiting: int) -> float:
        if self._pace is not None:
            busy = sum(free_s > at_s for free_s in self._free_s)
            return self._pace.slower(at_s, busy + waiting, self._served)
        crowding = self._service.crowding
        if crowding is None:
            return 1.0
        return 1.0 + crowding.slower * min(1.0, waiting / crowding.full_at)

    def _service_s(self) -> float:
        if not self._drawn:
            self._drawn = self._draw()
        self._served += 1
        seconds = self._drawn.pop()
        if self._leak:
            seconds *= 1 + self._leak * self._served
        if self._service.cold:
            fading = exp(-self._served / (self._service.capacity_rps * COLD_S))
            seconds *= 1 + self._service.cold * fading
        return seconds

    def _draw(self) -> list[float]:
        service = self._service
        disk = service.fsync.share if service.fsync else 0.0
        seconds = self._lognormal(service.mean_service_s * (1 - disk), service.variation)
        if service.fsync:
            variation = service.fsync.variation
            seconds = seconds + self._lognormal(service.mean_service_s * disk, variation)
        drawn: list[float] = seconds.tolist()
        return drawn

    def _lognormal(
        self, mean: float, variation: float
    ) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        sigma = sqrt(log1p(variation**2))
        return mean * np.exp(self._random.normal(-(sigma**2) / 2, sigma, DRAWN_AT_ONCE))
