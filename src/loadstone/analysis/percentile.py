"""Percentiles, without numpy.ma, which np.percentile and np.median import for themselves (2 MB)."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


def percentile(values: NDArray[np.float64], percents: Sequence[float]) -> list[float]:
    """Return percentiles of one value or more, whose order is lost.

    Between two values they lie on the line (type 7 of Hyndman and Fan 1996, as np.percentile).
    """
    places = np.asarray(percents) / 100 * (len(values) - 1)
    below, above = np.floor(places).astype(np.intp), np.ceil(places).astype(np.intp)
    values.partition(np.concatenate([below, above]))
    low, high = values[below], values[above]
    found: list[float] = (low + (high - low) * (places - below)).tolist()
    return found
