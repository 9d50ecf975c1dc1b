"""What a search asks for, and what it finds."""

from collections.abc import Callable, Generator
from dataclasses import dataclass
from math import inf

from loadstone.analysis.judge import Offer
from loadstone.analysis.model import Trial
from loadstone.analysis.trial import rate_rps
from loadstone.plan.load import Load


@dataclass(frozen=True, slots=True)
class Ask:
    """One trial that the search wants to see."""

    load: Load
    purpose: str
    # Seconds of backlog (in-flight / rate) above the least seen at which the trial may stop early.
    alarm_s: float | None = None
    # Seconds of backlog gained by its end at which the trial is degraded; None: the judge's own.
    rise_s: float | None = None
    # Seconds to wait before the load begins.
    pause_s: float = 0.0

    def offer(self, number: int) -> Offer:
        """Give the trial's terms as the judge reads them."""
        planned_s = self.load.duration_s or inf  # None: so many iterations, however long they take
        return Offer(
            number, self.purpose, rate_rps(self.load), planned_s, self.alarm_s, self.rise_s
        )


@dataclass(frozen=True, slots=True)
class Capacity:
    """N with its interval; a None means that this side is not known.

    `confidence` is the share of searches whose interval covers the truth (0..1). `words` say what
    the number does not: "at least", "capacity depends on backlog", what more time would give.
    """

    rate_rps: float | None
    low_rps: float | None
    high_rps: float | None
    confidence: float
    words: tuple[str, ...] = ()


Measure = Callable[[Ask], Trial]
# A strategy is a state machine: it yields what it wants measured and returns what it found.
Strategy = Generator[Ask, Trial, Capacity]
