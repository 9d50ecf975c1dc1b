"""The figures of a workload whose samples lie in a file: memory does not grow with them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from loadstone.analysis import performance
from loadstone.analysis.performance import (
    Ended,
    Failure,
    Figures,
    Made,
    Showing,
    ended,
    failures,
    figures,
    made,
)
from loadstone.analysis.tally import Distribution, whole
from loadstone.engine import parquet
from loadstone.engine.parquet import SampleFile
from loadstone.engine.samples import Samples
from loadstone.task.model import Outliers, SlaRule
from loadstone.task.sums import OutlierWatch, Sums

# So many rows are read whole, for exact percentiles: 76 MB of samples, some 300 MB in all.
EXACT_ROWS = 2_000_000


def look(
    samples: Samples | SampleFile, actions: Sequence[str], rules: Iterable[SlaRule]
) -> tuple[Showing, Sums]:
    """Give a workload's figures, and what its rules are judged by.

    Of more than EXACT_ROWS rows percentiles are within 0.05 %; all else is exact.
    """
    if isinstance(samples, SampleFile):
        if samples.rows > EXACT_ROWS:
            return run_through(whole(samples), actions, rules)
        samples = parquet.read(samples.path)
    showing, iterations = performance.look(samples, actions)
    return showing, iterations.sums


def run_through(
    blocks: Iterable[Samples], actions: Sequence[str], rules: Iterable[SlaRule]
) -> tuple[Showing, Sums]:
    """Give the same from blocks of whole iterations, one after another."""
    counted = Counted([OutlierWatch(rule) for rule in rules if isinstance(rule, Outliers)])
    for block in blocks:
        counted.add(block, actions)
    return counted.showing(), counted.sums()


@dataclass(slots=True)
class Line:
    """Times of what ended well, out of `count`."""

    times: Distribution = field(default_factory=Distribution)
    count: int = 0
    repeats: int = 1
    # For the SLA: of iterations that ended well.
    sum_s: float = 0.0
    made: float = 0.0

    def add(self, seconds: NDArray[np.float64], count: int) -> None:
        """Count further ones."""
        self.times.add(np.rint(seconds * 1e9).astype(np.int64))
        self.count += count

    def figures(self, name: str) -> Figures:
        """Give the row of a table."""
        times = self.times
        if not times.count:
            return figures(name, np.empty(0), self.count, self.repeats)
        p50, p90, p95, p99 = (time_ns / 1e9 for time_ns in times.at_ns((0.5, 0.9, 0.95, 0.99)))
        low, high, mean = times.min_ns / 1e9, times.max_ns / 1e9, times.sum_ns / times.count / 1e9
        found = (low, p50, p90, p95, p99, high, mean)
        return Figures(name, self.count, times.count, *found, self.repeats)


@dataclass(slots=True)
class Counted:
    """What is counted of a workload, block by block."""

    outliers: list[OutlierWatch]
    total: Line = field(default_factory=Line)
    service: Line = field(default_factory=Line)
    idle: Line = field(default_factory=Line)
    actions: dict[str, Line] = field(default_factory=dict)
    failures: dict[tuple[str, int, int], Failure] = field(default_factory=dict)
    longest_s: float = 0.0
    start_s: float = float("inf")
    end_s: float = float("-inf")
    cut_off: int = 0

    def add(self, samples: Samples, actions: Sequence[str]) -> None:
        """Count the iterations of a block."""
        rows = ended(samples, actions)
        good = ~rows.failed
        for line, seconds in (
            (self.total, rows.duration_s),
            (self.service, rows.service_s),
            (self.idle, rows.idle_s),
        ):
            line.add(seconds[good], len(good))
        for one in made(samples, actions, rows):
            self._add_made(one, good)
        for failure in failures(samples, actions, rows):
            self._add_failure(failure)
        for watch in self.outliers:
            for value in rows.duration_s[good].tolist():
                watch.sees(value)
        self._add_span(rows)

    def _add_made(self, one: Made, good: NDArray[np.bool_]) -> None:
        there = one.count > 0
        if not there.any():
            return
        line = self.actions.setdefault(one.name, Line())
        line.add(one.seconds[there & ~one.failed], int(there.sum()))
        line.repeats = max(line.repeats, int(one.count.max()))
        line.sum_s += float(one.seconds[good].sum())
        line.made += float(one.count[good].sum())

    def _add_failure(self, failure: Failure) -> None:
        kind = (failure.action, failure.outcome, failure.status)
        known = self.failures.get(kind)
        count = failure.count + (known.count if known else 0)
        self.failures[kind] = replace(known or failure, count=count)

    def _add_span(self, rows: Ended) -> None:
        self.cut_off += rows.cut_off
        if len(rows.number):
            ends_s = rows.start_s + rows.duration_s + rows.idle_s
            self.longest_s = max(self.longest_s, float(rows.duration_s.max()))
            self.start_s = min(self.start_s, float(rows.start_s.min()))
            self.end_s = max(self.end_s, float(ends_s.max()))

    @property
    def load_s(self) -> float:
        """From the first intended start to the last end."""
        return max(self.end_s - self.start_s, 0.0)

    def showing(self) -> Showing:
        """Give the figures."""
        ok = self.total.times.count
        return Showing(
            total=self.total.figures("total"),
            service=self.service.figures("service time"),
            actions=tuple(line.figures(name) for name, line in self.actions.items()),
            load_s=self.load_s,
            throughput_rps=ok / self.load_s if self.load_s > 0 else 0.0,
            failures=tuple(sorted(self.failures.values(), key=lambda one: -one.count)),
            cut_off=self.cut_off,
            idle=self.idle.figures("idle") if self.idle.times.max_ns else None,
        )

    def sums(self) -> Sums:
        """Give what rules are judged by."""
        times = self.total.times
        ok = times.count
        return Sums(
            count=self.total.count,
            failed=self.total.count - ok,
            longest_s=self.longest_s,
            good_mean_s=times.sum_ns / ok / 1e9 if ok else 0.0,
            good_range_s=(times.min_ns / 1e9, times.max_ns / 1e9) if ok else None,
            action_mean_s={
                name: line.sum_s / line.made if line.made else 0.0
                for name, line in self.actions.items()
            },
            load_s=self.load_s,
            percentile_s=lambda wanted: times.at_ns((wanted / 100.0,))[0] / 1e9,
            outliers=self._outliers,
        )

    def _outliers(self, rule: Outliers) -> int:
        return next(watch.found for watch in self.outliers if watch.rule == rule)
