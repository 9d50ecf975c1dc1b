"""Runs as lists show them, without what was measured in them."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class MeasurementSummary:
    """One search or fixed load in a list of runs."""

    scenario: str
    title: str
    rate_rps: float | None
    low_rps: float | None
    high_rps: float | None
    stretch_rps: float | None = None  # throughput of a fixed load, where no N was sought


@dataclass(frozen=True, slots=True)
class Performed:
    """A trial of a task's workload in a list of runs: durations of what ended well."""

    run_id: str
    position: int  # of the workload in its run, each step by itself, from 0
    scenario: str
    config_id: str
    started_at: str  # ISO 8601, UTC
    status: str
    count: int  # iterations that ended
    ok: int
    min_s: float | None
    median_s: float | None
    p90_s: float | None
    p95_s: float | None
    max_s: float | None
    mean_s: float | None
    pass_sla: bool


@dataclass(frozen=True, slots=True)
class Entry:
    """One run in a list of runs."""

    run_id: str
    kind: str
    status: str
    started_at: str
    ended_at: str | None
    findings: tuple[MeasurementSummary, ...]
    trials: int
    performed: tuple[Performed, ...] = ()
    title: str = ""  # of a task
    origin: str = ""  # what made it: "capacity", "study ID, turn 3", "imported from Rally 5.1.1"
    target: str | None = None  # URL, or the name that Rally had for it
    configuration: tuple[tuple[str, str], ...] = ()  # what is known of the target
    duration_s: float | None = None  # None: it has not ended, or was killed
