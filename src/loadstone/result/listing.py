"""Entries of lists of runs, without their trials."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class MeasurementSummary:
    """One search or fixed load in a list of runs."""

    scenario: str
    title: str
    rate_rps: float | None
    low_rps: float | None
    high_rps: float | None
    stretch_rps: float | None = None  # throughput of a fixed load, which has no N
    load: str = ""  # that `stretch_rps` is of; empty for a search
    is_running: bool = False
    is_interrupted: bool = False  # or of a run that was killed


@dataclass(frozen=True, slots=True)
class Performed:
    """A trial of a task's workload in a list of runs; durations of successful iterations."""

    run_id: str
    position: int  # index in the run's workloads, counting each step
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
    pass_sla: bool | None  # None: it did not end
    has_sla: bool = True  # without one, only what went wrong is judged


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
    origin: str = ""  # as "capacity", "study ID, turn 3", "imported from Rally 5.1.1"
    target: str | None = None  # URL, or Rally's name of the environment
    configuration: tuple[tuple[str, str], ...] = ()  # known facts of the target
    tags: tuple[tuple[str, str], ...] = ()  # of --tag
    duration_s: float | None = None  # None: no end is known, or the clock was set back
