"""What a simulated service is like, and its true capacity."""

from dataclasses import dataclass
from enum import StrEnum
from math import inf

from simulator.paces import Pace


@dataclass(frozen=True, slots=True)
class Bursts:
    """A noisy neighbour: quiet for `gap_s` (mean, exponential), then slower for a while."""

    gap_s: float
    least_s: float = 5.0
    most_s: float = 20.0
    slower: float = 0.10  # service times times 1 + slower

    @property
    def share(self) -> float:
        """Share of the time that is noisy."""
        mean_s = (self.least_s + self.most_s) / 2
        return mean_s / (self.gap_s + mean_s)


@dataclass(frozen=True, slots=True)
class Stalls:
    """Stop the world (garbage collection): every `gap_s` (mean, exponential) nothing runs."""

    gap_s: float
    least_s: float = 0.05
    most_s: float = 0.25

    @property
    def share(self) -> float:
        """Share of the time in which nothing runs."""
        mean_s = (self.least_s + self.most_s) / 2
        return mean_s / (self.gap_s + mean_s)


@dataclass(frozen=True, slots=True)
class Fsync:
    """A part of the service time that a disk adds: heavy-tailed."""

    share: float
    variation: float


@dataclass(frozen=True, slots=True)
class Crowding:
    """Service times change by up to `slower` as the waiting grow to `full_at` (< 0: batching)."""

    slower: float
    full_at: int = 32


@dataclass(frozen=True, slots=True)
class Change:
    """From `at_s` until `back_at_s`, service times are multiplied by `slower`."""

    at_s: float
    slower: float
    back_at_s: float = inf


@dataclass(frozen=True, slots=True)
class Outage:
    """From `at_s` until `back_at_s` nothing listens; requests in progress at `at_s` are lost."""

    at_s: float
    back_at_s: float = inf


@dataclass(frozen=True, slots=True)
class Limiter:
    """A token bucket before the service, or one for each user, who take turns."""

    rate_rps: float  # of all users together
    burst_s: float = 1.0  # a full bucket holds what flows in during this time, at least 1
    users: int = 1
    delays: bool = False  # requests above the limit wait instead of being refused


class Law(StrEnum):
    """How a limiter counts the requests of a window."""

    FIXED = "fixed"  # accepted requests, from one whole multiple of the window to the next
    SLIDING = "sliding"  # accepted requests of the last `window_s`
    COUNTING = "counting"  # all requests, refused ones too, as haproxy's http_req_rate does


@dataclass(frozen=True, slots=True)
class WindowLimiter:
    """Accepts `rate_rps * window_s` requests a window, rounded to a whole number."""

    rate_rps: float
    window_s: float
    law: Law
    begun: float = 0.0  # share of a window that has passed when the service starts

    @property
    def most(self) -> int:
        """Requests that a window accepts."""
        return max(1, round(self.rate_rps * self.window_s))


@dataclass(frozen=True, slots=True)
class Lockout:
    """After `failures` refusals by the limiter everything is refused for `lasting_s`."""

    failures: int
    lasting_s: float


@dataclass(frozen=True, slots=True)
class Service:
    """`workers` behind one queue, with the capacity that the quiet, fresh service has."""

    workers: int = 4
    capacity_rps: float = 100.0  # with stalls in it, without bursts
    variation: float = 0.3  # standard deviation over mean of a (lognormal) service time
    queue_limit: float = inf  # waiting beyond the workers; one more is refused
    queue_timeout_s: float = inf  # in the queue, after which a request is refused
    connections: float = inf  # open at once; one more is refused
    limiter: Limiter | WindowLimiter | None = None
    lockout: Lockout | None = None
    refuses_with: str = "reset"  # reset, refused (nobody listens) or status (429)
    bursts: Bursts | None = None
    stalls: Stalls | None = None
    fsync: Fsync | None = None
    crowding: Crowding | None = None
    change: Change | None = None
    leak_per_minute: float = 0.0  # service times grow by this share per minute at capacity
    cold: float = 0.0  # the first requests are slower by this share, fading over COLD_S seconds
    is_split: bool = False  # a queue per worker, chosen at random (SO_REUSEPORT)
    is_poisson: bool = False  # arrivals of open loads are Poisson instead of evenly spaced
    error_share: float = 0.0  # answered with a 500
    delay_s: float = 0.0  # of the network, both ways together
    outage: Outage | None = None
    pace: Pace | None = None
    uneven: tuple[float, ...] = ()  # servers that take turns, each with a queue: their shares
    exclusive: float = 0.0  # share of requests that hold a lock: nothing runs beside them

    @property
    def mean_service_s(self) -> float:
        """Mean seconds of one worker that a request costs the fresh, undisturbed service."""
        stalled = self.stalls.share if self.stalls else 0.0
        return self.workers * (1 - stalled) / self.capacity_rps

    @property
    def long_run_rps(self) -> float:
        """Capacity over a long time with its bursts in it, while the queue is short."""
        if self.bursts is None:
            return self.capacity_rps
        noisy = self.bursts.share
        return self.capacity_rps * (1 - noisy + noisy / (1 + self.bursts.slower))

    @property
    def crowded_rps(self) -> float:
        """The same deep in saturation."""
        return self.long_run_rps / (1 + (self.crowding.slower if self.crowding else 0.0))
