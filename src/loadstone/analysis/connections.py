"""Detects that the number of connections limited a trial."""

import numpy as np

from loadstone.analysis.iterations import iterations
from loadstone.analysis.model import Cause, TrialState, Verdict
from loadstone.engine.samples import Samples

LEAST_WAITING = 0.05  # share of the iterations that waited for a connection
LEAST_FIRST = 8
FIRST_SHARE = 1 / 16  # of the connections: so many first iterations give the response time
# Below this ratio the service was as fast with all connections busy as at the beginning, so more
# connections would have given more throughput (Little's law).
QUEUEING = 1.5


def starved(samples: Samples, max_connections: int | None) -> Verdict | None:
    """Return a verdict if all connections were busy while the service itself had no queue.

    A saturated service becomes slower the more requests it has. A service that is as fast with all
    connections in use as with few would have handled more requests over more connections, so the
    load generator was the limit.
    """
    if max_connections is None or len(samples) <= max_connections:
        return None
    rows = iterations(samples)
    if len(rows.due_ns) <= max_connections:
        return None
    order = np.argsort(rows.due_ns, kind="stable")
    due_ns = rows.due_ns[order]
    ended = np.searchsorted(np.sort(rows.done_ns), due_ns, side="right")
    is_waiting = (np.arange(1, len(due_ns) + 1) - ended) > max_connections
    if is_waiting.mean() < LEAST_WAITING:
        return None
    took_s = (rows.done_ns - rows.sent_ns)[order] / 1e9
    is_ok = rows.is_ok[order]
    late = took_s[is_waiting & is_ok]
    first = took_s[is_ok][: max(LEAST_FIRST, int(FIRST_SHARE * max_connections))]
    if not len(late) or not len(first) or np.median(late) >= QUEUEING * np.median(first):
        return None
    reason = (
        f"all {max_connections} connections were in use and answers still took "
        f"{np.median(late):.3g} s, {np.median(first):.3g} s at first: more connections would have "
        f"brought more answers"
    )
    return Verdict(TrialState.INVALID, (reason,), Cause.CONNECTIONS)
