"""Statistics made up for tests."""

from collections.abc import Iterable
from dataclasses import replace

from loadstone.analysis.model import Durations, Failure, Stats


def durations(name: str, count: int, ok: int, times_s: Iterable[float]) -> Durations:
    """A row of min, median, p90, p95, p99, max, mean."""
    low, median, p90, p95, p99, high, mean = times_s
    return Durations(name, count, ok, low, median, p90, p95, p99, high, mean)


def failures(errors: Iterable[tuple[str, int]]) -> tuple[Failure, ...]:
    """A group for each kind with its count."""
    return tuple(
        Failure(f"issue: {kind}", count, f"issue: {kind}; first in iteration 1", 1, "issue", 0, 0)
        for kind, count in errors
    )


def stats_of(
    load_s: float,
    ok: int,
    each_s: float | tuple[float, ...],
    errors: tuple[tuple[str, int], ...] = (),
    *,
    cut_off: int = 0,
    throughput_rps: float | None = None,
    latency_slope: float = 0.0,
    backlog_growth: float = 0.0,
) -> Stats:
    """Statistics of `ok` iterations that took `each_s`, and of failed ones."""
    times_s = each_s if isinstance(each_s, tuple) else (each_s,) * 7
    count = ok + sum(count for _, count in errors)
    return Stats(
        durations("total", count, ok, times_s),
        durations("service time", count, ok, times_s),
        load_s,
        ok / load_s if throughput_rps is None else throughput_rps,
        failures=failures(errors),
        cut_off=cut_off,
        backlog_growth=backlog_growth,
        latency_slope=latency_slope,
    )


def nothing_ended(stats: Stats) -> Stats:
    """The same, but that nothing succeeded."""
    nan = (float("nan"),) * 7
    total, service = (
        durations(row.name, row.count, 0, nan) for row in (stats.total, stats.service)
    )
    return replace(stats, total=total, service=service)


def with_errors(stats: Stats, *errors: tuple[str, int]) -> Stats:
    """The same number that succeeded, and these failures."""
    count = stats.ok + sum(count for _, count in errors)
    total = replace(stats.total, count=count)
    return replace(stats, total=total, failures=failures(errors))
