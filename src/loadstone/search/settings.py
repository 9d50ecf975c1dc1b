"""What a search may spend, and how far it may go."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Settings:
    """The terms of one search."""

    budget_s: float = 240.0  # seconds of load, waiting for outstanding requests included
    ceiling_rps: float = 5000.0  # never offer more
    max_connections: int = 256  # of the generator: a closed loop can have no more workers
    width: float = 0.01  # half-width of the interval over N at which the search is content
    # Seconds at each point of the curve of throughput and latency, beyond the budget; 0: no curve.
    curve_s: float = 0.0
    # Variance over mean of the arrivals per second: 0 evenly spaced, 1 Poisson.
    arrival_dispersion: float = 0.0
