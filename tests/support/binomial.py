"""Bounds on counts, for claims that hold in a share of all cases."""

from scipy.stats import binom

SURPRISE = 0.001  # chance of a false alarm, if the claim just holds


def most_failures(cases: int, failing_share: float) -> int:
    """Return how many of the cases may fail, if at most this share of all cases does."""
    return int(binom.isf(SURPRISE, cases, failing_share))
