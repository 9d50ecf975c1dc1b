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

from loadstone.compare import trimmed

# Standard deviation of the log ratio of two equal Keystones between starts.
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
    return sqrt(found**2 + BETWEEN_STARTS**2 * (of_a_start - held))
