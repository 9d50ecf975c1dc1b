"""What a trial showed: ticks, summary, verdict."""

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from loadstone.engine.health import Health
from loadstone.monitor.usage import Usage

TICK_S = 0.5


@dataclass(frozen=True, slots=True)
class Ticks:
    """Counts of iterations per tick of TICK_S seconds, shape (n,) each."""

    due: NDArray[np.int64]
    ok: NDArray[np.int64]
    failed: NDArray[np.int64]
    in_flight: NDArray[np.int64]  # at the end of the tick


@dataclass(frozen=True, slots=True)
class Percentiles:
    """Milliseconds; NaN when nothing ended well."""

    mean_ms: float
    p50_ms: float
    p90_ms: float
    p95_ms: float
    p99_ms: float
    max_ms: float


@dataclass(frozen=True, slots=True)
class Summary:
    """The figures of one trial."""

    load_s: float  # from the first due instant to the last end
    due: int
    ok: int
    errors: tuple[tuple[str, int], ...]  # (outcome or status in words, count), most frequent first
    throughput_rps: float  # iterations that ended well per second, while load was offered
    latency: Percentiles  # from the intended start, of iterations that ended well
    service_time: Percentiles  # from the actual send
    backlog_growth: float  # seconds of offered work per second: 1 - capacity / rate when overloaded
    # Least-squares slope of latency over intended start, in s per s, the first sixth left out.
    latency_slope: float = 0.0

    @property
    def failed(self) -> int:
        """Iterations that did not end well."""
        return sum(count for _, count in self.errors)

    @property
    def completed_rps(self) -> float:
        """Iterations that ended well per second, from the first due instant to the last end."""
        return self.ok / self.load_s if self.load_s > 0 else 0.0


class State(StrEnum):
    """What can be said of a trial."""

    SUSTAINED = "sustained"
    DEGRADED = "degraded"
    INVALID = "invalid"
    UNDECIDED = "undecided"


class Cause(StrEnum):
    """What kept a trial from being sustained."""

    OVERLOAD = "overload"  # the backlog grew from the start
    DRIFT = "drift"  # it was steady at first, then grew: the service became slower
    ERRORS = "errors"
    OBJECTIVE = "objective"  # steady, and not as the user wants it
    GENERATOR = "generator"  # not the service's doing


@dataclass(frozen=True, slots=True)
class Verdict:
    """A state and the figures behind it, in words."""

    state: State
    reasons: tuple[str, ...]
    cause: Cause | None = None


@dataclass(frozen=True, slots=True)
class Trial:
    """One stretch of load and what it showed."""

    number: int
    # The constant rate that was offered; None where none was (closed loop, band).
    rate_rps: float | None
    purpose: str  # why the search asked for it, in words
    planned_s: float
    summary: Summary
    ticks: Ticks
    health: Health
    verdict: Verdict
    usage: Usage | None = None
    samples_file: str | None = None  # relative to the run's folder in the store
