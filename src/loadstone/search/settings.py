"""What a search may spend, and how far it may go."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SearchSettings:
    """The terms of one search."""

    budget_s: float = 240.0  # seconds of load, waiting for outstanding requests included
    ceiling_rps: float = 5000.0  # never offer more
    # Connections that the load generator may open; it begins with fewer (search/session.py).
    max_connections: int = 10_000
    error_share: float = 0.001  # of requests that may fail
    width: float = 0.01  # half-width of the interval over N at which the search is content
    # Seconds at each point of the curve of throughput and latency, beyond the budget; 0: no curve.
    curve_s: float = 0.0
    # Variance over mean of the arrivals per second: 0 evenly spaced, 1 Poisson.
    arrival_dispersion: float = 0.0
    # Latency objectives were asked for: N is stated only where a trial met them.
    has_objectives: bool = False
