"""Decimals of a figure that is shown with its limit."""

MOST = 9  # of a time in seconds: samples are in nanoseconds


def needed(value: float, limit: float, least: int) -> int:
    """Return how many decimals, `least` or more, show on which side of its limit a value is.

    Returns `least` if MOST decimals do not show it.
    """
    side = (value < limit, value > limit)
    for count in range(least, MOST + 1):
        shown, shown_limit = round(value, count), round(limit, count)
        if (shown < shown_limit, shown > shown_limit) == side:
            return count
    return least
