"""What the load generator says of itself: was it the limit?"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Health:
    """The generator's own cost and lateness over one run.

    Send lag is the time from an arrival's due instant to the instant at which the engine took it
    up; waiting for a free connection is not in it (that is the service's doing or the limit's).
    """

    lag_p50_ms: float
    lag_p99_ms: float
    lag_max_ms: float
    cpu_s: float  # user + system CPU of the engine's threads
    wall_s: float
    runqueue_wait_s: float  # ready to run, but another had the core (schedstat)
    threads: int
    retries: int = 0  # sent again, since a kept-alive connection turned out to be closed
    connections: int = 0  # opened
    http: str = "1.1"  # the version that all of them spoke
    # Why the generator was the limit, in words; empty when it was not.
    limits: tuple[str, ...] = ()

    @property
    def cpu_share(self) -> float:
        """CPU of the engine as a share of one core per engine thread."""
        return self.cpu_s / (self.wall_s * self.threads) if self.wall_s > 0 else 0.0

    @property
    def is_valid(self) -> bool:
        """The generator was not the limit."""
        return not self.limits
