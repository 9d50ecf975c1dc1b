"""Rate limiters before a simulated service."""

from collections import deque
from typing import Protocol

from simulator.service import Law, Limiter, Lockout, Service, WindowLimiter


class Gate(Protocol):
    """Decides about each request that comes."""

    def wait_s(self, at_s: float) -> float | None:
        """Return how long the request that comes at `at_s` has to wait; None: it is refused."""


def gate(service: Service) -> Gate | None:
    """Return what stands before the service; None: nothing."""
    limiter = service.limiter
    if limiter is None:
        return None
    found: Gate = Window(limiter) if isinstance(limiter, WindowLimiter) else Buckets(limiter)
    return Locked(service.lockout, found) if service.lockout else found


class Buckets:
    """A token bucket for each user; users take turns."""

    def __init__(self, limiter: Limiter) -> None:
        self._rate_rps = limiter.rate_rps / limiter.users
        self._most = max(1.0, self._rate_rps * limiter.burst_s)
        self._tokens = [self._most] * limiter.users
        self._at_s = [0.0] * limiter.users
        self._delays = limiter.delays
        self._turn = 0
        self.users_share = 1.0  # of the users, who take turns

    def wait_s(self, at_s: float) -> float | None:
        """Return how long the request that comes at `at_s` has to wait; None: it is refused."""
        user = self._turn
        self._turn = (user + 1) % max(1, round(self.users_share * len(self._tokens)))
        flowed = self._rate_rps * max(0.0, at_s - self._at_s[user])
        tokens = min(self._most, self._tokens[user] + flowed)
        self._at_s[user] = max(at_s, self._at_s[user])
        if tokens < 1 and not self._delays:
            self._tokens[user] = tokens
            return None
        self._tokens[user] = tokens - 1
        return max(0.0, (1 - tokens) / self._rate_rps)


class Window:
    """Counts the requests of a window."""

    def __init__(self, limiter: WindowLimiter) -> None:
        self._limiter = limiter
        self._accepted_s: deque[float] = deque()  # the sliding window's
        self._begin_s = -limiter.begun * limiter.window_s  # of the present fixed window
        self._count = self._before = 0  # requests in it, and in the one before

    def wait_s(self, at_s: float) -> float | None:
        """Return 0, or None where the window is full."""
        if self._limiter.law is Law.SLIDING:
            return self._slide(at_s)
        self._turn(at_s)
        weighed = self._count
        if self._limiter.law is Law.COUNTING:
            # The window before counts by how much of it lies in the last window_s.
            self._count += 1
            left = 1 - (at_s - self._begin_s) / self._limiter.window_s
            weighed = int(self._count + self._before * left + 1e-9) - 1
        if weighed >= self._limiter.most:
            return None
        if self._limiter.law is Law.FIXED:
            self._count += 1
        return 0.0

    def _turn(self, at_s: float) -> None:
        passed = int((at_s - self._begin_s) / self._limiter.window_s)
        if passed > 0:
            self._before = self._count if passed == 1 else 0
            self._count = 0
            self._begin_s += passed * self._limiter.window_s

    def _slide(self, at_s: float) -> float | None:
        accepted = self._accepted_s
        while accepted and accepted[0] <= at_s - self._limiter.window_s + 1e-9:
            accepted.popleft()
        if len(accepted) >= self._limiter.most:
            return None
        accepted.append(at_s)
        return 0.0


class Locked:
    """Refuses everything for a while after so many refusals of the limiter."""

    def __init__(self, lockout: Lockout, limiter: Gate) -> None:
        self._lockout = lockout
        self._limiter = limiter
        self._refused = 0
        self._until_s = 0.0

    def wait_s(self, at_s: float) -> float | None:
        """Return how long the request that comes at `at_s` has to wait; None: it is refused."""
        if at_s < self._until_s:
            return None
        wait_s = self._limiter.wait_s(at_s)
        if wait_s is None:
            self._refused += 1
            if self._refused >= self._lockout.failures:
                self._refused, self._until_s = 0, at_s + self._lockout.lasting_s
        return wait_s
