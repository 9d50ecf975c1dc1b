"""Distinguishes drift from overload: do requests cost more at the end of a load than at its start?

Under overload work queues, and the cost of a request stays the same. Under drift the cost grows:
tables and lists grow, caches overflow, workers use more memory. The first third of the load is
compared with its last third.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from loadstone.diagnosis.demand import (
    ROLES,
    Observation,
    Setup,
    cpu_name,
    observe,
)
from loadstone.diagnosis.finding import Confidence, Evidence, Finding, three_digits
from loadstone.diagnosis.service import MeasuredService
from loadstone.monitor.metrics import Metrics, mean_over_time
from loadstone.monitor.roles import Role

LEAST_S = 30.0  # shortest load that is checked for growth
LEAST_REQUESTS = 20  # in each third
GREW = 1.25  # ratio of the cost at the end to that at the start above which it is not noise
LEAST_DEMAND_S = 0.0005  # per request; growth of smaller demands has no noticeable effect
LEAST_COUNT = 2.0  # per request
SLOWER = 0.2  # of the mean response time, gained over the load
MEMORY_GREW = 1.1
LEAST_MEMORY_BYTES = 20 * 2**20
LEAST_READINGS = 6
LEAST_ROWS = 100.0
EVICTIONS_RPS = 1.0

COUNTS = (
    ("rows_read_per_request", "rows that the database reads"),
    ("selects_per_request", "SELECT statements"),
    ("log_fsyncs_per_request", "fsyncs of the database's log"),
)


@dataclass(frozen=True, slots=True)
class LoadCourse:
    """The course of a load, from its requests."""

    start_s: float  # Unix time of its first instant
    tick_s: float
    ok: NDArray[np.int64]  # successful requests by tick
    response_s: float  # mean
    slope: float  # of the response time, in seconds per second
    is_overloaded: bool  # more was offered than was completed from the start
    is_drifting: bool  # it was steady at first, then the backlog grew

    @property
    def duration_s(self) -> float:
        """Its length."""
        return len(self.ok) * self.tick_s

    @property
    def slower_s(self) -> float:
        """Difference of the response time between end and start of the load."""
        return self.slope * self.duration_s


@dataclass(frozen=True, slots=True)
class CostChange:
    """Cost per request of one kind in the first and in the last third."""

    name: str
    before: float
    after: float
    unit: str  # "ms", or empty for a count

    @property
    def has_grown(self) -> bool:
        """Whether it grew by more than noise, and by enough to have an effect."""
        least = 1000 * LEAST_DEMAND_S if self.unit else LEAST_COUNT
        return self.after - self.before >= least and self.after >= GREW * self.before

    def __str__(self) -> str:
        unit = f" {self.unit}" if self.unit else ""
        return f"{self.name} from {three_digits(self.before)} to {three_digits(self.after)}{unit}"


def growth(metrics: Metrics, course: LoadCourse, setup: Setup) -> tuple[Finding, ...]:
    """Return findings about what grew during a load; none for a short load."""
    if course.duration_s < LEAST_S:
        return ()
    first = _third(metrics, course, 0.0, setup)
    last = _third(metrics, course, 2 * course.duration_s / 3, setup)
    whole = metrics.between(course.start_s, course.start_s + course.duration_s)
    found: list[Finding] = []
    if first is not None and last is not None:
        compared = (*_demands(first, last), *_counts(first, last))
        found += _drift(course, compared, _rows_added(whole))
    found += _memory(whole, setup.service)
    found += _evictions(whole, course.duration_s)
    return tuple(found)


def _third(metrics: Metrics, course: LoadCourse, from_s: float, setup: Setup) -> Observation | None:
    """Observe the third of a load that starts at `from_s`; None: too few readings or requests."""
    begin_s = course.start_s + from_s
    part = metrics.between(begin_s, begin_s + course.duration_s / 3)
    if part.duration_s <= 0:
        return None
    # Requests are counted between the same two readings as their cost.
    ends_s = course.start_s + course.tick_s * (np.arange(len(course.ok)) + 1)
    counted = (ends_s > part.time_s[0]) & (ends_s <= part.time_s[-1])
    requests = int(course.ok[counted].sum())
    return observe(part, requests, setup) if requests >= LEAST_REQUESTS else None


def _demands(first: Observation, last: Observation) -> Iterator[CostChange]:
    for role in ROLES:
        if role is Role.GENERATOR:
            continue
        before_s, after_s = (one.cpu_demand_s(role) for one in (first, last))
        if before_s is not None and after_s is not None:
            yield CostChange(cpu_name(role, last.service), 1000 * before_s, 1000 * after_s, "ms")


def _counts(first: Observation, last: Observation) -> Iterator[CostChange]:
    for figure, name in COUNTS:
        before, after = first.figure(figure), last.figure(figure)
        if before is not None and after is not None:
            yield CostChange(name, before, after, "")


def _drift(
    course: LoadCourse, compared: tuple[CostChange, ...], rows: float | None
) -> Iterator[Finding]:
    """Say what `compared`, costs that were measured in both thirds, tell of a slower service."""
    grown = (one for one in compared if one.has_grown)
    changes = sorted(grown, key=lambda one: one.before / one.after)  # the largest ratio first
    is_slower = course.slower_s >= SLOWER * course.response_s
    figures = [("slower_ms", 1000 * course.slower_s)]
    if rows:
        figures.append(("rows_added", rows))
    if changes and (is_slower or course.is_drifting):
        listed = "; ".join(str(one) for one in changes)
        yield _finding(
            "drift",
            "The service becomes slower while the load stays: at the end a request takes "
            f"{three_digits(1000 * course.slower_s)} ms longer than at the beginning. What it "
            f"costs rises: {listed}{_per_rows(course, rows)}.",
            "Look at what grows with each request: rows of revocation events, of expired tokens, "
            "of what the load creates. Remove them in time, or keep them apart.",
            [*figures, *((one.name, one.after / max(one.before, 1e-9)) for one in changes)],
        )
    elif course.is_drifting:
        yield _finding(
            "drift-unexplained",
            "The service becomes slower after a steady beginning, and nothing that was watched "
            "costs more per request than before.",
            "Watch what was not: --monitor; other work on the machine, a disk's cache that is "
            "full, a neighbour of the virtual machine.",
            figures,
        )
    elif course.is_overloaded and is_slower:
        yield _finding(
            "overload",
            "Answers take longer and longer because more is asked than is completed"
            f"{_cost_stayed(compared)}.",
            "Offer less, or add what gives way first.",
            figures,
        )


def _cost_stayed(compared: tuple[CostChange, ...]) -> str:
    """Say what did not clearly grow; empty if no cost was measured at both ends."""
    if not compared:
        return ""
    largest = max(compared, key=lambda one: (one.unit, one.after))  # CPU before counts
    return (
        ", not because a request costs clearly more: from the first third of the load to the last, "
        f"{largest}"
    )


def _rows_added(metrics: Metrics) -> float | None:
    """Return rows inserted minus rows deleted, from the databases' statement counters."""
    counts = [
        inserted - (metrics.increase(source, deletes) or 0.0)
        for source in metrics.sources()
        for inserts, deletes in (
            ("inserts_total", "deletes_total"),
            ("rows_inserted_total", "rows_deleted_total"),
        )
        if (inserted := metrics.increase(source, inserts)) is not None
    ]
    return sum(counts) if counts else None


def _per_rows(course: LoadCourse, rows: float | None) -> str:
    if rows is None or rows < LEAST_ROWS:
        return ""
    each_ms = three_digits(1000 * course.slower_s / (rows / 1000))
    return f"; {rows:,.0f} rows were added meanwhile, {each_ms} ms a request for each 1,000"


def _memory(metrics: Metrics, service: MeasuredService) -> Iterator[Finding]:
    times, values = metrics.of(Role.KEYSTONE, "memory_bytes")
    # A heap with a limit grows up to it by design.
    if len(values) < LEAST_READINGS or metrics.last("jvm", "heap_limit_bytes") is not None:
        return
    third_s = (times[-1] - times[0]) / 3
    thirds = (times <= times[0] + third_s, times >= times[-1] - third_s)
    before, after = (mean_over_time(times[one], values[one]) for one in thirds)
    if after < MEMORY_GREW * before or after - before < LEAST_MEMORY_BYTES:
        return
    mib_per_min = (after - before) / 2**20 / (2 * third_s) * 60
    yield _finding(
        "memory-growth",
        f"{service.title}'s workers grow: {before / 2**20:.0f} MiB in the first third of the load, "
        f"{after / 2**20:.0f} MiB in the last, {three_digits(mib_per_min)} MiB a minute.",
        "Load for longer to see whether it ends; let workers be replaced after a number of "
        "requests.",
        [("memory_before_mib", before / 2**20), ("memory_after_mib", after / 2**20)],
    )


def _evictions(metrics: Metrics, duration_s: float) -> Iterator[Finding]:
    evicted = sum(metrics.increase(one, "evictions_total") or 0.0 for one in metrics.sources())
    per_s = evicted / duration_s
    if per_s >= EVICTIONS_RPS:
        yield _finding(
            "cache-evictions",
            f"The cache is full: {three_digits(per_s)} entries a second are evicted before they "
            "expire.",
            "Give memcached more memory.",
            [("evictions_per_s", per_s)],
        )


def _finding(id_: str, sentence: str, advice: str, figures: list[tuple[str, float]]) -> Finding:
    evidence = tuple(Evidence.of(name, value) for name, value in figures)
    return Finding(id_, sentence, evidence, Confidence.PROPOSED, advice)
