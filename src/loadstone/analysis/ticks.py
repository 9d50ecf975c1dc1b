"""Counts of iterations over time: what a judge and a search look at."""

import numpy as np
from numpy.typing import NDArray

from loadstone.analysis.iterations import Iterations, iterations
from loadstone.analysis.model import TICK_S, Ticks
from loadstone.engine.samples import Samples

TICK_NS = int(TICK_S * 1e9)


def ticks(samples: Samples, load_s: float) -> Ticks:
    """Count iterations due, ended well, failed per whole tick of the load, and those in flight."""
    return ticks_of(iterations(samples), load_s)


def ticks_of(rows: Iterations, load_s: float) -> Ticks:
    """Count as `ticks` does, of iterations that are joined already."""
    count = int(load_s / TICK_S + 1e-6)
    due = _per_tick(rows.due_ns, count)
    ended = _per_tick(rows.done_ns[rows.has_ended], count)
    failed = _per_tick(rows.done_ns[rows.is_failed], count)
    ok = ended - failed
    return Ticks(due=due, ok=ok, failed=failed, in_flight=np.cumsum(due - ok - failed))


def _per_tick(times_ns: NDArray[np.int64], count: int) -> NDArray[np.int64]:
    # What lies outside is counted in a place of its own on either side.
    place = np.clip(times_ns // TICK_NS + 1, 0, count + 1)
    return np.bincount(place, minlength=count + 2)[1:-1].astype(np.int64)
