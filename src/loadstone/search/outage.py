"""Notices that a service was gone for a part of a trial: restarted, or cut off."""

from itertools import pairwise

import numpy as np

from loadstone.analysis.model import TICK_S, Trial

REFUSED = "connection refused"  # nobody listens: not what an overloaded service does
LEAST_MISSED = 8.0  # answers at the pace of the rest of the trial: fewer may be missing by chance


def outage_s(trial: Trial) -> float:
    """Give the longest stretch in which requests failed and none ended well; 0: there was none.

    A service that is overloaded or refuses some goes on answering others meanwhile.
    """
    counts = trial.ticks
    is_silent = (counts.ok == 0).astype(np.int8)
    edges = np.flatnonzero(np.diff(np.concatenate([[0], is_silent, [0]])))
    stretches = list(pairwise(edges.tolist()))[::2]
    gone = [end - begin for begin, end in stretches if counts.failed[begin:end].any()]
    longest = max(gone, default=0)
    missed = longest * float(counts.ok.sum()) / max(1, len(counts.ok) - longest)
    return longest * TICK_S if missed >= LEAST_MISSED else 0.0


def is_refused(trial: Trial) -> bool:
    """Say whether there was nobody to connect to for a part of the trial."""
    return any(name == REFUSED for name, _ in trial.summary.errors)
