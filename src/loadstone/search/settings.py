"""Settings of a search."""

from dataclasses import dataclass

from loadstone.analysis.criteria import Criterion

FIRST_CONNECTIONS = 256
LONGEST_BUDGET_S = 3000.0  # tokens expire after an hour


@dataclass(frozen=True, slots=True)
class SearchSettings:
    """Budget, limits and precision of one search."""

    budget_s: float = 240.0  # seconds of load, including the wait for outstanding requests
    ceiling_rps: float = 5000.0  # never offer more
    # Connections that the load generator may open. It begins with `first_connections`; more are
    # opened if these are the limit.
    max_connections: int = 10_000
    first_connections: int = FIRST_CONNECTIONS
    error_share: float = 0.001  # allowed share of failed requests
    width: float = 0.02  # distance of either bound from N, over N, at which the search ends
    # Seconds at each point of the curve of throughput and latency, outside the budget; 0: no curve.
    curve_s: float = 0.0
    # Variance over mean of the arrivals per second: 0 evenly spaced, 1 Poisson.
    arrival_dispersion: float = 0.0
    # Latency objectives, which a trial's verdict includes: N is only stated if a trial met them.
    objectives: tuple[Criterion, ...] = ()
    users: int | None = None  # who send the requests in turn; None: not known

    @property
    def has_objectives(self) -> bool:
        """Whether there are latency objectives."""
        return bool(self.objectives)
