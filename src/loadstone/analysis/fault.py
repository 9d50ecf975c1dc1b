"""Faults during a load: how they were injected, and their effect on clients."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from loadstone.analysis.recovery import Recovery, Remainder, judge_all
from loadstone.diagnosis.finding import Finding

if TYPE_CHECKING:  # every load imports this module, and few need the interval's
    from loadstone.analysis.interval import Interval


@dataclass(frozen=True, slots=True)
class FaultPhase:
    """A part of a fault that takes several steps; seconds after the load's start."""

    words: str  # "node 2 was out": what follows "while"
    begin_s: float
    end_s: float


@dataclass(frozen=True, slots=True)
class Injection:
    """A fault as it was injected; seconds after the load's start."""

    action: str  # "kill keystone service on one node"
    at_s: float
    undone_s: float | None = None  # when the fault was undone; None: it was not
    detected_s: float | None = None  # after `at_s`: when the balancer stopped sending there
    targets: tuple[str, ...] = ()  # the affected parts
    steps: tuple[str, ...] = ()  # steps with their times, as text
    phases: tuple[FaultPhase, ...] = ()


@dataclass(frozen=True, slots=True)
class PhaseEffect:
    """Outcomes and latency of the iterations that were due during one phase."""

    words: str
    begin_s: float
    end_s: float
    due: int
    failed: int
    p99_s: float | None  # of the successful ones; None: none did
    slow_s: float  # time of the phase in which iterations were slower than before


@dataclass(frozen=True, slots=True)
class ErrorKind:
    """Failures of one kind, and how long clients waited until them."""

    kind: str  # "connection refused"
    count: int
    median_s: float  # from the due instant to the failure
    max_s: float


@dataclass(frozen=True, slots=True)
class FaultEffect:
    """Effect of one fault, in seconds; `at_s` is after the load's start, the rest are durations."""

    action: str
    at_s: float
    undone_s: float | None
    detected_s: float | None
    due: int  # iterations due from the fault to the end of the observation
    failed: int
    downtime_s: float  # the plan's: from the first to the last error of each cluster of errors
    unavailable_s: float  # time in which at least half of what was due failed
    # Until latency and errors are as before; None: not within the observation.
    mttr_s: float | None
    plan_mttr_s: float  # the plan's: a moving mean is above the baseline's mean + 4 sigmas
    absolute_s: float  # mean latency of degraded periods minus the baseline's mean
    relative: float  # ratio of the two; 1 without a degraded period
    backlog: int  # most iterations in flight above the usual number
    drained_s: float | None  # from that peak until as many are in flight as before
    baseline_s: float  # mean latency before the fault
    baseline_failed: int
    observed_s: float  # from the fault on
    baseline_due: int  # iterations that ended before the fault
    failing_s: float  # the time from it on in which more failed than before
    recovery: Recovery  # by this repeat alone
    remainder: Remainder  # what shows it
    errors: tuple[ErrorKind, ...] = ()  # most frequent first
    degraded: tuple[tuple[float, float], ...] = ()  # periods, after the load's start
    targets: tuple[str, ...] = ()
    steps: tuple[str, ...] = ()
    # Successful iterations per second while the fault lasted; None: it was momentary.
    goodput_rps: float | None = None
    phases: tuple[PhaseEffect, ...] = ()
    baseline_p99_s: float = 0.0
    # Failed requests of the whole load in haproxy's log; None: there is no haproxy.
    logged_failures: int | None = None
    findings: tuple[Finding, ...] = ()  # after an overload: what bounds the queues

    @property
    def failed_share(self) -> float:
        """Share of what was due that failed, from the fault on."""
        return self.failed / self.due if self.due else 0.0

    @property
    def baseline_failed_share(self) -> float:
        """Share of what ended before the fault that failed."""
        return self.baseline_failed / self.baseline_due


def recoveries(repeats: Sequence[FaultEffect]) -> tuple[Recovery, ...]:
    """Return whether the service recovered in each repeat of a fault, from all together."""
    return judge_all([one.remainder for one in repeats])


@dataclass(frozen=True, slots=True)
class UnmeasuredFault:
    """A fault that was injected, and why its effect could not be computed."""

    action: str
    reason: str  # "only 14 iterations succeeded before the fault at 5.0 s; 20 are needed ..."


# The figures of a fault that are averaged over repeats.
FIGURES = (
    "downtime_s",
    "failing_s",
    "unavailable_s",
    "failed",
    "failed_share",
    "baseline_failed_share",
    "detected_s",
    "mttr_s",
    "plan_mttr_s",
    "absolute_s",
    "relative",
    "backlog",
    "drained_s",
    "goodput_rps",
)


@dataclass(frozen=True, slots=True)
class FaultSummary:
    """Summary of one action over its repeats."""

    action: str
    repeats: int  # with figures
    recovered: int  # repeats in which everything is shown to be as before at the end
    figures: tuple[tuple[str, "Interval"], ...]  # by the names of FIGURES; absent ones left out
    unmeasured: int = 0  # repeats without figures
    not_recovered: int = 0  # repeats in which something is shown to be worse than before

    @property
    def injected(self) -> int:
        """Repeats with and without figures."""
        return self.repeats + self.unmeasured

    @property
    def not_shown(self) -> int:
        """Repeats in which neither is shown."""
        return self.repeats - self.recovered - self.not_recovered

    def figure(self, name: str) -> "Interval | None":
        """Return one figure; None: it exists in no repeat."""
        return dict(self.figures).get(name)
