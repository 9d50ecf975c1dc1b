"""Readings of many sources over time, as columns.

Names follow Prometheus: a metric that ends in `_total` only grows, everything else is a gauge. A
source is a path: "database" is a role of processes, "machine/cpu0" a core, "haproxy/node-1" a
server behind the balancer.
"""

from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

MOST_ROWS = 1_000_000  # 20 MB: half an hour of a lab
NEWEST, OLDER = 0.25, 0.5  # shares of the most rows that thinning leaves, at most
COUNTER = "_total"
MAY_FALL = "cpu_iowait_seconds_total"
# Share of a counter. The CPU time of several processes is a sum, and when one of them ends, the
# same times are added in another order.
ROUNDING = 1e-9


class Reading(NamedTuple):
    """One value read from a source."""

    source: str
    metric: str
    value: float
    unit: str = "1"


class MetricNames(NamedTuple):
    """Names of one column of values."""

    source: str
    metric: str
    unit: str


@dataclass(frozen=True, slots=True)
class Metrics:
    """A table of readings, ordered by time."""

    time_s: NDArray[np.float64]  # Unix time
    series: NDArray[np.uint32]  # index into `names`
    value: NDArray[np.float64]
    names: tuple[MetricNames, ...]

    def __len__(self) -> int:
        return len(self.time_s)

    def between(self, start_s: float, end_s: float) -> "Metrics":
        """Return the readings from `start_s` to `end_s`, both included."""
        kept = (self.time_s >= start_s) & (self.time_s <= end_s)
        return Metrics(self.time_s[kept], self.series[kept], self.value[kept], self.names)

    def of(self, source: str, metric: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return times and values of one series; both are empty if it was not read."""
        found = [i for i, one in enumerate(self.names) if one[:2] == (source, metric)]
        kept = np.isin(self.series, found)
        return self.time_s[kept], self.value[kept]

    def increase(self, source: str, metric: str) -> float | None:
        """Return the increase of a counter, or None with fewer than two readings.

        A value below the one before means that the counter was reset to 0, unless it is the same
        but for the rounding of a sum; the kernel's time of waiting for disks may also fall a little
        (proc_stat(5)).
        """
        _, values = self.of(source, metric)
        if len(values) < 2:
            return None
        steps = np.diff(values)
        if metric == MAY_FALL:
            return float(np.maximum(steps, 0.0).sum())
        is_reset = steps < -ROUNDING * values[:-1]
        return float(np.where(is_reset, values[1:], np.maximum(steps, 0.0)).sum())

    def last(self, source: str, metric: str) -> float | None:
        """Return the last value, or None if it was not read."""
        _, values = self.of(source, metric)
        return float(values[-1]) if len(values) else None

    def sources(self) -> tuple[str, ...]:
        """Return the names of all sources, sorted."""
        seen = np.flatnonzero(np.bincount(self.series))  # np.unique would import numpy.ma
        return tuple(sorted({self.names[i].source for i in seen}))

    @property
    def duration_s(self) -> float:
        """Time from the first to the last reading."""
        return float(self.time_s[-1] - self.time_s[0]) if len(self) else 0.0


def mean_over_time(times_s: NDArray[np.float64], values: NDArray[np.float64]) -> float:
    """Return the mean of readings, each weighted by the time that it stands for.

    Old readings are thinned, so that equal weights would favour the end of a long load.
    """
    if len(times_s) < 2 or times_s[-1] <= times_s[0]:
        return float(values.mean())
    return float(np.average(values, weights=np.gradient(times_s)))


EMPTY = Metrics(np.empty(0), np.empty(0, np.uint32), np.empty(0), ())


class Recorder:
    """Collects readings; memory is bounded, because older samples are thinned."""

    def __init__(self, most_rows: int = MOST_ROWS) -> None:
        self._most_rows = most_rows
        self._index: dict[MetricNames, int] = {}
        self._time_s, self._series, self._value = array("d"), array("I"), array("d")

    def add(self, time_s: float, readings: Iterable[Reading]) -> None:
        """Add readings of one instant."""
        for source, metric, value, unit in readings:
            name = MetricNames(source, metric, unit)
            self._time_s.append(time_s)
            self._series.append(self._index.setdefault(name, len(self._index)))
            self._value.append(value)
        if len(self._time_s) > self._most_rows:
            self._thin()

    def metrics(self, since_s: float = 0.0) -> Metrics:
        """Return a copy of the readings since an instant, ordered by time."""
        times = np.array(self._time_s, np.float64)
        # A slow source adds its readings later than sources whose read began after it.
        order = np.argsort(times, kind="stable")
        order = order[np.searchsorted(times[order], since_s) :]
        return Metrics(
            times[order],
            np.array(self._series, np.uint32)[order],
            np.array(self._value, np.float64)[order],
            tuple(self._index),
        )

    def _thin(self) -> None:
        """Keep the newest readings; of the older ones, one of each series in each span of time.

        The spans are equally long, so that the whole time before is kept with one density. Counters
        lose nothing.
        """
        times, series = np.array(self._time_s), np.array(self._series, np.uint32)
        begin_s, until_s = float(times.min()), float(np.quantile(times, 1 - NEWEST))
        old = np.flatnonzero(times <= until_s)
        spans = max(int(OLDER * self._most_rows / len(self._index)), 1)
        span_s = max((until_s - begin_s) / spans, 1e-9)
        key = series[old] * np.int64(spans + 1) + ((times[old] - begin_s) / span_s).astype(np.int64)
        order = np.lexsort((times[old], key))
        is_first = np.diff(key[order], prepend=-1) != 0
        kept = np.sort(np.concatenate([old[order[is_first]], np.flatnonzero(times > until_s)]))
        self._series = array("I", series[kept].tobytes())
        self._value = array("d", np.array(self._value)[kept].tobytes())
        self._time_s = array("d", times[kept].tobytes())


def with_source(source: str, values: Iterable[tuple[str, float, str]]) -> Iterator[Reading]:
    """Make readings of (metric, value, unit) rows of one source."""
    for metric, value, unit in values:
        yield Reading(source, metric, value, unit)
