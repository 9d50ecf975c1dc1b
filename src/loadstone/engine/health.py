"""Cost and lateness of the load generator: was it the limit?"""

from dataclasses import dataclass

from loadstone.engine.histogram import EMPTY, Histogram


@dataclass(frozen=True, slots=True)
class PartHealth:
    """One host of a fleet that sent a part of the load."""

    host: str
    clock_offset_ms: float  # its clock minus the client's, before the load
    clock_error_ms: float  # half of the round trip of that reading
    lag_p99_ms: float
    cpu_s: float
    generator: int = 0  # the number in `Samples.generator`


@dataclass(frozen=True, slots=True)
class Health:
    """The generator's own cost and lateness over one run.

    Send lag is the time from an iteration's due instant to its first send, or to the SYN where a
    connection had to be opened. Waiting while all connections were in use is not part of it: the
    service or the limit on connections causes that. It is `waited` and `wait_*_ms`.
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
    # Iterations that waited since all connections were in use, and how long: over all iterations.
    waited: int = 0
    wait_p99_ms: float = 0.0
    wait_max_ms: float = 0.0
    without_port: int = 0  # requests for which this machine had no local port left (EADDRNOTAVAIL)
    without_file: int = 0  # requests for which it allowed no further open file (EMFILE, ENFILE)
    http: str = "1.1"  # the version that all of them spoke
    tls_resumption: bool | None = None  # None: without TLS
    # Reasons why the generator was the limit; empty when it was not.
    limits: tuple[str, ...] = ()
    throttled: int = 0  # iterations delayed by the rate ceiling
    throttled_s: float = 0.0  # sum of these delays
    # Reason why the rate ceiling (`Limits.max_rate_rps`), not the service, set the rate; empty when
    # it did not. Set by `engine.limits.judged`.
    ceiling: str = ""
    is_broken_off: bool = False  # the generator could not go on, and left iterations undone
    is_cut_short: bool = False  # `Limits.load_s` ended the load before its schedule did
    # Of every iteration: what `lag_*_ms` and `wait_*_ms` are read from. They can be merged.
    lag: Histogram = EMPTY
    wait: Histogram = EMPTY
    parts: tuple[PartHealth, ...] = ()  # of a load that a fleet sent

    @property
    def cpu_share(self) -> float:
        """CPU of the engine as a share of one core per engine thread."""
        return self.cpu_s / (self.wall_s * self.threads) if self.wall_s > 0 else 0.0

    @property
    def is_valid(self) -> bool:
        """The generator was not the limit."""
        return not self.limits
