"""Judges iterations whose durations a test gives, by the way that samples take."""

from collections.abc import Sequence

import numpy as np

from loadstone.analysis.criteria import Criterion
from loadstone.analysis.sla import Check, judge_criteria
from loadstone.analysis.stats import ActionTimes, Aggregator, EndedIterations
from loadstone.analysis.sums import WorkloadIterations


def judged(
    criteria: Sequence[Criterion], rows: WorkloadIterations, load_s: float = 10.0
) -> tuple[Check, ...]:
    """Judge iterations in the order of their ends."""
    count, failed = len(rows.failed), np.asarray(rows.failed, dtype=np.bool_)
    nothing = np.zeros(count)
    over = EndedIterations(
        np.arange(count), nothing, rows.duration_s, rows.duration_s, nothing, failed, 0
    )
    made = [
        ActionTimes(name, rows.action_s[name], rows.action_count[name], np.zeros(count, np.bool_))
        for name in rows.action_s
    ]
    aggregator = Aggregator.of(criteria, exact=True)
    aggregator.add_ended(over, made)
    aggregator.last_ns = round(load_s * 1e9)
    return judge_criteria(criteria, aggregator.sums())
