"""The starts of two services whose pairs of trials are compared.

What a start decides is the same for all requests until the next one: where memory lies, how strings
are hashed. So two deployments with equal settings differ (Mytkowicz et al., ASPLOS 2009), and
however many pairs of one start do not show it. A comparison therefore has several starts, which are
one level of repetition more (Kalibera and Jones, ISMM 2013).

The pairs of one start have the difference between starts in common, so they tell less than as many
pairs of as many starts. This is the design effect of a sample in clusters (Kish, "Survey Sampling",
1965, section 5.4).
"""

from collections import Counter
from collections.abc import Sequence
from math import sqrt
from statistics import fmean

from loadstone.compare import trimmed

# Standard deviation of the log ratio of two equal Keystones between starts, at least. Where the
# means of the starts of one comparison differ by more, more is assumed.
BETWEEN_STARTS = 0.01
PAIRS_OF_A_START = 8  # enough to find a large difference without a second start


def most_starts(pairs: int) -> int:
    """Return how many starts so many pairs have."""
    return -(-pairs // PAIRS_OF_A_START)


def scatter(ratios: Sequence[float], starts: Sequence[int]) -> float:
    """Return the deviation of the pairs' log ratios (`trimmed.deviation`).

    `starts` has the number of the start of each pair, shape as `ratios`; empty if the services
    were not started anew. Then the deviation is that of as many independent pairs whose mean is
    known as well as that of these.
    """
    found, count = trimmed.deviation(ratios), len(ratios)
    if not starts or count < 2:
        return found
    # Pairs of a start, as a random pair finds it. The scatter of pairs holds some of that between
    # starts already, and all of it if each pair has a start of its own.
    of_a_start = sum(size * size for size in Counter(starts).values()) / count
    held = (count - of_a_start) / (count - 1)
    between = max(BETWEEN_STARTS**2, _variance_between(ratios, starts))
    return sqrt(found**2 + between * (of_a_start - held))


def _variance_between(ratios: Sequence[float], starts: Sequence[int]) -> float:
    """Return the variance between starts beyond that of their pairs; 0 if it is not known.

    The analysis of variance of unequal groups (Searle, Casella and McCulloch, "Variance
    Components", 1992, section 3.6).
    """
    sizes = Counter(starts)
    count, groups = len(ratios), len(sizes)
    if groups < 2 or count == groups:
        return 0.0
    of_start = {
        one: fmean(r for r, s in zip(ratios, starts, strict=True) if s == one) for one in sizes
    }
    mean = fmean(ratios)
    between = sum(size * (of_start[one] - mean) ** 2 for one, size in sizes.items())
    within = sum((r - of_start[s]) ** 2 for r, s in zip(ratios, starts, strict=True))
    size = (count - sum(one * one for one in sizes.values()) / count) / (groups - 1)
    return (between / (groups - 1) - within / (count - groups)) / size
