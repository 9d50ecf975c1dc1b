"""Columns for charts: latency over time, as points and as percentiles per bin."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from loadstone.analysis.arrays import Bools, Floats
from loadstone.analysis.stats import ended
from loadstone.engine.samples import Samples

# With fewer values in a bin, a percentile depends on single requests.
LEAST_PER_BIN = 8
NICE_S = (0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0, 600.0)


@dataclass(frozen=True, slots=True)
class Points:
    """One point per iteration that ended, in the order of their due times, shape (n,) each."""

    due_s: Floats
    latency_ms: Floats
    is_ok: Bools

    def __len__(self) -> int:
        return len(self.due_s)


@dataclass(frozen=True, slots=True)
class Bins:
    """Latency of the successful iterations by interval of due time."""

    middle_s: Floats
    p50_ms: Floats


def points(samples: Samples, actions: Sequence[str]) -> Points:
    """Return latency without pauses against due time; `actions` names the samples' actions."""
    rows = ended(samples, actions)
    order = np.argsort(rows.start_s, kind="stable")
    return Points(
        due_s=rows.start_s[order],
        latency_ms=1000 * rows.duration_s[order],
        is_ok=~rows.failed[order],
    )


def thinned(every: Points, most: int) -> Points:
    """Keep at most this many points: the slowest tenth of them, the rest evenly over time."""
    if len(every) <= most:
        return every
    slowest = np.argsort(every.latency_ms, kind="stable")[-(most // 10) :]
    even = np.linspace(0, len(every) - 1, most - len(slowest)).astype(np.int64)
    kept = np.union1d(slowest, even)
    return Points(every.due_s[kept], every.latency_ms[kept], every.is_ok[kept])


def bins(every: Points, most: int) -> Bins:
    """Return medians per interval of due time, at most this many intervals."""
    ok = every.is_ok
    due_s, latency_ms = every.due_s[ok], every.latency_ms[ok]
    if not len(due_s):
        nothing = np.empty(0)
        return Bins(nothing, nothing)
    span_s = max(float(due_s[-1] - due_s[0]), NICE_S[0])
    wanted_s = max(span_s / most, LEAST_PER_BIN * span_s / len(due_s))
    width_s = next((nice for nice in NICE_S if nice >= wanted_s), wanted_s)
    edges = np.flatnonzero(np.diff(np.floor(due_s / width_s))) + 1
    groups = np.split(latency_ms, edges)
    starts = np.floor(due_s[np.append(0, edges)] / width_s) * width_s
    full = [i for i, group in enumerate(groups) if len(group) >= LEAST_PER_BIN // 2]
    return Bins(
        middle_s=starts[full] + width_s / 2,
        p50_ms=np.array([np.percentile(groups[i], 50) for i in full]),
    )


def shares(every: Points) -> tuple[Floats, Floats]:
    """Return latencies in ms, and the percentage of iterations that succeeded within each."""
    if not every.is_ok.any():
        return np.empty(0), np.empty(0)
    percent = np.append(np.arange(0.0, 99.5, 0.5), [99.5, 99.9, 100.0])
    return np.percentile(every.latency_ms[every.is_ok], percent), percent
