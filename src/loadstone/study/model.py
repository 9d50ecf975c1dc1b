"""What a study is, once its file has been checked."""

from dataclasses import dataclass

Pairs = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Level:
    """One level of a factor: settings of the lab, and the scenario where the level chooses it."""

    name: str
    settings: Pairs
    scenario: str | None


@dataclass(frozen=True, slots=True)
class Factor:
    """What is varied, and its levels."""

    name: str
    levels: tuple[Level, ...]


@dataclass(frozen=True, slots=True)
class Cell:
    """One combination of levels: what is started, and what is asked of it."""

    levels: Pairs  # factor, level
    settings: Pairs  # KEY, VALUE as `lab up --with` takes them
    scenario: str

    def __str__(self) -> str:
        return ", ".join(f"{factor} {level}" for factor, level in self.levels)


@dataclass(frozen=True, slots=True)
class Measurement:
    """A capacity search, and what it may spend."""

    method: str  # as `capacity --method`
    budget_s: float
    max_rate_rps: float
    users: int
    objectives: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two levels of a factor whose ratio is asked for: other / base."""

    factor: str
    base: str
    other: str


@dataclass(frozen=True, slots=True)
class Published:
    """A figure that others have published of a combination of levels."""

    levels: Pairs
    rate_rps: float
    words: str

    def is_of(self, cell: Cell) -> bool:
        """Say whether the cell has all these levels."""
        return set(self.levels) <= set(cell.levels)


@dataclass(frozen=True, slots=True)
class Study:
    """A measurement of every cell, repeated."""

    name: str
    title: str
    source: str  # the publication, or empty
    notes: tuple[str, ...]  # in what it differs from the publication
    factors: tuple[Factor, ...]
    cells: tuple[Cell, ...]
    repeats: int
    pause_s: float  # between two measurements
    measurement: Measurement
    comparisons: tuple[Comparison, ...]
    published: tuple[Published, ...]
    quick: str | None  # what the quick form leaves out, in words; None: this is the whole study
