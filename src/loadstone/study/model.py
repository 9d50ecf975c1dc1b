"""Studies, as read from a checked file."""

from dataclasses import dataclass, field
from enum import StrEnum

from loadstone.lab.keystone.settings import Service
from loadstone.system.redaction import is_secret_option, secrets_in
from loadstone.workload.fault import FaultTerms

Pairs = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Level:
    """One level of a factor: settings of the lab, and a scenario if the level chooses one."""

    name: str
    settings: Pairs
    scenario: str | None
    by_service: Pairs = ()  # the scenario that it chooses for each service instead
    expected: Pairs = ()  # facts that the deployment must state


@dataclass(frozen=True, slots=True)
class Factor:
    """A factor with its levels."""

    name: str
    levels: tuple[Level, ...]


@dataclass(frozen=True, slots=True)
class Cell:
    """One combination of levels: the deployment's settings and the scenario."""

    levels: Pairs  # factor, level
    settings: Pairs  # KEY, VALUE as `lab up --with` takes them
    scenario: str  # empty if the steps have their own
    is_reference: bool = False  # without settings: `loadstone serve` in place of a Keystone
    expected: Pairs = ()  # facts that the deployment must state before it is measured

    def __str__(self) -> str:
        return ", ".join(f"{factor} {level}" for factor, level in self.levels)

    @property
    def service(self) -> Service:
        """The identity service that the cell deploys."""
        return Service(dict(self.settings).get("service", Service.KEYSTONE))

    def level(self, factor: str) -> str:
        """Return its level of a factor."""
        return dict(self.levels)[factor]

    def levels_with(self, factor: str, level: str) -> Pairs:
        """Return its levels, with another of one factor."""
        return tuple((name, level if name == factor else own) for name, own in self.levels)

    def others(self, factor: str) -> Pairs:
        """Return its levels of the other factors."""
        return tuple((name, level) for name, level in self.levels if name != factor)


class Figure(StrEnum):
    """The figure of a step that the table shows."""

    RATE = "rate"
    TOTAL = "total"
    MEAN = "mean"
    P50 = "p50"
    P90 = "p90"
    P95 = "p95"
    P99 = "p99"
    MAX = "max"
    KEYSTONE = "keystone"  # requests to Keystone
    SUCCESS = "success"  # share of successful iterations
    STATEMENTS = "statements"  # SELECT, INSERT, UPDATE, DELETE per iteration

    @property
    def unit(self) -> str:
        """Its unit for the header of a column."""
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
    """A capacity search with its budget."""

    method: str  # as `capacity --method`
    budget_s: float
    max_rate_rps: float
    users: int
    objectives: tuple[str, ...]
    # Seconds of load before the search, which count for nothing, by the lab's service.
    warm_up_s: tuple[tuple[str, float], ...] = ()

    def warm_up_of(self, service: Service) -> float:
        """Return the seconds of load before a search of this service."""
        return dict(self.warm_up_s).get(service, 0.0)


@dataclass(frozen=True, slots=True)
class ClosedLoopStep:
    """A closed-loop load of `iterations` in total, `concurrency` at a time."""

    name: str
    scenario: str
    concurrency: int
    iterations: int
    timed: bool  # False: a warm-up or preparation without a row in the table
    at_most_s: float


@dataclass(frozen=True, slots=True)
class StepsMeasurement:
    """Closed-loop loads in sequence on the same deployment, and the figure to show."""

    figure: Figure
    users: int
    steps: tuple[ClosedLoopStep, ...]

    @property
    def timed(self) -> tuple[ClosedLoopStep, ...]:
        """The steps with a row in the table."""
        return tuple(step for step in self.steps if step.timed)


@dataclass(frozen=True, slots=True)
class Tasks:
    """A Rally task, and the figure of its workloads to show."""

    figure: Figure
    text: str = field(repr=False)  # the task as JSON
    names: tuple[str, ...]  # of its workloads, without warm-ups
    warm_ups: int = 0  # number of initial workloads without a row in the table
    until_failure: bool = False  # stop after the first workload that misses its SLA
    secrets: frozenset[str] = field(default=frozenset(), repr=False)


@dataclass(frozen=True, slots=True)
class FaultRow:
    """A figure of a fault: a row of the table."""

    sentence: str
    figure: str  # of analysis.fault.FIGURES
    label: str  # with its unit

    @property
    def name(self) -> str:
        """Its name in the table."""
        return f"{self.sentence}: {self.label}"


@dataclass(frozen=True, slots=True)
class FaultMeasurement:
    """Faults under a steady load, in sequence, and the figures to show."""

    terms: FaultTerms
    scenario: str
    users: int
    rows: tuple[FaultRow, ...]


Measurement = SearchMeasurement | StepsMeasurement | Tasks | FaultMeasurement


@dataclass(frozen=True, slots=True)
class LevelComparison:
    """Two levels of a factor to compare; the ratio is other / base."""

    factor: str
    base: str
    other: str


@dataclass(frozen=True, slots=True)
class Published:
    """A figure that others have published for a combination of levels, in the study's unit."""

    levels: Pairs
    step: str | None  # None: of a search
    value: float
    words: str

    def is_of(self, cell: Cell, step: str | None) -> bool:
        """Return whether the figure is for this step and a cell with these levels.

        A reference has no levels of its own, so that it has no other figure than its own.
        """
        levels, own = set(self.levels), set(cell.levels)
        return self.step == step and (levels == own if cell.is_reference else levels <= own)


@dataclass(frozen=True, slots=True)
class Study:
    """A measurement of every cell, repeated."""

    name: str
    title: str
    source: str  # the publication, or empty
    notes: tuple[str, ...]  # differences from the publication
    factors: tuple[Factor, ...]
    cells: tuple[Cell, ...]
    repeats: int
    pause_s: float  # between two measurements
    measurement: Measurement
    comparisons: tuple[LevelComparison, ...]
    published: tuple[Published, ...]
    quick: str | None  # description of the quick form; None: this is the full study
    names_limits: bool = False  # whether a column names the limit
    shows_costs: bool = False  # whether columns show p99, CPU per request and memory
    pairs_in_turns: int = 0  # of trials, at most, for each two cells that are compared; 0: none

    @property
    def figure(self) -> tuple[str, str]:
        """The figure of the table, and its unit."""
        match self.measurement:
            case SearchMeasurement():
                return "N", "per s"
            case StepsMeasurement(figure=figure) | Tasks(figure=figure):
                return figure.value, figure.unit
            case FaultMeasurement():
                return "figure", ""  # each row names its unit

    @property
    def is_counted(self) -> bool:
        """Whether the figure is a count, which does not depend on the machine's speed."""
        return self.figure[0] in (Figure.KEYSTONE, Figure.STATEMENTS)

    @property
    def is_of_speed(self) -> bool:
        """Whether the figure is a rate or a time of the service."""
        is_of_faults = isinstance(self.measurement, FaultMeasurement)
        return not (self.is_counted or is_of_faults or self.figure[0] == Figure.SUCCESS)

    @property
    def secrets(self) -> frozenset[str]:
        """Secrets of the task and of Keystone's options."""
        options = {
            (key, value)
            for cell in self.cells
            for key, value in cell.settings
            if key.startswith("conf.")
        }
        of_options = {value for key, value in options if is_secret_option(key)}.union(
            *(secrets_in(value) for _, value in options)  # rabbit://user:password@host
        )
        of_task = self.measurement.secrets if isinstance(self.measurement, Tasks) else frozenset()
        return of_task | of_options

    @property
    def steps(self) -> tuple[str | None, ...]:
        """The names of a cell's rows."""
        return rows_of(self.measurement)


def rows_of(measurement: Measurement) -> tuple[str | None, ...]:
    """Return the names of a cell's rows; a search has one row without a name."""
    match measurement:
        case SearchMeasurement():
            return (None,)
        case StepsMeasurement() as steps:
            return tuple(step.name for step in steps.timed)
        case Tasks(names=names):
            return names
        case FaultMeasurement(rows=rows):
            return tuple(row.name for row in rows)
