"""What a study is, once its file has been checked."""

from dataclasses import dataclass, field
from enum import StrEnum

from loadstone.config.fault import FaultTerms
from loadstone.redaction import is_secret_option

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
    scenario: str  # empty where the steps name theirs
    is_reference: bool = False  # `loadstone serve` in place of a Keystone

    def __str__(self) -> str:
        return ", ".join(f"{factor} {level}" for factor, level in self.levels)


class Figure(StrEnum):
    """What of a step stands in the table."""

    RATE = "rate"
    TOTAL = "total"
    MEAN = "mean"
    P50 = "p50"
    P90 = "p90"
    P95 = "p95"
    P99 = "p99"
    MAX = "max"
    KEYSTONE = "keystone"  # requests to Keystone
    SUCCESS = "success"  # share of iterations that ended well
    STATEMENTS = "statements"  # SELECT, INSERT, UPDATE, DELETE per iteration

    @property
    def unit(self) -> str:
        """Its unit, as the head of a column says it."""
        match self:
            case Figure.RATE:
                return "per s"
            case Figure.TOTAL:
                return "s"
            case Figure.KEYSTONE:
                return "per iteration"
            case Figure.SUCCESS:
                return "%"
            case Figure.STATEMENTS:
                return "per request"
            case _:
                return "ms"


@dataclass(frozen=True, slots=True)
class SearchMeasurement:
    """A capacity search, and what it may spend."""

    method: str  # as `capacity --method`
    budget_s: float
    max_rate_rps: float
    users: int
    objectives: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ClosedLoopStep:
    """A closed-loop stretch: `iterations` in all, `concurrency` at a time."""

    name: str
    scenario: str
    concurrency: int
    iterations: int
    timed: bool  # False: it only warms up, or prepares; it has no row in the table
    at_most_s: float


@dataclass(frozen=True, slots=True)
class StepsMeasurement:
    """Stretches one after the other on the same deployment, and which figure of each counts."""

    figure: Figure
    users: int
    steps: tuple[ClosedLoopStep, ...]

    @property
    def timed(self) -> tuple[ClosedLoopStep, ...]:
        """Those that have a row in the table."""
        return tuple(step for step in self.steps if step.timed)


@dataclass(frozen=True, slots=True)
class Tasks:
    """A Rally task, and which figure of each of its workloads counts."""

    figure: Figure
    text: str = field(repr=False)  # the task as JSON
    names: tuple[str, ...]  # of its workloads, without those that warm up
    warm_ups: int = 0  # workloads at the start that have no row in the table
    until_failure: bool = False  # the first workload that breaks its SLA is the last one
    secrets: frozenset[str] = field(default=frozenset(), repr=False)


@dataclass(frozen=True, slots=True)
class FaultRow:
    """A figure of a fault: a row of the table."""

    sentence: str
    figure: str  # of analysis.fault.FIGURES
    words: str  # with its unit

    @property
    def name(self) -> str:
        """Its name in the table."""
        return f"{self.sentence}: {self.words}"


@dataclass(frozen=True, slots=True)
class FaultMeasurement:
    """Faults under a steady load, one after the other, and which figures count."""

    terms: FaultTerms
    scenario: str
    users: int
    rows: tuple[FaultRow, ...]


Measurement = SearchMeasurement | StepsMeasurement | Tasks | FaultMeasurement


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two levels of a factor whose ratio is asked for: other / base."""

    factor: str
    base: str
    other: str


@dataclass(frozen=True, slots=True)
class Published:
    """A figure that others have published of a combination of levels, in the unit of ours."""

    levels: Pairs
    step: str | None  # None: of a search
    value: float
    words: str

    def is_of(self, cell: Cell, step: str | None) -> bool:
        """Return whether the cell has all these levels, and it is of this step."""
        return self.step == step and set(self.levels) <= set(cell.levels)


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
    names_limits: bool = False  # a column says what gave way

    @property
    def figure(self) -> tuple[str, str]:
        """What the table shows of each cell, and its unit."""
        match self.measurement:
            case SearchMeasurement():
                return "N", "per s"
            case StepsMeasurement(figure=figure) | Tasks(figure=figure):
                return figure.value, figure.unit
            case FaultMeasurement():
                return "figure", ""  # each row names its unit

    @property
    def is_counted(self) -> bool:
        """Whether the figure is a count, which the machine's speed does not change."""
        return self.figure[0] in (Figure.KEYSTONE, Figure.STATEMENTS)

    @property
    def secrets(self) -> frozenset[str]:
        """Passwords and the like, of the task and of Keystone's options."""
        of_options = {
            value
            for cell in self.cells
            for key, value in cell.settings
            if key.startswith("conf.") and is_secret_option(key)
        }
        of_task = self.measurement.secrets if isinstance(self.measurement, Tasks) else frozenset()
        return of_task | of_options

    @property
    def steps(self) -> tuple[str | None, ...]:
        """The names of the rows of each cell."""
        return rows_of(self.measurement)


def rows_of(measurement: Measurement) -> tuple[str | None, ...]:
    """Name what has a row in the table for each cell; a search has one, without a name."""
    match measurement:
        case SearchMeasurement():
            return (None,)
        case StepsMeasurement() as steps:
            return tuple(step.name for step in steps.timed)
        case Tasks(names=names):
            return names
        case FaultMeasurement(rows=rows):
            return tuple(row.name for row in rows)
