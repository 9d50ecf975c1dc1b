"""What a report says, as values that every output format renders.

A `Section` is one measurement: a search, a workload of a task, a fault, a comparison, a cell of a
study, a sizing. Functions of `sections/` and of the rooms above make sections; formats read only
them. A format that needs to know the kind of a measurement lacks a field here.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from loadstone.diagnosis.finding import Severity
from loadstone.report.chart import Chart, Tone


@dataclass(frozen=True, slots=True)
class Answer:
    """What was measured: one figure with its unit and interval, and the sentence that says it."""

    label: str  # "N", "throughput", "downtime", "B / A"
    text: str  # "33", "at least 40", "not found"
    unit: str  # "per second"; empty for a ratio
    sentence: str
    value: float | None = None
    low: float | None = None
    high: float | None = None
    interval: str = ""  # "31 to 36"; empty if it is not known
    confidence: float = 0.0  # of the interval, 0..1; 0: unknown

    @property
    def line(self) -> str:
        """The answer without its interval: "N = 33 per second"."""
        is_number = self.text[:1].isdigit() and " to " not in self.text
        sign = " = " if is_number and self.label[:1].isupper() else ": " if is_number else " "
        return f"{self.label}{sign}{self.text} {self.unit}".rstrip()

    @property
    def within(self) -> str:
        """The interval and its confidence: "31 to 36, 95 %"; empty without an interval."""
        sure = f", {100 * self.confidence:.0f} %" if self.confidence > 0 else ""
        return f"{self.interval}{sure}" if self.interval else ""


@dataclass(frozen=True, slots=True)
class Certainty:
    """Whether the answer can be relied on."""

    tone: Tone
    text: str  # "valid", "load generator was the limit", "SLA broken: failure_rate"
    exit_code: int = 0
    reason: str = ""  # why the exit code is not 0
    kind: str = ""  # of the shortfall: "not decided", "fell short"
    try_: str = ""  # what may help: "--budget 2m"

    @property
    def line(self) -> str:
        """Why the exit code is not 0, in one line; empty if it is 0."""
        if not self.exit_code:
            return ""
        more = f". Try {self.try_}" if self.try_ else ""
        return f"{self.kind} (exit {self.exit_code}): {self.reason}{more}"


SEPARATOR = " · "  # between the parts of a subtitle
VALID = Certainty("sustained", "valid")


@dataclass(frozen=True, slots=True)
class Fact:
    """A labelled line of the summary. If there are too many, those of the highest rank go."""

    label: str
    text: str
    rank: int = 1
    tone: Tone | None = None
    is_line: bool = True  # in the summary
    is_column: bool = False  # in the overview of several measurements
    short: str = ""  # in that column; else the text


@dataclass(frozen=True, slots=True)
class NamedFigure:
    """One number; `name` is its key in data and in properties of JUnit."""

    name: str
    label: str
    value: float | None
    unit: str = ""
    text: str = ""  # as shown


@dataclass(frozen=True, slots=True)
class Statement:
    """A sentence that the figures carry."""

    text: str
    severity: Severity = Severity.INFO


@dataclass(frozen=True, slots=True)
class NextStep:
    """What to do: advice, what it is worth where that is known, and the command for it."""

    text: str
    severity: Severity = Severity.INFO
    worth: str = ""
    command: str = ""
    rule: str = ""  # of the audit: "KS-01"
    detail: str = ""  # what was found


@dataclass(frozen=True, slots=True)
class ToneCell:
    """A cell with a tone: a verdict."""

    text: str
    tone: Tone


@dataclass(frozen=True, slots=True)
class IntervalCell:
    """A cell with an interval, drawn on the scale of its column."""

    text: str
    low: float | None
    at: float | None
    high: float | None


Cell = str | ToneCell | IntervalCell


def text_of(cell: Cell) -> str:
    """Return the text of a cell."""
    return cell if isinstance(cell, str) else cell.text


@dataclass(frozen=True, slots=True)
class TableColumn:
    """The head of a column: its name with its unit."""

    name: str
    is_number: bool = False


@dataclass(frozen=True, slots=True)
class Row:
    """One row; `note` is a line below it, `target` the id of the section that it leads to."""

    cells: tuple[Cell, ...]
    note: str = ""
    target: str = ""


@dataclass(frozen=True, slots=True)
class Table:
    """Rows under named columns."""

    title: str
    columns: tuple[TableColumn, ...]
    rows: tuple[Row, ...]
    caption: str = ""
    is_primary: bool = False  # part of the summary


@dataclass(frozen=True, slots=True)
class Transcript:
    """Text as it is: a printed output, a file."""

    title: str
    text: str
    about: str = ""


@dataclass(frozen=True, slots=True)
class Flame:
    """A flame graph: a tree in the format of d3-flame-graph."""

    id: str
    tree: Mapping[str, Any]
    caption: str


@dataclass(frozen=True, slots=True)
class Section:
    """One measurement, or a step of one."""

    id: str  # unique in its report
    title: str
    answer: Answer
    certainty: Certainty
    subtitle: str = ""  # of a task's workload: its subtask and description
    name: str = ""  # where it stands alone: "Issue tokens, concurrency 2"; empty: the title
    scenario: str = ""
    request: str = ""  # "POST /v3/auth/tokens"
    limit: str = ""  # what limits, by name
    facts: tuple[Fact, ...] = ()  # the summary below the answer
    figures: tuple[NamedFigure, ...] = ()
    statements: tuple[Statement, ...] = ()
    method: tuple[str, ...] = ()  # how it was measured, in sentences
    steps: tuple[NextStep, ...] = ()
    commands: tuple[Fact, ...] = ()  # what shows more
    tables: tuple[Table, ...] = ()
    charts: tuple[Chart, ...] = ()
    flame: Flame | None = None
    listings: tuple[Transcript, ...] = ()
    parts: tuple["Section", ...] = ()
    took_s: float = 0.0
    data: Mapping[str, Any] = field(default_factory=dict)  # every figure, for programs

    @property
    def leaves(self) -> Iterator["Section"]:
        """The sections without parts, in order."""
        if not self.parts:
            yield self
        for part in self.parts:
            yield from part.leaves


@dataclass(frozen=True, slots=True)
class Report:
    """One run, a comparison, a study: sections and what they share."""

    title: str  # the headline
    subject: str  # "Keystone 30.0.0, lab demo (2 workers, SQLite), 2 cores"
    sections: tuple[Section, ...]
    name: str = ""  # of what made it: "loadstone capacity"
    id: str = ""  # of the run
    about: str = ""  # when, by what, how it ended
    started_at: str = ""
    failure: str = ""  # why it ended early
    is_clean: bool = True  # all that it created in its cloud is removed
    exit_code: int = 0
    status: str = "finished"
    statements: tuple[Statement, ...] = ()
    notes: tuple[str, ...] = ()  # how to read the tables, below them
    steps: tuple[NextStep, ...] = ()
    settings: tuple[Table, ...] = ()
    overview: Table | None = None  # a row for each section
    is_compact: bool = False  # a terminal shows the overview in place of each section
    anchor: str = "overview"
    tables: tuple[Table, ...] = ()  # over all sections
    charts: tuple[Chart, ...] = ()  # over all sections
    page: str = ""  # the command that writes the page
    words: tuple[tuple[str, str], ...] = ()  # terms and their meaning
    properties: tuple[tuple[str, str], ...] = ()  # of target and machine
    data: Mapping[str, Any] = field(default_factory=dict)
