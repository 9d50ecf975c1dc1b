"""Journal of a tuning: `tunings/ID/comparisons.jsonl` beside the results.

The first line says how the tuning began, every further line is a comparison that has ended. A
tuning is resumed by giving it the same outcomes again: its decisions follow from them. What a
tuning found is kept in `result.json` when it ends, so that it can be shown by a later version of
Loadstone, whose search may decide otherwise.
"""

from collections import deque
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path

from loadstone.errors import EnvironmentUnusable, InvalidInput
from loadstone.store.codec import dumps, loads
from loadstone.store.journal import JournalKind
from loadstone.store.location import StoreLocation
from loadstone.system import files
from loadstone.tune.commands import ChangeCommands
from loadstone.tune.model import (
    Comparison,
    ComparisonOutcome,
    Measure,
    Terms,
    Tuned,
    TuningObjective,
    TuningPhase,
)
from loadstone.tune.space import Pairs, Space

JOURNALS = JournalKind("tuning", "tunings", "comparisons.jsonl", "makes its comparison again")
RESULT = "result.json"  # of a tuning that has ended
CLOUD_START_S = 10.0  # to connect to a cloud and create users, until it was measured


@dataclass(frozen=True, slots=True)
class ComparisonLoad:
    """What is sent in each comparison."""

    scenario: str
    arguments: tuple[str, ...]
    users: int
    concurrency: int
    seconds: float  # of a trial


@dataclass(frozen=True, slots=True)
class BegunTuning:
    """A tuning as it was when it began."""

    space_name: str  # of a built-in space, or the path of a file
    space: Space  # with all settings of the default
    kept: Pairs
    suggested: tuple[tuple[Pairs, str], ...]
    load: ComparisonLoad
    objective: TuningObjective
    budget_s: float
    seed: int
    with_trades: bool
    command: str
    started_at: str  # ISO 8601, UTC
    pair_s: float  # expected of a pair of trials
    commands: ChangeCommands | None = None  # that change a cloud; None: combinations are labs

    @property
    def terms(self) -> Terms:
        """What decides how the budget is spent."""
        terms = Terms(
            self.budget_s, self.seed, self.with_trades, searches_n=True, pair_s=self.pair_s
        )
        return terms if self.commands is None else replace(terms, start_s=CLOUD_START_S)


@dataclass(frozen=True, slots=True)
class _Ended:
    comparison: Comparison
    outcome: ComparisonOutcome


@dataclass(frozen=True, slots=True)
class TuningJournal:
    """The journal of one tuning."""

    path: Path
    begun: BegunTuning

    @property
    def tuning_id(self) -> str:
        """The tuning's id: what `--resume` takes."""
        return self.path.parent.name

    def recorded(self, measure: Measure) -> Measure:
        """Return a measure that gives outcomes of the journal first, and records new ones.

        A default that could not be measured is measured again.
        """
        known: dict[Comparison, deque[ComparisonOutcome]] = {}
        for one in self._ended():
            if one.comparison.phase is TuningPhase.CHECK and one.outcome.evidence is None:
                continue  # it ended the tuning, and what failed may be mended
            known.setdefault(one.comparison, deque()).append(one.outcome)

        def measured(comparison: Comparison) -> ComparisonOutcome:
            if known.get(comparison):
                return known[comparison].popleft()
            outcome = measure(comparison)
            files.append_line(self.path, dumps(_Ended(comparison, outcome)))
            return outcome

        return measured

    @property
    def result(self) -> Tuned | None:
        """What the tuning found; None if it has not ended."""
        path = self.path.with_name(RESULT)
        try:
            return loads(Tuned, path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None
        except OSError as problem:
            raise EnvironmentUnusable(f"{path}: {problem.strerror}") from problem
        except ValueError as problem:
            raise InvalidInput(f"{path}: not the result of a tuning: {problem}") from None

    def end(self, found: Tuned) -> None:
        """Keep what the tuning found."""
        files.write(self.path.with_name(RESULT), dumps(found))

    @property
    def runs(self) -> tuple[str, ...]:
        """The runs of the comparisons that have ended."""
        outcomes = [one.outcome for one in self._ended()]
        return tuple(run_id for one in outcomes for run_id in (*one.runs, *one.failed_runs))

    def _ended(self) -> list[_Ended]:
        return JOURNALS.ended(_Ended, self.path)

    def locked(self) -> AbstractContextManager[None]:
        """Lock the tuning against other processes."""
        return JOURNALS.locked(self.path)


def begin(store: StoreLocation, begun: BegunTuning) -> TuningJournal:
    """Create the journal of a new tuning."""
    return TuningJournal(JOURNALS.begin(store, begun), begun)


def find(store: StoreLocation, tuning_id: str) -> TuningJournal:
    """Return the journal of a tuning by its id or a unique prefix."""
    path = JOURNALS.find(store, tuning_id)
    return TuningJournal(path, JOURNALS.begun(BegunTuning, path))
