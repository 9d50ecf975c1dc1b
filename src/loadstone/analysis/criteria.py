"""SLA rules: what the iterations of a workload must fulfil; `name` is the key in a task file."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal


@dataclass(frozen=True, slots=True)
class FailureRate:
    """Share of failed iterations in %: min <= rate <= max, checked after every iteration."""

    name: ClassVar = "failure_rate"
    min_percent: float = 0.0
    max_percent: float = 100.0


@dataclass(frozen=True, slots=True)
class MaxSecondsPerIteration:
    """Maximum duration of any iteration, failed or not."""

    name: ClassVar = "max_seconds_per_iteration"
    max_s: float


@dataclass(frozen=True, slots=True)
class MaxAvgDuration:
    """Maximum mean duration of the successful iterations."""

    name: ClassVar = "max_avg_duration"
    max_s: float


@dataclass(frozen=True, slots=True)
class MaxAvgDurationPerAtomic:
    """Maximum mean duration of each named action in successful iterations."""

    name: ClassVar = "max_avg_duration_per_atomic"
    max_s: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Outliers:
    """Maximum number of iterations that exceed the running mean by `sigmas` standard deviations."""

    name: ClassVar = "outliers"
    max_count: int = 0
    min_iterations: int = 3
    sigmas: float = 3.0


@dataclass(frozen=True, slots=True)
class PerformanceDegradation:
    """(slowest / fastest - 1) in % over the successful iterations."""

    name: ClassVar = "performance_degradation"
    max_percent: float


@dataclass(frozen=True, slots=True)
class MaxPercentiles:
    """Percentile -> seconds, over the successful iterations. Not in Rally."""

    name: ClassVar = "max_percentiles"
    max_s: Mapping[float, float]


@dataclass(frozen=True, slots=True)
class MinThroughput:
    """Successful iterations per second of load. Not in Rally."""

    name: ClassVar = "min_throughput"
    min_rps: float


@dataclass(frozen=True, slots=True)
class MinIterations:
    """Minimum number of successful iterations. Not in Rally."""

    name: ClassVar = "min_iterations"
    count: int


SlaRule = (
    FailureRate
    | MaxSecondsPerIteration
    | MaxAvgDuration
    | MaxAvgDurationPerAtomic
    | Outliers
    | PerformanceDegradation
    | MaxPercentiles
    | MinThroughput
    | MinIterations
)


Figure = Literal["mean", "p50", "p90", "p95", "p99", "max"]
FIGURES: tuple[Figure, ...] = ("mean", "p50", "p90", "p95", "p99", "max")


@dataclass(frozen=True, slots=True)
class Objective:
    """A figure of the successful iterations that must stay below a limit. Not in Rally."""

    figure: Figure
    limit_s: float

    def __str__(self) -> str:
        return f"{self.figure}<{1000 * self.limit_s:g}ms"


Criterion = SlaRule | Objective
