"""A tuning: what is compared, what came of it, and what is stated."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from loadstone.tune.evidence import GainEvidence, GainInterval
from loadstone.tune.space import Pairs


class TuningPhase(StrEnum):
    """Why two combinations are compared."""

    CHECK = "check"  # the default with itself: does it start, and how much do pairs scatter?
    SEARCH = "search"
    PROOF = "proof"
    ABLATION = "ablation"  # one changed setting put back
    PROOF_AGAIN = "proof again"  # of the winner without the settings that carry nothing
    TRADE = "trade"
    CAPACITY = "capacity"  # N of the default and of what is stated


class TuningObjective(StrEnum):
    """What is to become better."""

    N = "N"
    CPU = "cpu"
    P99 = "p99"


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two combinations to compare in fresh pairs of trials; each is changes of the default."""

    phase: TuningPhase
    a: Pairs
    b: Pairs
    pairs: int


@dataclass(frozen=True, slots=True)
class Found:
    """N of one combination; None: not known."""

    rate_rps: float | None
    low_rps: float | None
    high_rps: float | None


@dataclass(frozen=True, slots=True)
class ComparisonOutcome:
    """What came of a comparison: evidence that B is better than A, or why there is none."""

    evidence: GainEvidence | None
    failure: str = ""  # one line
    took_s: float = 0.0  # with starting both services
    load_s: float = 0.0  # of the pairs alone
    runs: tuple[str, ...] = ()  # in the store
    a: float = 0.0  # the metric of A, its mean
    b: float = 0.0
    notes: tuple[str, ...] = ()  # what disturbed it
    not_full: str = ""  # which combinations may complete more than was measured
    findings: tuple[str, ...] = ()  # rules that the audit found broken on A, most severe first
    capacities: tuple[Found, Found] | None = None  # of A and B, where they were searched
    a_does_not_start: bool = False
    failed_runs: tuple[str, ...] = ()  # in the store, of attempts that gave no evidence
    restart_s: float = 0.0  # of both services, with the warm-up; 0: they were not started anew


Measure = Callable[[Comparison], ComparisonOutcome]


@dataclass(frozen=True, slots=True)
class Terms:
    """What the user asked for."""

    budget_s: float
    seed: int = 1
    with_trades: bool = False
    searches_n: bool = False  # of the default and of what is stated, at the end
    start_s: float = 60.0  # of two services with their warm-up, until it was measured
    pair_s: float = 4.0  # of a pair of trials, until it was measured


@dataclass(frozen=True, slots=True)
class TriedCombination:
    """A combination that the search tried, with all its evidence."""

    changes: Pairs
    origin: str  # who proposed it: "audit KS-01", "search"
    evidence: GainEvidence | None = None
    failure: str = ""
    rounds: int = 0  # of the race that it was in
    failed_runs: tuple[str, ...] = ()  # in the store; what was measured until it failed


@dataclass(frozen=True, slots=True)
class Share:
    """What one changed setting carries: the winner beside the winner without it."""

    change: tuple[str, str]
    evidence: GainEvidence | None
    p: float | None  # adjusted by Holm's method; None: not measured
    failure: str = ""  # why it was not measured
    is_needed: bool = False  # without it the service did not start

    @property
    def carries(self) -> bool:
        """Whether the setting is shown to carry a part of the gain, or is needed to start."""
        return self.is_needed or (self.p is not None and self.p < SIGNIFICANT)

    @property
    def is_kept(self) -> bool:
        """Whether it stays in the reduced combination, which leaves out what is known to be none.

        What was not measured may carry a part.
        """
        return self.carries or bool(self.failure)


SIGNIFICANT = 0.05  # of all tests of an ablation together (Holm)


@dataclass(frozen=True, slots=True)
class Proof:
    """Fresh pairs of the default and one combination."""

    changes: Pairs
    outcome: ComparisonOutcome
    interval: GainInterval | None  # None: it failed

    @property
    def shows_gain(self) -> bool:
        """Whether the whole interval is better than the default."""
        return self.interval is not None and self.interval.shows_gain


@dataclass(frozen=True, slots=True)
class Trade:
    """What a trade is worth beside the stated combination. It is never a gain."""

    change: tuple[str, str]
    evidence: GainEvidence | None
    interval: GainInterval | None
    failure: str = ""


@dataclass(frozen=True, slots=True)
class Tuned:
    """All that a tuning found."""

    check: ComparisonOutcome
    trials: tuple[TriedCombination, ...]
    # Of the search; None: nothing was better than the default.
    winner: TriedCombination | None = None
    proof: Proof | None = None
    ablation: tuple[Share, ...] = ()
    proof_again: Proof | None = None
    trades: tuple[Trade, ...] = ()
    capacities: ComparisonOutcome | None = None  # N of the default and of what is stated
    spent_s: float = 0.0
    cut_short: tuple[str, ...] = ()  # what the budget left no time for

    @property
    def stated(self) -> Proof | None:
        """The proof whose gain is stated: of the reduced winner if that shows one."""
        again = self.proof_again
        return again if again is not None and again.shows_gain else self.proof

    @property
    def has_gain(self) -> bool:
        """Whether a gain is shown."""
        return self.stated is not None and self.stated.shows_gain

    @property
    def changes(self) -> Pairs:
        """The settings to change; none if no gain is shown."""
        return self.stated.changes if self.stated is not None and self.has_gain else ()
