"""Requests and results of a search."""

from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from math import inf
from typing import Any, TypeVar

from loadstone.analysis.alarm import SETTLED_S, TimeLeft
from loadstone.analysis.judge import TrialSpec
from loadstone.analysis.model import Cause, Trial
from loadstone.analysis.trial import rate_rps
from loadstone.plan.load import ClosedLoad, Load


@dataclass(frozen=True, slots=True)
class TrialRequest:
    """One trial that a search requests."""

    load: Load
    purpose: str
    # Seconds of backlog (in-flight / rate) above the least seen at which the trial may stop early.
    alarm_s: float | None = None
    # Seconds of backlog gained by the end at which the trial is degraded; None: judge's default.
    rise_s: float | None = None
    # Seconds to wait before the load begins.
    pause_s: float = 0.0
    # Connections that the load generator may open; None: the caller's limit.
    max_connections: int | None = None
    # Seconds until the first responses; until then the number in flight always rises.
    settle_s: float = SETTLED_S
    users_share: float = 1.0  # of the users, who send it in turn
    tolerates_errors: bool = False  # the trial continues however many requests fail
    time_left: TimeLeft | None = None  # of the search's budget; None: no limit but the caller's
    runner: Mapping[str, Any] | None = None  # of a step, in Rally's format
    # The result if the search ended before this trial; None: none yet.
    so_far: "Capacity | None" = None
    found: "Capacity | None" = None  # the result of the search, after which this trial comes

    def spec(self, number: int) -> TrialSpec:
        """Return the trial's terms for the judge."""
        has_count = isinstance(self.load, ClosedLoad) and self.load.iterations is not None
        planned_s = None if has_count else self.load.duration_s
        return TrialSpec(
            number,
            self.purpose,
            rate_rps(self.load),
            planned_s or inf,  # inf: limited by iterations only
            self.alarm_s,
            self.rise_s,
            self.settle_s,
            self.max_connections,
            is_unloaded=isinstance(self.load, ClosedLoad) and self.load.workers == 1,
        )


class CapacityKind(StrEnum):
    """What limits the rate at N."""

    SATURATION = "saturation"  # every worker is busy: work queues
    REFUSAL = "refusal"  # requests are refused before the workers are busy
    COLLAPSE = "collapse"  # throughput falls when a queue forms, and N is what is left then
    OBJECTIVE = "objective"  # responses are slower than the user allows
    CEILING = "ceiling"  # the user's or the machine's limit on the load, not the service


@dataclass(frozen=True, slots=True)
class Capacity:
    """N with its interval; None: this bound is unknown.

    `confidence` is the share of searches whose interval covers the truth (0..1). `words` are notes
    on the number: "at least", "capacity depends on backlog", what more time would give. `kind` is
    what limits the rate; None if unknown.
    """

    rate_rps: float | None
    low_rps: float | None
    high_rps: float | None
    confidence: float
    words: tuple[str, ...] = ()
    kind: CapacityKind | None = None
    causes: tuple[Cause, ...] = ()  # why there is no N, if there is none

    @property
    def is_range(self) -> bool:
        """Whether it is an interval that holds N, too wide to state N as a number."""
        return self.rate_rps is None and self.confidence > 0 and not self.causes

    @property
    def reach_rps(self) -> float | None:
        """Distance of the farther bound from N; None: N or a bound is unknown."""
        if self.rate_rps is None or self.low_rps is None or self.high_rps is None:
            return None
        return max(self.high_rps - self.rate_rps, self.rate_rps - self.low_rps)

    @property
    def as_repeat(self) -> "Capacity":
        """The same, with the middle of a range as N: several of them may make a number."""
        if not self.is_range or self.low_rps is None or self.high_rps is None:
            return self
        return replace(self, rate_rps=(self.low_rps + self.high_rps) / 2)


Measure = Callable[[TrialRequest], Trial]
Result = TypeVar("Result")
# A part of a search is a generator: it yields trial requests, receives trials, returns a result.
Part = Generator[TrialRequest, Trial, Result]
Strategy = Part[Capacity]
