"""The figures of one trial, from its samples."""

from collections import Counter
from http import HTTPStatus

import numpy as np
from numpy.typing import NDArray

from loadstone.analysis.iterations import Iterations, iterations
from loadstone.analysis.model import TICK_S, Percentiles, Summary, Ticks
from loadstone.analysis.percentile import percentile
from loadstone.engine.samples import Outcome, Samples

WORDS = {
    Outcome.REFUSED: "connection refused",
    Outcome.CONNECT_FAILED: "no connection",
    Outcome.CONNECT_TIMEOUT: "connecting timed out",
    Outcome.TLS_FAILED: "TLS handshake failed",
    Outcome.WRITE_TIMEOUT: "sending timed out",
    Outcome.FIRST_BYTE_TIMEOUT: "no answer in time",
    Outcome.BODY_TIMEOUT: "answer not complete in time",
    Outcome.RESET: "connection reset",
    Outcome.CLOSED_EARLY: "connection closed early",
    Outcome.BAD_HTTP: "answer is not HTTP",
    Outcome.RAISED: "exception in the scenario",
    Outcome.TIMED_OUT: "not complete in time",
    Outcome.WORKER_DIED: "worker process died",
}
WARM_UP_SHARE = 1 / 6
MOST_POINTS = 200  # of the backlog that a slope is taken through: 19,900 pairs


def summarise(samples: Samples, counts: Ticks, rate_rps: float | None) -> Summary:
    """Give the figures of a trial whose load lasted as long as its ticks."""
    return summary_of(iterations(samples), counts, rate_rps)


def summary_of(rows: Iterations, counts: Ticks, rate_rps: float | None) -> Summary:
    """Give the figures as `summarise` does, of iterations that are joined already."""
    due_ns, sent_ns, done_ns = _of_ok(rows)
    latency_s = (done_ns - due_ns) / 1e9
    offered_s = len(counts.due) * TICK_S
    return Summary(
        load_s=_span_s(rows),
        due=len(rows.due_ns),
        ok=len(due_ns),
        errors=errors_of(rows),
        throughput_rps=float(counts.ok.sum() / offered_s) if offered_s else 0.0,
        latency=percentiles(latency_s * 1e3),
        service_time=percentiles((done_ns - sent_ns) / 1e6),
        backlog_growth=0.0 if rate_rps is None else growth(counts.in_flight / rate_rps),
        latency_slope=slope(due_ns / 1e9, latency_s),
    )


def _of_ok(rows: Iterations) -> tuple[NDArray[np.int64], ...]:
    """Give when those that ended well were due, sent and done; without a copy where all did."""
    columns = (rows.due_ns, rows.sent_ns, rows.done_ns)
    ok = rows.is_ok
    return columns if ok.all() else tuple(column[ok] for column in columns)


def percentiles(values_ms: NDArray[np.float64]) -> Percentiles:
    """Give mean, percentiles and maximum, NaN where there are no values; their order is lost."""
    if not len(values_ms):
        return Percentiles(*[float("nan")] * 6)
    mean_ms = float(values_ms.mean())
    p50, p90, p95, p99, most = percentile(values_ms, [50, 90, 95, 99, 100])
    return Percentiles(
        mean_ms=mean_ms,
        p50_ms=p50,
        p90_ms=p90,
        p95_ms=p95,
        p99_ms=p99,
        max_ms=most,
    )


def growth(backlog_s: NDArray[np.float64]) -> float:
    """Median slope between all pairs of ticks (Theil-Sen), in seconds of work per second."""
    # A long trial's ticks are thinned; the first second still fills the workers.
    settled = backlog_s[int(1 / TICK_S) :]
    stride = -(-len(settled) // MOST_POINTS) or 1
    y = settled[::stride]
    if len(y) < 2:
        return 0.0
    i, j = np.triu_indices(len(y), k=1)
    (median,) = percentile((y[j] - y[i]) / ((j - i) * stride * TICK_S), [50])
    return median


def slope(at_s: NDArray[np.float64], latency_s: NDArray[np.float64]) -> float:
    """Least-squares slope in s per s without the first sixth (60 s of 360: ISP RAS 2015)."""
    if len(at_s) < 3:
        return 0.0
    judged = at_s >= at_s.min() + WARM_UP_SHARE * (at_s.max() - at_s.min())
    x, y = at_s[judged], latency_s[judged]
    x -= x.mean()
    spread = float(x @ x)
    return float(x @ y) / spread if spread > 0 else 0.0


def _span_s(rows: Iterations) -> float:
    if not len(rows.due_ns):
        return 0.0
    return float(max(rows.done_ns.max(), rows.due_ns.max()) - rows.due_ns.min()) / 1e9


def errors_of(rows: Iterations) -> tuple[tuple[str, int], ...]:
    """Count what failed, in words, the most frequent first."""
    failed = rows.is_failed
    kinds = np.stack([rows.outcome[failed].astype(int), rows.status[failed].astype(int)])
    counts: Counter[str] = Counter()
    for outcome, status, count in zip(*_distinct(kinds), strict=True):
        counts[in_words(Outcome(outcome), status)] += count
    return tuple(counts.most_common())


def _distinct(kinds: NDArray[np.int64]) -> tuple[list[int], list[int], list[int]]:
    pairs, counts = np.unique(kinds, axis=1, return_counts=True)
    return pairs[0].tolist(), pairs[1].tolist(), counts.tolist()


def in_words(outcome: Outcome, status: int) -> str:
    """Say how a request ended."""
    if outcome is not Outcome.HTTP_STATUS:
        return WORDS[outcome]
    try:
        return f"{status} {HTTPStatus(status).phrase}"
    except ValueError:
        return f"status {status}"
