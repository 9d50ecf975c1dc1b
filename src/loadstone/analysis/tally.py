"""The figures of a long run, from its file: memory does not grow with the number of requests."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from loadstone.analysis.iterations import Iterations, iterations
from loadstone.analysis.model import TICK_S, Percentiles, Summary, Ticks
from loadstone.analysis.summary import WARM_UP_SHARE, errors_of, growth
from loadstone.analysis.ticks import TICK_NS
from loadstone.engine.parquet import SampleFile
from loadstone.engine.samples import Samples

# A bucket is what a float64 keeps of exponent and ten bits of fraction: 1/1024 of its value wide,
# so that its middle is at most 0.05 % off.
_DROPPED_BITS = 52 - 10
_LEAST_BUCKET = 1023 << 10  # that of 1 ns
_BUCKETS = 64 << 10  # up to 2^64 ns


@dataclass(slots=True)
class Distribution:
    """Times, counted in buckets; percentiles are within 0.05 %, mean and maximum exact."""

    counts: NDArray[np.int64] = field(default_factory=lambda: np.zeros(_BUCKETS, dtype=np.int64))
    sum_ns: float = 0.0
    max_ns: int = 0
    min_ns: int = 2**63 - 1

    def add(self, times_ns: NDArray[np.int64]) -> None:
        """Count further times; one below 1 ns counts as 1 ns."""
        if not len(times_ns):
            return
        bits = np.maximum(times_ns, 1).astype(np.float64).view(np.int64)
        buckets = (bits >> _DROPPED_BITS) - _LEAST_BUCKET
        self.counts += np.bincount(buckets, minlength=_BUCKETS)
        self.sum_ns += float(times_ns.sum())
        self.max_ns = max(self.max_ns, int(times_ns.max()))
        self.min_ns = min(self.min_ns, int(times_ns.min()))

    @property
    def count(self) -> int:
        """How many times were counted."""
        return int(self.counts.sum())

    def at_ns(self, shares: Sequence[float]) -> list[float]:
        """Give the times below which these shares (0 to 1) lie; there must be some."""
        ranks = np.array(shares) * (self.count - 1)
        buckets = np.searchsorted(np.cumsum(self.counts), ranks, side="right") + _LEAST_BUCKET
        middles = (buckets << _DROPPED_BITS) + (1 << (_DROPPED_BITS - 1))
        times_ns = middles.astype(np.int64).view(np.float64)
        return np.clip(times_ns, self.min_ns, self.max_ns).tolist()  # type: ignore[no-any-return]

    def percentiles(self) -> Percentiles:
        """Give mean, percentiles and maximum; NaN where there are no values."""
        count = self.count
        if not count:
            return Percentiles(*[float("nan")] * 6)
        p50, p90, p95, p99 = (time_ns / 1e6 for time_ns in self.at_ns((0.5, 0.9, 0.95, 0.99)))
        mean_ms = self.sum_ns / count / 1e6
        return Percentiles(mean_ms, p50, p90, p95, p99, self.max_ns / 1e6)


@dataclass(slots=True)
class Tally:
    """What is counted of a run, group by group."""

    latency: Distribution = field(default_factory=Distribution)
    service_time: Distribution = field(default_factory=Distribution)
    errors: Counter[str] = field(default_factory=Counter)
    due: int = 0
    ok: int = 0
    first_due_ns: int | None = None
    last_due_ns: int = 0
    last_ns: int = 0
    # Per tick: iterations due, ended well, failed.
    ticks: list[NDArray[np.float64]] = field(default_factory=lambda: [np.zeros(0)] * 3)
    # Per tick of the due time, for the slope: n, sums of x, y, x y, x x.
    sums: list[NDArray[np.float64]] = field(default_factory=lambda: [np.zeros(0)] * 5)

    def add(self, rows: Iterations) -> None:
        """Count further iterations."""
        if not len(rows.due_ns):
            return
        ok = rows.is_ok
        due_ns, done_ns = rows.due_ns[ok], rows.done_ns[ok]
        self.latency.add(done_ns - due_ns)
        self.service_time.add(done_ns - rows.sent_ns[ok])
        self.errors.update(dict(errors_of(rows)))
        self.due += len(rows.due_ns)
        self.ok += len(due_ns)
        earliest = int(rows.due_ns.min())
        known = self.first_due_ns
        self.first_due_ns = earliest if known is None else min(known, earliest)
        self.last_due_ns = max(self.last_due_ns, int(rows.due_ns.max()))
        self.last_ns = max(self.last_ns, self.last_due_ns, int(rows.done_ns.max()))
        times = (rows.due_ns, done_ns, rows.done_ns[rows.is_failed])
        self.ticks = [_added(a, b) for a, b in zip(self.ticks, times, strict=True)]
        x, y = due_ns / 1e9, (done_ns - due_ns) / 1e9
        weights = (None, x, y, x * y, x * x)
        self.sums = [_added(a, due_ns, w) for a, w in zip(self.sums, weights, strict=True)]

    def counts(self, load_s: float) -> Ticks:
        """Give the counts per whole tick of the load."""
        count = int(load_s / TICK_S + 1e-6)
        due, ok, failed = (_padded(column, count)[:count].astype(np.int64) for column in self.ticks)
        return Ticks(due=due, ok=ok, failed=failed, in_flight=np.cumsum(due - ok - failed))

    def summary(self, counts: Ticks, rate_rps: float | None) -> Summary:
        """Give the figures of a run whose load lasted as long as its ticks."""
        offered_s = len(counts.due) * TICK_S
        return Summary(
            load_s=(self.last_ns - (self.first_due_ns or 0)) / 1e9,
            due=self.due,
            ok=self.ok,
            errors=tuple(self.errors.most_common()),
            throughput_rps=float(counts.ok.sum() / offered_s) if offered_s else 0.0,
            latency=self.latency.percentiles(),
            service_time=self.service_time.percentiles(),
            backlog_growth=0.0 if rate_rps is None else growth(counts.in_flight / rate_rps),
            latency_slope=self._slope(),
        )

    def _slope(self) -> float:
        """Least-squares slope without the first sixth, to a tick (see `summary.slope`)."""
        begins_ns = self.first_due_ns or 0
        judged_ns = begins_ns + WARM_UP_SHARE * (self.last_due_ns - begins_ns)
        begin = -int(-judged_ns // TICK_NS)
        n, x, y, xy, xx = (float(column[begin:].sum()) for column in self.sums)
        spread = xx - x * x / n if n else 0.0
        return (xy - x * y / n) / spread if n >= 3 and spread > 0 else 0.0


def tally(file: SampleFile) -> Tally:
    """Count a whole file."""
    counted = Tally()
    for rows in joined(file):
        counted.add(rows)
    return counted


def joined(file: SampleFile) -> Iterator[Iterations]:
    """Give the iterations, each once its last row has come."""
    return (iterations(rows) for rows in whole(file))


def whole(file: SampleFile) -> Iterator[Samples]:
    """Give the rows of whole iterations, as soon as they are; two bytes of memory an iteration.

    Where every row is of the first action, each is an iteration, and takes none.
    """
    last = _last_groups(file)
    carried: list[Samples] = []
    for number, group in enumerate(file.groups()):
        rows = Samples.joined([*carried, group])
        if last is None:
            yield rows
            continue
        goes_on = last[rows.iteration] > number
        carried = [rows.picked(goes_on)]
        yield rows.picked(~goes_on)


def _last_groups(file: SampleFile) -> NDArray[np.uint16] | None:
    """Give the number of the last row group in which each iteration has a row."""
    last = np.zeros(0, dtype=np.uint16)
    has_steps = False
    for number, group in enumerate(file.groups()):
        has_steps = has_steps or bool(group.action.any())
        most = int(group.iteration.max()) + 1
        if most > len(last):
            last = np.concatenate([last, np.zeros(max(most, len(last)), dtype=np.uint16)])
        last[group.iteration] = number
    return last if has_steps else None


def _added(
    total: NDArray[np.float64],
    times_ns: NDArray[np.int64],
    weights: NDArray[np.float64] | None = None,
) -> NDArray[np.float64]:
    more = np.bincount(np.maximum(times_ns, 0) // TICK_NS, weights).astype(np.float64)
    length = max(len(total), len(more))
    return np.add(_padded(total, length), _padded(more, length), dtype=np.float64)


def _padded(column: NDArray[np.float64], length: int) -> NDArray[np.float64]:
    return np.pad(column, (0, max(length - len(column), 0)))
