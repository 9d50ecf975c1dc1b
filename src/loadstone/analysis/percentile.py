"""Percentiles without importing numpy.ma (2 MB), as np.percentile and np.median do."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


def percentile(values: NDArray[np.float64], percents: Sequence[float]) -> list[float]:
    """Return percentiles of at least one value; reorders the array.

    Values are interpolated linearly (type 7 of Hyndman and Fan 1996, as np.percentile).
    """
    places = np.asarray(percents) / 100 * (len(values) - 1)
    below, above = np.floor(places).astype(np.intp), np.ceil(places).astype(np.intp)
    values.partition(np.concatenate([below, above]))
    low, high = values[below], values[above]
    found: list[float] = (low + (high - low) * (places - below)).tolist()
    return found
