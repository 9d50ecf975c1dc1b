"""The backlog of a constant-rate trial, in seconds of offered work."""

import math

import numpy as np
from numpy.typing import NDArray

from loadstone.analysis.alarm import LEAST_REQUESTS, SETTLED_S
from loadstone.analysis.model import TICK_S, Ticks

LEAST_RISE_S = 0.3
# Share of the trial: without a measured dispersion, a faster rise counts as growth
# (0.5 % of 300 s: no false alarm at 97 % load except with Poisson arrivals, docs/methodology.md).
RISE_SHARE = 0.005
NEARLY = 0.75  # share of the rise that is degradation; between the two the trial is undecided


def backlog_s(counts: Ticks, rate_rps: float, settle_s: float = SETTLED_S) -> NDArray[np.float64]:
    """Return the backlog after each tick, from the first tick that ends after `settle_s`."""
    settled = math.ceil(settle_s / TICK_S - 1e-6)
    return np.asarray(counts.in_flight[settled:] / rate_rps, dtype=np.float64)


def rise_s(backlog: NDArray[np.float64]) -> float:
    """Return the growth from the trial's first third to its last fifth (medians)."""
    n = len(backlog)
    if n < 4:
        return 0.0
    start = backlog[n // 10 : max(n // 3, 2)]
    end = backlog[-max(n // 5, 2) :]
    return float(np.median(end) - np.median(start))


def least_rise_s(rate_rps: float, planned_s: float) -> float:
    """Return the rise that counts as degradation if the search sets none."""
    return max(LEAST_RISE_S, LEAST_REQUESTS / rate_rps, RISE_SHARE * planned_s)


def onset_s(backlog: NDArray[np.float64], settle_s: float = SETTLED_S) -> float:
    """Return when the growth began, assuming linear growth from a fifth of the final rise on."""
    least, last = float(backlog.min()), float(backlog[-1])
    low = np.flatnonzero(backlog <= least + 0.2 * (last - least))
    at_s = settle_s + (int(low[-1]) + 1) * TICK_S
    end_s = settle_s + len(backlog) * TICK_S
    return max(0.0, at_s - (end_s - at_s) / 4)
