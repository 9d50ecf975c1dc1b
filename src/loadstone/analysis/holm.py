"""Holm's method: p-values of several tests, adjusted to bound the family-wise error rate."""

from collections.abc import Sequence


def adjusted(ps: Sequence[float | None]) -> tuple[float | None, ...]:
    """Return the adjusted p-values in the same order; None stays None and counts as no test.

    Holm, A simple sequentially rejective multiple test procedure, Scand. J. Statist. 6, 1979.
    """
    tests = sorted((p, place) for place, p in enumerate(ps) if p is not None)
    found: list[float | None] = [None] * len(ps)
    highest = 0.0
    for rank, (p, place) in enumerate(tests):
        highest = max(highest, min(1.0, (len(tests) - rank) * p))
        found[place] = highest
    return tuple(found)
