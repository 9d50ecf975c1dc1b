"""Results of a trial: statistics, timeline, verdict, checks."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from loadstone.analysis.fault import FaultEffect, UnmeasuredFault
from loadstone.analysis.sla import Check
from loadstone.diagnosis.cpu_profile import CpuProfile
from loadstone.diagnosis.resources import Resources
from loadstone.diagnosis.sql import SqlCount
from loadstone.engine.callables.model import IterationOutput
from loadstone.engine.health import Health
from loadstone.monitor.identity_requests import IdentityRequests
from loadstone.monitor.usage import Usage
from loadstone.plan.hooks import HookRun

TICK_S = 0.5


@dataclass(frozen=True, slots=True)
class Ticks:
    """Counts of iterations per tick of TICK_S seconds, shape (n,) each."""

    due: NDArray[np.int64]
    ok: NDArray[np.int64]
    failed: NDArray[np.int64]
    in_flight: NDArray[np.int64]  # at the end of the tick


@dataclass(frozen=True, slots=True)
class Durations:
    """Durations of successes in seconds: one row of a table; NaN without a success.

    An action that occurs several times in an iteration counts once, with the sum of its times.
    """

    name: str
    count: int  # iterations in which it occurred
    ok: int  # iterations in which it succeeded
    min_s: float
    median_s: float
    p90_s: float
    p95_s: float
    p99_s: float
    max_s: float
    mean_s: float
    repeats: int = 1  # maximum occurrences in one iteration

    @property
    def success(self) -> float:
        """Share of successes, 0 to 1."""
        return self.ok / self.count if self.count else 0.0


@dataclass(frozen=True, slots=True)
class Failure:
    """Iterations that failed for the same reason."""

    cause: str  # "authenticate.keystone: 503 Service Unavailable"
    count: int
    message: str  # full message of the first one
    iteration: int  # the first one, from 1
    action: str
    outcome: int
    status: int

    @property
    def kind(self) -> str:
        """The cause without the action: "503 Service Unavailable"."""
        return self.cause.removeprefix(f"{self.action}: ")


@dataclass(frozen=True, slots=True)
class Stats:
    """The statistics of one trial, in seconds."""

    total: Durations  # of iterations, from the due instant to the end, pauses left out
    service: Durations  # from the actual send to the end, pauses left out
    load_s: float  # from the first due instant to the last end
    throughput_rps: float  # successful iterations per second while load was offered
    # In the order of their first use; "a/b" is b nested in a, whose time includes that of b.
    actions: tuple[Durations, ...] = ()
    failures: tuple[Failure, ...] = ()  # most frequent first
    cut_off: int = 0  # iterations that were due and had not ended when the load ended
    idle: Durations | None = None  # pauses; None: the scenario has none
    backlog_growth: float = 0.0  # seconds of offered work per second: 1 - capacity / rate
    # Least-squares slope of latency over due time, in s per s, the first sixth left out.
    latency_slope: float = 0.0

    @property
    def due(self) -> int:
        """Iterations that were due."""
        return self.ended + self.cut_off

    @property
    def ok(self) -> int:
        """Successful iterations."""
        return self.total.ok

    @property
    def failed(self) -> int:
        """Iterations that failed."""
        return self.ended - self.ok

    @property
    def ended(self) -> int:
        """Iterations that ended, successfully or not."""
        return self.total.count

    @property
    def errors(self) -> tuple[tuple[str, int], ...]:
        """Error messages with their counts, the most frequent first."""
        counts: Counter[str] = Counter()
        for failure in self.failures:
            counts[failure.kind] += failure.count
        return tuple(counts.most_common())

    @property
    def error_texts(self) -> tuple[str, ...]:
        """The same as text: "3 x connection refused"."""
        return tuple(f"{count} x {name}" for name, count in self.errors)

    @property
    def completed_rps(self) -> float:
        """Successful iterations per second, from the first due instant to the last end."""
        return self.ok / self.load_s if self.load_s > 0 else 0.0

    @property
    def ended_rps(self) -> float:
        """The same with the failed ones."""
        return self.ended / self.load_s if self.load_s > 0 else 0.0


class TrialState(StrEnum):
    """State of a trial."""

    SUSTAINED = "sustained"
    DEGRADED = "degraded"
    INVALID = "invalid"
    UNDECIDED = "undecided"


class Cause(StrEnum):
    """Why a trial was not sustained."""

    OVERLOAD = "overload"  # the backlog grew from the start
    DRIFT = "drift"  # the backlog was steady at first, then grew: the service became slower
    ERRORS = "errors"
    OBJECTIVE = "objective"  # steady, but an objective was missed
    GENERATOR = "generator"  # the load generator was the limit
    CONNECTIONS = "connections"  # the number of connections was the limit
    INCONSISTENT = "inconsistent"  # of a search: its trials do not fit one capacity


@dataclass(frozen=True, slots=True)
class Verdict:
    """A state, and its reasons as text with figures."""

    state: TrialState
    reasons: tuple[str, ...]
    cause: Cause | None = None


# Verdict of a fixed load, which is judged by its checks.
NOT_JUDGED = Verdict(TrialState.UNDECIDED, ())


@dataclass(frozen=True, slots=True)
class TracedRequest:
    """A request whose trace the service may have kept."""

    trace_id: str
    action: str
    iteration: int  # from 0
    due_s: float  # since the load's start
    latency_s: float  # since its due time
    outcome: str  # an HTTP status, or how it failed


@dataclass(frozen=True, slots=True)
class Trial:
    """One load and its results."""

    number: int  # in its measurement, from 1
    # The constant offered rate; None for other loads (closed loop, band, ramp).
    rate_rps: float | None
    purpose: str  # of the trial in the search, as text
    planned_s: float  # inf: limited by iterations only
    stats: Stats
    timeline: Ticks
    verdict: Verdict
    health: Health | None = None  # None: another tool's
    checks: tuple[Check, ...] = ()
    usage: Usage | None = None
    start_s: float | None = None  # Unix time of the load's start; None: not known
    status: str = "finished"  # "aborted" (by its SLA), "interrupted", "failed"
    # Of a step, whose set-up is its own: with set-up and clean-up.
    wall_s: float = 0.0
    runner: Mapping[str, Any] | None = None  # of a step, in Rally's format
    turn: int | None = (
        None  # iterations in each of its turns with another target; None: it was alone
    )
    actions: tuple[str, ...] = ()  # names, by the samples' action
    hook_runs: tuple[HookRun, ...] = ()
    outputs: tuple[IterationOutput, ...] = ()  # charts from iterations
    outputs_dropped: int = 0  # charts beyond what is kept
    samples_file: str | None = None  # relative to the run's folder in the store
    resources: Resources | None = None  # None: nothing was watched
    identity: IdentityRequests | None = None  # None: no known access log of Keystone
    faults: tuple[FaultEffect, ...] = ()  # effects of injected faults
    unmeasured_faults: tuple[UnmeasuredFault, ...] = ()  # injected, but without figures
    profile: CpuProfile | None = None  # of the service's workers
    statements: tuple[SqlCount, ...] | None = None  # sent to the database; None: not counted
    traces: tuple[TracedRequest, ...] = ()  # the slowest that carried a `traceparent`

    @property
    def is_valid(self) -> bool:
        """Whether the load generator was not the limit; True if its health is unknown."""
        return self.health is None or self.health.is_valid

    @property
    def had_fault(self) -> bool:
        """Whether a fault was injected, with or without figures."""
        return bool(self.faults or self.unmeasured_faults)

    @property
    def spent_s(self) -> float:
        """Seconds of load time that it used.

        At a low rate the last answer comes long before the schedule ends.
        """
        return max(self.stats.load_s, len(self.timeline.due) * TICK_S)

    @property
    def ceiling(self) -> str:
        """Reason why the limit on the load, not the service, set the rate; empty if it did not."""
        return self.health.ceiling if self.health else ""
