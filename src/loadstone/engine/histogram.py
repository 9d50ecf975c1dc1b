"""Histograms of durations, which can be merged across engines."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from math import ceil
from typing import Self

SUB_BITS = 5  # a bucket is at most 1/32 of its values wide


@dataclass(frozen=True, slots=True)
class Histogram:
    """Counts of values (nanoseconds) per bucket.

    Each bucket is written as the highest value that it holds and its count; empty ones are left
    out. A value v below 32 has a bucket of its own; above, with s = floor(log2(v)) - 5, v belongs
    to the bucket that ends at ((v >> s) + 1 << s) - 1. All engines use the same buckets
    (rust/engine/src/health.rs), so histograms are merged by adding the counts.
    """

    buckets: tuple[tuple[int, int], ...] = ()
    max_ns: int = 0

    @classmethod
    def of(cls, values_ns: Iterable[int]) -> Self:
        """Count values; negative ones count as 0."""
        values = [max(value, 0) for value in values_ns]
        counts = Counter(map(_bucket_end, values))
        return cls(tuple(sorted(counts.items())), max(values, default=0))

    @classmethod
    def merged(cls, histograms: Iterable[Self]) -> Self:
        """Return the histogram of the values of all."""
        counts: Counter[int] = Counter()
        max_ns = 0
        for histogram in histograms:
            counts.update(dict(histogram.buckets))
            max_ns = max(max_ns, histogram.max_ns)
        return cls(tuple(sorted(counts.items())), max_ns)

    @property
    def total(self) -> int:
        """Number of values."""
        return sum(count for _, count in self.buckets)

    def quantile_ms(self, share: float) -> float:
        """Return the value that a share of all values does not exceed, to 3 %; 0 without values."""
        rank, seen = max(ceil(self.total * share), 1), 0
        for end_ns, count in self.buckets:
            seen += count
            if seen >= rank:
                return min(end_ns, self.max_ns) / 1e6
        return self.max_ns / 1e6


def _bucket_end(value: int) -> int:
    shift = max(value.bit_length() - 1 - SUB_BITS, 0)
    return ((value >> shift) + 1 << shift) - 1


EMPTY = Histogram()
