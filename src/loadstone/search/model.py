"""What a search asks for, and what it finds."""

from collections.abc import Callable, Generator
from dataclasses import dataclass
from enum import StrEnum
from math import inf

from loadstone.analysis.alarm import SETTLED_S
from loadstone.analysis.judge import TrialSpec
from loadstone.analysis.model import Cause, Trial
from loadstone.analysis.trial import rate_rps
from loadstone.plan.load import ClosedLoad, Load


@dataclass(frozen=True, slots=True)
class TrialRequest:
    """One trial that the search wants to see."""

    load: Load
    purpose: str
    # Seconds of backlog (in-flight / rate) above the least seen at which the trial may stop early.
    alarm_s: float | None = None
    # Seconds of backlog gained by its end at which the trial is degraded; None: the judge's own.
    rise_s: float | None = None
    # Seconds to wait before the load begins.
    pause_s: float = 0.0
    # Connections that the load generator may open; None: as many as the caller allows.
    max_connections: int | None = None
    # Seconds until the first answers come. Until then the number in flight rises by itself.
    settle_s: float = SETTLED_S
    tolerates_errors: bool = False  # the trial goes on however many requests fail
    runner: str = ""  # of a step: the runner as JSON, in Rally's format
    # What the search would state if it ended before this trial; None: nothing yet.
    so_far: "Capacity | None" = None

    def spec(self, number: int) -> TrialSpec:
        """Return the trial's terms as the judge reads them."""
        has_count = isinstance(self.load, ClosedLoad) and self.load.iterations is not None
        planned_s = None if has_count else self.load.duration_s
        return TrialSpec(
            number,
            self.purpose,
            rate_rps(self.load),
            planned_s or inf,  # inf: so many iterations, however long they take
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
    OBJECTIVE = "objective"  # answers are slower than the user allows
    CEILING = "ceiling"  # the user's or the machine's limit on the load, not the service


@dataclass(frozen=True, slots=True)
class Capacity:
    """N with its interval; a None means that this side is not known.

    `confidence` is the share of searches whose interval covers the truth (0..1). `words` say what
    the number does not: "at least", "capacity depends on backlog", what more time would give.
    `kind` is what limits the rate; None where that was not seen.
    """

    rate_rps: float | None
    low_rps: float | None
    high_rps: float | None
    confidence: float
    words: tuple[str, ...] = ()
    kind: CapacityKind | None = None
    causes: tuple[Cause, ...] = ()  # why there is no number, where there is none


Measure = Callable[[TrialRequest], Trial]
# A strategy is a state machine: it yields what it wants measured and returns what it found.
Strategy = Generator[TrialRequest, Trial, Capacity]
