"""The slowest requests that carried a `traceparent`, for a look-up in the service's tracing."""

from collections.abc import Iterable, Sequence
from heapq import nlargest

import numpy as np

from loadstone.analysis.model import TracedRequest
from loadstone.analysis.stats import in_words
from loadstone.engine.callables.model import PAUSE
from loadstone.engine.parquet import SampleFile
from loadstone.engine.samples import Outcome, Samples
from loadstone.plan.trace import Trace

MOST = 10  # of a trial


def slowest(
    samples: Samples | SampleFile, trace: Trace, actions: Sequence[str]
) -> tuple[TracedRequest, ...]:
    """Return the slowest traced requests of a load, the slowest first."""
    groups: Iterable[Samples] = samples.groups() if isinstance(samples, SampleFile) else (samples,)
    found = [one for group in groups for one in _of_group(group, trace, actions)]
    return tuple(nlargest(MOST, found, key=lambda one: one.latency_s))


def _of_group(samples: Samples, trace: Trace, actions: Sequence[str]) -> Iterable[TracedRequest]:
    # The rows of pauses that were cut off look like requests without a response.
    pauses = [index for index, name in enumerate(actions) if name == PAUSE]
    was_sent = samples.is_request & (samples.sent_ns >= 0) & ~np.isin(samples.action, pauses)
    rows = samples.picked(was_sent & trace.is_traced(samples.action, samples.iteration))
    order = np.argsort(-rows.latency_ns, kind="stable")[:MOST]
    ids = trace.ids(rows.action[order], rows.iteration[order])
    for row, trace_id in zip(order.tolist(), ids, strict=True):
        outcome, status = Outcome(int(rows.outcome[row])), int(rows.status[row])
        yield TracedRequest(
            trace_id,
            actions[int(rows.action[row])],
            int(rows.iteration[row]),
            int(rows.due_ns[row]) / 1e9,
            int(rows.latency_ns[row]) / 1e9,
            str(status) if outcome is Outcome.OK else in_words(outcome, status),
        )
