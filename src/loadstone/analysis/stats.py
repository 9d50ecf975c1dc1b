"""The statistics of a trial, from samples in memory or in a file."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from http import HTTPStatus

import numpy as np
from numpy.typing import NDArray

from loadstone.analysis.arrays import Bools, Floats, Ints
from loadstone.analysis.criteria import Criterion, Outliers
from loadstone.analysis.iterations import Iterations, iterations
from loadstone.analysis.model import TICK_S, Durations, Failure, Stats, Ticks
from loadstone.analysis.sums import OutlierWatch, Sums, WorkloadIterations
from loadstone.engine import parquet
from loadstone.engine.callables.model import ITERATION, PAUSE
from loadstone.engine.parquet import SampleFile
from loadstone.engine.samples import Outcome, Samples

# Up to so many rows are read at once, for exact percentiles: 76 MB of samples, about 300 MB in all.
EXACT_ROWS = 2_000_000
BLOCK_ROWS = 500_000  # rows in memory at a time, beyond EXACT_ROWS
TICK_NS = int(TICK_S * 1e9)
WARM_UP_SHARE = 1 / 6
MOST_POINTS = 200  # points of the backlog for the median slope: 19,900 pairs

# A bucket is given by a float64's exponent and the first ten bits of its fraction. It is 1/1024 of
# its value wide, so its middle is at most 0.05 % off.
_DROPPED_BITS = 52 - 10
_LEAST_BUCKET = 1023 << 10  # that of 1 ns
_BUCKETS = 64 << 10  # up to 2^64 ns
_SHOWN = (50.0, 90.0, 95.0, 99.0)

WORDS = {
    Outcome.REFUSED: "connection refused",
    Outcome.CONNECT_FAILED: "no connection",
    Outcome.CONNECT_TIMEOUT: "connecting timed out",
    Outcome.TLS_FAILED: "TLS handshake failed",
    Outcome.CERTIFICATE_EXPIRED: "certificate expired",
    Outcome.WRITE_TIMEOUT: "sending timed out",
    Outcome.FIRST_BYTE_TIMEOUT: "no answer in time",
    Outcome.BODY_TIMEOUT: "answer not complete in time",
    Outcome.RESET: "connection reset",
    Outcome.CLOSED_EARLY: "connection closed early",
    Outcome.BAD_HTTP: "answer is not HTTP",
    Outcome.NO_PORT: "no local port left on this machine",
    Outcome.NO_FILE: "no further open file allowed on this machine",
    Outcome.TOO_LONG: "answer too long to search for what later steps need",
    Outcome.WRONG_CONTENT: "answer with another content than expected",
    Outcome.NONE_FREE: "no value of those that iterations take in turn was free",
    Outcome.RAISED: "exception in the scenario",
    Outcome.TIMED_OUT: "not complete in time",
    Outcome.WORKER_DIED: "worker process died",
}


@dataclass(frozen=True, slots=True)
class Computed:
    """Statistics, the timeline they were computed with, and the input of criteria."""

    stats: Stats
    timeline: Ticks
    sums: Sums


def compute_stats(
    samples: Samples | SampleFile,
    actions: Sequence[str],
    criteria: Iterable[Criterion] = (),
    rate_rps: float | None = None,
    offered_s: float | None = None,
) -> Computed:
    """Compute the statistics of a trial; `actions` names the samples' actions.

    Load was offered for `offered_s` seconds, else until the last iteration ended. With more than
    EXACT_ROWS rows, percentiles are within 0.05 %, and memory does not grow with the rows.
    """
    count = samples.rows if isinstance(samples, SampleFile) else len(samples)
    if count > EXACT_ROWS:
        return stats_of_blocks(whole(samples), actions, criteria, rate_rps, offered_s)
    if isinstance(samples, SampleFile):
        samples = parquet.read(samples.path)
    aggregator = Aggregator.of(criteria, exact=True)
    aggregator.add(samples, actions)
    return aggregator.computed(rate_rps, offered_s)


def stats_of_blocks(
    blocks: Iterable[Samples],
    actions: Sequence[str],
    criteria: Iterable[Criterion] = (),
    rate_rps: float | None = None,
    offered_s: float | None = None,
) -> Computed:
    """Compute the same from blocks of whole iterations, one after another."""
    aggregator = Aggregator.of(criteria)
    for block in blocks:
        aggregator.add(block, actions)
    return aggregator.computed(rate_rps, offered_s)


def whole(samples: Samples | SampleFile) -> Iterator[Samples]:
    """Yield the rows of whole iterations, block by block.

    It takes two bytes of memory per iteration, and none if every row is of the first action: each
    row is then an iteration.
    """
    last = _last_blocks(samples)
    carried: list[Samples] = []
    for number, block in enumerate(_blocks(samples)):
        rows = Samples.joined([*carried, block])
        if last is None:
            yield rows
            continue
        goes_on = last[rows.iteration] > number
        carried = [rows.picked(goes_on)]
        yield rows.picked(~goes_on)


def _blocks(samples: Samples | SampleFile) -> Iterable[Samples]:
    if isinstance(samples, SampleFile):
        return samples.groups()
    return (
        samples.picked(slice(start, start + BLOCK_ROWS))
        for start in range(0, len(samples), BLOCK_ROWS)
    )


def _last_blocks(samples: Samples | SampleFile) -> NDArray[np.uint16] | None:
    """Return the number of the last block in which each iteration has a row."""
    last = np.zeros(0, dtype=np.uint16)
    has_steps = False
    for number, block in enumerate(_blocks(samples)):
        has_steps = has_steps or bool(block.action.any())
        most = int(block.iteration.max()) + 1
        if most > len(last):
            last = np.concatenate([last, np.zeros(max(most, len(last)), dtype=np.uint16)])
        last[block.iteration] = number
    return last if has_steps else None


@dataclass(frozen=True, slots=True)
class EndedIterations:
    """The ended iterations, one row each in the order of their ends; times in s since the start."""

    number: Ints
    start_s: Floats  # due
    duration_s: Floats
    service_s: Floats
    idle_s: Floats  # pauses, in none of the above
    failed: Bools
    cut_off: int

    def places(self, samples: Samples, actions: Sequence[int]) -> tuple[Ints, Ints]:
        """Return the samples of these actions: row of their iteration here, and index."""
        return _places(self.number, samples, actions)


def _places(
    number: Ints | NDArray[np.uint32], samples: Samples, actions: Sequence[int]
) -> tuple[Ints, Ints]:
    wanted = np.zeros(256, dtype=np.bool_)
    wanted[list(actions)] = True
    chosen = np.flatnonzero(wanted[samples.action])
    if not len(chosen) or not len(number):
        return chosen[:0], chosen[:0]
    first = int(number.min())
    row_of = np.full(int(number.max()) - first + 1, -1, dtype=np.int64)
    row_of[number - first] = np.arange(len(number))
    at = samples.iteration[chosen].astype(np.int64) - first
    is_here = (at >= 0) & (at < len(row_of))
    rows = np.where(is_here, row_of[np.where(is_here, at, 0)], -1)
    return rows[rows >= 0], chosen[rows >= 0]


def ended(
    samples: Samples, actions: Sequence[str], rows: Iterations | None = None
) -> EndedIterations:
    """Return the ended iterations by end; `actions` names the samples' actions."""
    rows = rows or iterations(samples)
    order = np.argsort(rows.done_ns, kind="stable")
    return _ended(samples, actions, rows, order[rows.has_ended[order]])


def _ended(
    samples: Samples, actions: Sequence[str], rows: Iterations, order: Ints
) -> EndedIterations:
    due, sent, done = rows.due_ns[order], rows.sent_ns[order], rows.done_ns[order]
    found = EndedIterations(
        number=rows.number[order].astype(np.int64),
        start_s=due / 1e9,
        duration_s=(done - due) / 1e9,
        # A request that was never sent (refused connection) has only a latency.
        service_s=(done - np.where(sent < 0, due, sent)) / 1e9,
        idle_s=np.zeros(len(order)),
        failed=rows.is_failed[order],
        cut_off=int((~rows.has_ended).sum()),
    )
    if not _named(actions, PAUSE):
        return found
    idle_s = pauses_s(samples, actions, found.number)
    return replace(
        found,
        duration_s=found.duration_s - idle_s,
        service_s=found.service_s - idle_s,
        idle_s=idle_s,
    )


def pauses_s(samples: Samples, actions: Sequence[str], number: Ints | NDArray[np.uint32]) -> Floats:
    """Return how long each iteration paused, shape (n,), by the iterations' numbers."""
    at, chosen = _places(number, samples, _named(actions, PAUSE))
    sent_ns = samples.sent_ns[chosen]
    # A pause that did not begin, because the iteration's time was over.
    paused = np.where(sent_ns < 0, 0, samples.done_ns[chosen] - sent_ns)
    return np.bincount(at, paused, len(number)).astype(np.float64) / 1e9


def _named(actions: Sequence[str], name: str) -> list[int]:
    return [index for index, other in enumerate(actions) if other == name]


@dataclass(frozen=True, slots=True)
class ActionTimes:
    """Durations of one action per ended iteration, in the order of `EndedIterations`."""

    name: str
    seconds: Floats
    count: Floats  # occurrences per iteration
    failed: Bools


def action_times(
    samples: Samples, actions: Sequence[str], rows: EndedIterations
) -> tuple[ActionTimes, ...]:
    """Return the times of each action name.

    Names in parentheses are Loadstone's own. If there are rows of whole iterations
    (engine/callables), the row of an action includes nested actions; else each row is a request,
    and an action is the sum of the requests in it (keystone/scenarios/atomics).
    """
    is_single = 0 < len(samples) == len(rows.number)
    if is_single and (samples.action == samples.action[0]).all():
        # Each row is an iteration, so no lookup is needed.
        paths, ones = _paths(actions[samples.action[0] :][:1]), np.ones(len(rows.number))
        return tuple(ActionTimes(path, rows.duration_s, ones, rows.failed) for path in paths)
    return tuple(_action_times(samples, actions, rows, path) for path in _paths(actions))


def _paths(actions: Sequence[str]) -> tuple[str, ...]:
    """Return the scenario's actions, each after the actions that contain it."""
    has_marks = ITERATION not in actions
    return tuple(dict.fromkeys(path for name in actions for _, path in _levels(name, has_marks)))


def _levels(name: str, has_marks: bool = True) -> list[tuple[str, str]]:
    """Return the prefix of each level, with and without the marks of repeats (#2)."""
    if name.startswith("("):
        return []
    raw = name.split("/")
    bare = [part.partition("#")[0] for part in raw] if has_marks else raw
    return [("/".join(raw[:n]), "/".join(bare[:n])) for n in range(1, len(raw) + 1)]


def _action_times(
    samples: Samples, actions: Sequence[str], rows: EndedIterations, path: str
) -> ActionTimes:
    size = len(rows.number)
    count = np.zeros(size)
    if ITERATION in actions:
        chosen = _named(actions, path)
        row, _ = rows.places(samples, chosen)
        count += np.bincount(row, minlength=size)
    else:
        # Each repeat has its own mark and counts as one action, however many requests it has.
        repeats: dict[str, list[int]] = {}
        for index, name in enumerate(actions):
            for raw, bare in _levels(name):
                if bare == path:
                    repeats.setdefault(raw, []).append(index)
        for own in repeats.values():
            row, _ = rows.places(samples, own)
            count += np.bincount(row, minlength=size) > 0
        chosen = [index for own in repeats.values() for index in own]
    row, found = rows.places(samples, chosen)
    bad = samples.outcome[found] != Outcome.OK
    return ActionTimes(
        path,
        np.bincount(row, samples.latency_ns[found] / 1e9, size).astype(np.float64),
        count,
        np.bincount(row, bad, size) > 0,
    )


def iterations_of(samples: Samples, actions: Sequence[str]) -> WorkloadIterations:
    """Return the ended iterations by end, as input of SLA rules."""
    rows = ended(samples, actions)
    own = action_times(samples, actions, rows)
    return WorkloadIterations(
        duration_s=rows.duration_s,
        failed=rows.failed,
        action_s={one.name: one.seconds for one in own},
        action_count={one.name: one.count for one in own},
    )


@dataclass(slots=True)
class ExactTimes:
    """Keeps every duration."""

    count: int = 0
    sum_s: float = 0.0
    _parts: list[Floats] = field(default_factory=list)

    def add(self, seconds: Floats) -> None:
        """Add durations; the order of the array may change."""
        self.count += len(seconds)
        self.sum_s += float(seconds.sum())
        self._parts.append(seconds)

    def at_s(self, percents: Sequence[float]) -> list[float]:
        """Return percentiles, interpolated linearly."""
        if len(self._parts) > 1:
            self._parts = [np.concatenate(self._parts)]
        return percentile(self._parts[0], percents)


@dataclass(slots=True)
class BucketTimes:
    """Counts durations in buckets: percentiles within 0.05 %, mean, minimum, maximum exact."""

    count: int = 0
    sum_s: float = 0.0
    _buckets: Ints = field(default_factory=lambda: np.zeros(_BUCKETS, dtype=np.int64))
    _min_ns: int = 2**63 - 1
    _max_ns: int = 0

    def add(self, seconds: Floats) -> None:
        """Add durations; values below 1 ns count as 1 ns."""
        if not len(seconds):
            return
        times_ns = np.rint(seconds * 1e9)
        bits = np.maximum(times_ns, 1.0).view(np.int64)
        self._buckets += np.bincount((bits >> _DROPPED_BITS) - _LEAST_BUCKET, minlength=_BUCKETS)
        self.count += len(seconds)
        self.sum_s += float(times_ns.sum()) / 1e9
        self._min_ns = min(self._min_ns, int(times_ns.min()))
        self._max_ns = max(self._max_ns, int(times_ns.max()))

    def at_s(self, percents: Sequence[float]) -> list[float]:
        """Return percentiles: the middles of their buckets."""
        ranks = np.array(percents) / 100 * (self.count - 1)
        places = np.searchsorted(np.cumsum(self._buckets), ranks, side="right") + _LEAST_BUCKET
        middles = (places << _DROPPED_BITS) + (1 << (_DROPPED_BITS - 1))
        times_ns = np.clip(middles.astype(np.int64).view(np.float64), self._min_ns, self._max_ns)
        ends_ns = {0: self._min_ns, 100: self._max_ns}
        return [
            ends_ns.get(percent, time_ns) / 1e9  # type: ignore[call-overload]
            for percent, time_ns in zip(percents, times_ns.tolist(), strict=True)
        ]


@dataclass(slots=True)
class Line:
    """Durations of the successes among `count` iterations."""

    times: "ExactTimes | BucketTimes"
    count: int = 0
    repeats: int = 1
    # Of successful iterations, for the SLA.
    sum_s: float = 0.0
    calls: float = 0.0

    def durations(self, name: str) -> Durations:
        """Return the row of the table of durations."""
        times = self.times
        if not times.count:
            nan = float("nan")
            return Durations(name, self.count, 0, nan, nan, nan, nan, nan, nan, nan, self.repeats)
        low, p50, p90, p95, p99, high = times.at_s([0, *_SHOWN, 100])
        mean_s = times.sum_s / times.count
        found = (low, p50, p90, p95, p99, high, mean_s)
        return Durations(name, self.count, times.count, *found, self.repeats)


@dataclass(slots=True)
class Aggregator:
    """Aggregates statistics from blocks of whole iterations."""

    exact: bool
    outliers: list[OutlierWatch]
    total: Line
    service: Line
    idle: Line
    actions: dict[str, Line] = field(default_factory=dict)
    failures: dict[tuple[str, int, int], Failure] = field(default_factory=dict)
    longest_s: float = 0.0
    first_due_ns: int | None = None
    last_due_ns: int = 0
    last_ns: int = 0
    cut_off: int = 0
    # Per tick: iterations due, succeeded, failed.
    ticks: list[Floats] = field(default_factory=lambda: [np.zeros(0)] * 3)
    # Per tick of the due time, for the slope: n, sums of x, y, x y, x x.
    slopes: list[Floats] = field(default_factory=lambda: [np.zeros(0)] * 5)

    @classmethod
    def of(cls, criteria: Iterable[Criterion], *, exact: bool = False) -> "Aggregator":
        """Return an aggregator that also collects the input of these criteria."""
        watches = [OutlierWatch(one) for one in criteria if isinstance(one, Outliers)]
        total, service, idle = (_line(exact=exact) for _ in range(3))
        return cls(exact, watches, total, service, idle)

    def add(self, samples: Samples, actions: Sequence[str], rows: Iterations | None = None) -> None:
        """Add the iterations of a block; `actions` names the samples' actions."""
        rows = rows or iterations(samples)
        if not len(rows.number):
            return
        if self.outliers:  # these depend on the order
            over = ended(samples, actions, rows)
        else:
            over = _ended(samples, actions, rows, np.flatnonzero(rows.has_ended))
        self.add_ended(over, action_times(samples, actions, over))
        for failure in _failures(samples, actions, rows):
            self._add_failure(failure)
        self._add_times(rows)
        self._add_slope(over)

    def add_ended(self, over: EndedIterations, actions: Iterable[ActionTimes]) -> None:
        """Add ended iterations and the times of their actions."""
        good = ~over.failed
        self.idle.count += len(good)
        for line, seconds in ((self.total, over.duration_s), (self.service, over.service_s)):
            line.times.add(seconds[good])
            line.count += len(good)
        if over.idle_s.any():
            self.idle.times.add(over.idle_s[good])
        for one in actions:
            self._add_action(one, good)
        for watch in self.outliers:
            for value in over.duration_s[good].tolist():
                watch.sees(value)
        self.cut_off += over.cut_off
        self.longest_s = max(self.longest_s, float(over.duration_s.max(initial=0.0)))

    def _add_action(self, one: ActionTimes, good: Bools) -> None:
        there = one.count > 0
        if not there.any():
            return
        line = self.actions.setdefault(one.name, _line(exact=self.exact))
        line.times.add(one.seconds[there & ~one.failed])
        line.count += int(there.sum())
        line.repeats = max(line.repeats, int(one.count.max()))
        line.sum_s += float(one.seconds[good].sum())
        line.calls += float(one.count[good].sum())

    def _add_failure(self, failure: Failure) -> None:
        kind = (failure.action, failure.outcome, failure.status)
        known = self.failures.get(kind)
        count = failure.count + (known.count if known else 0)
        self.failures[kind] = replace(known or failure, count=count)

    def _add_times(self, rows: Iterations) -> None:
        known, earliest = self.first_due_ns, int(rows.due_ns.min())
        self.first_due_ns = earliest if known is None else min(known, earliest)
        self.last_due_ns = max(self.last_due_ns, int(rows.due_ns.max()))
        self.last_ns = max(self.last_ns, self.last_due_ns, int(rows.done_ns.max()))
        done = _ticks(rows.done_ns)
        columns = (_ticks(rows.due_ns), done[rows.is_ok], done[rows.is_failed])
        self.ticks = [_added(a, b) for a, b in zip(self.ticks, columns, strict=True)]

    def _add_slope(self, over: EndedIterations) -> None:
        good = slice(None) if not over.failed.any() else ~over.failed
        x, y = over.start_s[good], over.duration_s[good]
        tick = (x / TICK_S).astype(np.int64)
        weights = (None, x, y, x * y, x * x)
        self.slopes = [_added(a, tick, w) for a, w in zip(self.slopes, weights, strict=True)]

    @property
    def load_s(self) -> float:
        """Seconds from the first due instant to the last end."""
        return (self.last_ns - (self.first_due_ns or 0)) / 1e9

    def computed(self, rate_rps: float | None, offered_s: float | None = None) -> Computed:
        """Return the statistics of all blocks."""
        timeline = self.timeline(self.load_s if offered_s is None else offered_s)
        stats = Stats(
            total=self.total.durations("total"),
            service=self.service.durations("service time"),
            load_s=self.load_s,
            throughput_rps=0.0,
            actions=tuple(line.durations(name) for name, line in self.actions.items()),
            failures=tuple(sorted(self.failures.values(), key=lambda one: -one.count)),
            cut_off=self.cut_off,
            idle=self.idle.durations("idle") if self.idle.times.count else None,
            backlog_growth=growth(timeline.in_flight / rate_rps) if rate_rps else 0.0,
            latency_slope=self._slope(),
        )
        whole_s = len(timeline.due) * TICK_S
        rps = float(timeline.ok.sum() / whole_s) if whole_s else 0.0
        rps = self._throughput_rps(rate_rps) if offered_s is None else rps
        sums = replace(self.sums(), load_s=self._rated_s(rate_rps))
        return Computed(replace(stats, throughput_rps=rps), timeline, sums)

    def _throughput_rps(self, rate_rps: float | None) -> float:
        load_s = self._rated_s(rate_rps)
        return self.total.times.count / load_s if load_s > 0 else 0.0

    def _rated_s(self, rate_rps: float | None) -> float:
        # At a rate, n iterations are n gaps of load, though the last one is due n - 1 gaps after
        # the first.
        due_s = (self.last_due_ns - (self.first_due_ns or 0)) / 1e9
        return max(self.load_s, due_s + 1 / rate_rps) if rate_rps else self.load_s

    def timeline(self, seconds: float) -> Ticks:
        """Return the counts per whole tick within `seconds`."""
        count = int(seconds / TICK_S + 1e-6)
        due, ok, failed = (_padded(column, count)[:count].astype(np.int64) for column in self.ticks)
        return Ticks(due=due, ok=ok, failed=failed, in_flight=np.cumsum(due - ok - failed))

    def _slope(self) -> float:
        """Return the least-squares slope without the first sixth, to a tick (ISP RAS 2015)."""
        begins_ns = self.first_due_ns or 0
        judged_ns = begins_ns + WARM_UP_SHARE * (self.last_due_ns - begins_ns)
        begin = -int(-judged_ns // TICK_NS)
        n, x, y, xy, xx = (float(column[begin:].sum()) for column in self.slopes)
        spread = xx - x * x / n if n else 0.0
        return (xy - x * y / n) / spread if n >= 3 and spread > 0 else 0.0

    def sums(self) -> Sums:
        """Return the input of criteria."""
        times = self.total.times
        ok = times.count
        low, high = times.at_s([0, 100]) if ok else (0.0, 0.0)
        return Sums(
            count=self.total.count,
            failed=self.total.count - ok,
            longest_s=self.longest_s,
            good_mean_s=times.sum_s / ok if ok else 0.0,
            good_range_s=(low, high) if ok else None,
            action_mean_s={
                name: line.sum_s / line.calls if line.calls else 0.0
                for name, line in self.actions.items()
            },
            load_s=self.load_s,
            percentile_s=lambda wanted: times.at_s((wanted,))[0],
            outliers=self._outliers,
        )

    def _outliers(self, rule: Outliers) -> int:
        return next(watch.found for watch in self.outliers if watch.rule == rule)


def sums_of(stats: Stats) -> Sums:
    """Return the input of objectives, which need statistics only."""
    total = stats.total
    shown = dict(zip(_SHOWN, (total.median_s, total.p90_s, total.p95_s, total.p99_s), strict=True))
    return Sums(
        count=total.count,
        failed=stats.failed,
        longest_s=total.max_s,
        good_mean_s=total.mean_s,
        good_range_s=(total.min_s, total.max_s) if total.ok else None,
        action_mean_s={row.name: row.mean_s for row in stats.actions},
        load_s=stats.load_s,
        percentile_s=shown.__getitem__,
        outliers=_no_outliers,
    )


def _no_outliers(rule: Outliers) -> int:
    raise AssertionError(f"{rule} needs the iterations one by one")


def _line(*, exact: bool) -> Line:
    return Line(ExactTimes() if exact else BucketTimes())


def _failures(samples: Samples, actions: Sequence[str], rows: Iterations) -> Iterator[Failure]:
    """Group the failed iterations by the step that failed."""
    bad = np.sort(rows.failing)
    kinds = np.stack([samples.action[bad], samples.outcome[bad], samples.status[bad]]).astype(int)
    found, first, counts = np.unique(kinds, axis=1, return_index=True, return_counts=True)
    for kind, at, count in zip(found.T.tolist(), first.tolist(), counts.tolist(), strict=True):
        action, outcome, status = kind
        row = int(bad[at])
        name = actions[action]
        cause = f"{name}: {in_words(Outcome(outcome), status)}"
        number = int(samples.iteration[row]) + 1
        took_s = (samples.done_ns[row] - samples.due_ns[row]) / 1e9
        message = (
            f"{cause}; first in iteration {number}, due {samples.due_ns[row] / 1e9:.3f} s "
            f"after the load began, given up {took_s:.3f} s later, on connection "
            f"{samples.connection[row]}"
        )
        yield Failure(cause, count, message, number, name, outcome, status)


def in_words(outcome: Outcome, status: int) -> str:
    """Describe how a request that did not succeed ended."""
    if outcome is Outcome.NOT_SENT:
        return "cut off when the load ended"
    if outcome is Outcome.BAD_HTTP and status:
        return f"answer {status} is not valid HTTP, or lacks an expected value"
    if outcome is not Outcome.HTTP_STATUS:
        return WORDS[outcome]
    try:
        return f"{status} {HTTPStatus(status).phrase}"
    except ValueError:
        return f"status {status}"


def growth(backlog_s: Floats) -> float:
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


def percentile(values: Floats, percents: Sequence[float]) -> list[float]:
    """Return percentiles of at least one value; reorders the array.

    Values are interpolated linearly (type 7 of Hyndman and Fan 1996), as np.percentile does, which
    imports numpy.ma (2 MB).
    """
    places = np.asarray(percents) / 100 * (len(values) - 1)
    below, above = np.floor(places).astype(np.intp), np.ceil(places).astype(np.intp)
    values.partition(np.concatenate([below, above]))
    low, high = values[below], values[above]
    found: list[float] = (low + (high - low) * (places - below)).tolist()
    return found


def _ticks(times_ns: Ints) -> Ints:
    return np.maximum(times_ns, 0) // TICK_NS


def _added(total: Floats, ticks: Ints, weights: Floats | None = None) -> Floats:
    more = np.bincount(ticks, weights).astype(np.float64)
    length = max(len(total), len(more))
    return np.add(_padded(total, length), _padded(more, length), dtype=np.float64)


def _padded(column: Floats, length: int) -> Floats:
    return np.pad(column, (0, max(length - len(column), 0)))
