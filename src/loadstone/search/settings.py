"""What a search may spend, and how far it may go."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Settings:
    """The terms of one search."""

    budget_s: float = 240.0  # seconds of load, waiting for outstanding requests included
    ceiling_rps: float = 5000.0  # never offer more
    width: float = 0.01  # half-width of the interval over N at which the search is content
    # Variance over mean of the arrivals per second: 0 evenly spaced, 1 Poisson.
    arrival_dispersion: float = 0.0
