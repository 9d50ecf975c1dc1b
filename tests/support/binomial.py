"""Bounds on counts, for claims that hold in a share of all cases."""

from math import comb

SURPRISE = 0.001  # chance of a false alarm, if the claim just holds


def most_failures(cases: int, failing_share: float) -> int:
    """Return how many of the cases may fail, if at most this share of all cases does."""
    more = 1.0  # the chance that more fail
    for failures in range(cases + 1):
        chance = comb(cases, failures) * failing_share**failures
        more -= chance * (1 - failing_share) ** (cases - failures)
        if more <= SURPRISE + 1e-12:  # what rounding may add
            return failures
    return cases
