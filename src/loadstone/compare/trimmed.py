"""The trimmed mean of paired differences, which a few outliers do not move.

A pause of one side (a full garbage collection, a checkpoint of the database) or a burst of other
work changes one pair far more than the others. The mean without the lowest and the highest eighth
hardly depends on it. Its standard error comes from the winsorized values (Tukey and McLaughlin,
Sankhya A 25, 1963; Yuen, Biometrika 61, 1974). With fewer than eight, nothing is left out.
"""

from collections.abc import Sequence
from math import nan, sqrt

import numpy as np
from numpy.typing import NDArray

TRIMMED = 0.125  # share that is left out at each end

Values = Sequence[float] | NDArray[np.float64]


def degrees(count: int) -> int:
    """Return the degrees of freedom of the trimmed mean of so many values."""
    return count - 2 * _left_out(count) - 1


def mean(values: Values) -> float:
    """Return the trimmed mean."""
    cut = _left_out(len(values))
    return float(np.sort(values)[cut : len(values) - cut].mean())


def deviation(values: Values) -> float:
    """Return the standard error of the trimmed mean times the root of the count; NaN below two.

    It compares with a standard deviation. With nothing left out, it is that of the values.
    """
    count = len(values)
    if count < 2:
        return nan
    cut = _left_out(count)
    in_order = np.sort(values)
    winsorized = np.clip(in_order, in_order[cut], in_order[-cut - 1]).std(ddof=1)
    kept = count - 2 * cut
    return float(winsorized) * sqrt(count * (count - 1) / (kept * (kept - 1)))


def _left_out(count: int) -> int:
    """Return how many values are left out at each end."""
    return int(TRIMMED * count)
