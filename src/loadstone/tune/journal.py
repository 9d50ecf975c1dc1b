"""Journal of a tuning: `tunings/ID/comparisons.jsonl` beside the results.

The first line says how the tuning began, every further line is a comparison that has ended. Each
line is on disk before its result is shown. A tuning is resumed by giving it the same outcomes
again: its decisions follow from them. What a tuning found is kept in `result.json` when it ends, so
that it can be shown by a later version of Loadstone, whose search may decide otherwise.
"""

import secrets
from collections import deque
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

from loadstone.errors import EnvironmentUnusable, InvalidInput
from loadstone.store.codec import dumps, loads
from loadstone.store.location import StoreLocation
from loadstone.system import files, locks
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

T = TypeVar("T")

FOLDER = "tunings"
FILE = "comparisons.jsonl"
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
        _, *lines = _lines(self.path)
        return [_record(_Ended, line, self.path, i) for i, line in enumerate(lines, start=2)]

    def locked(self) -> AbstractContextManager[None]:
        """Lock the tuning against other processes."""
        busy = f"tuning {self.tuning_id} is being run by another loadstone"
        return locks.held(self.path.parent / "lock", busy=busy)


def begin(store: StoreLocation, begun: BegunTuning) -> TuningJournal:
    """Create the journal of a new tuning."""
    tuning_id = f"{datetime.now(UTC):%Y%m%d-%H%M}-{secrets.token_hex(3)}"
    path = store.folder / FOLDER / tuning_id / FILE
    try:
        files.make_private_folder(store.folder)  # the store is opened later
        path.parent.mkdir(parents=True)
    except OSError as problem:
        raise EnvironmentUnusable(f"{path.parent}: {problem.strerror}") from problem
    files.append_line(path, dumps(begun))
    return TuningJournal(path, begun)


def find(store: StoreLocation, tuning_id: str) -> TuningJournal:
    """Return the journal of a tuning by its id or a unique prefix."""
    if not tuning_id:
        raise InvalidInput("no tuning is named: the ID is empty; is a variable not set?")
    paths = sorted((store.folder / FOLDER).glob(f"*/{FILE}"))
    known = [one.parent.name for one in paths]
    matching = [one for one in known if one.startswith(tuning_id)]
    if len(matching) != 1:
        listed = ", ".join(matching or known[-4:]) or "none yet"
        raise InvalidInput(f"no tuning {tuning_id!r} has begun; choose from {listed}")
    path = store.folder / FOLDER / matching[0] / FILE
    lines = _lines(path)
    if not lines:
        raise InvalidInput(f"tuning {matching[0]} was killed before it began; begin it again")
    return TuningJournal(path, _record(BegunTuning, lines[0], path, 1))


def _lines(path: Path) -> list[bytes]:
    """Return the complete lines, without a last line that a kill cut short."""
    try:
        return path.read_bytes().split(b"\n")[:-1]
    except OSError as problem:
        raise EnvironmentUnusable(f"{path}: {problem.strerror}") from problem


def _record(kind: type[T], line: bytes, path: Path, number: int) -> T:
    try:
        return loads(kind, line.decode())
    except ValueError as problem:  # also of what is not UTF-8
        later = "without this line, --resume makes its comparison again"
        mend = "begin the tuning again" if number == 1 else later
        raise InvalidInput(
            f"{path}:{number}: not the journal of a tuning: {problem}; {mend}"
        ) from None
