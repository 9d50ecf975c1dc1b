"""Collects the results of iterations: columns, grouped failures and outputs."""

import re
from array import array
from dataclasses import dataclass, field, replace

import numpy as np

from loadstone.engine.callables.causes import IterationEnd
from loadstone.engine.callables.model import ITERATION, WAIT, FailureGroup, IterationOutput
from loadstone.engine.outcome import Outcome
from loadstone.engine.samples import NO_FIRST_BYTE, Samples

MOST_CAUSES = 100
MOST_OUTPUTS_SIZE = 4_000_000  # characters, because the store keeps them in one row
# Actions are numbered in one byte; ITERATION gets the highest number until the others are known.
_LAST, _OTHER, OTHER = 255, 254, "(other actions)"
OTHER_CAUSES = "(other causes)"
# Ids, numbers and addresses, which are ignored when failures are grouped.
_VARYING = re.compile(r"(?i)\b[0-9a-f]{8,}(?:-[0-9a-f]{4,})*\b|\d+(?:\.\d+)?")
_TYPES = {
    "due_ns": "q",
    "sent_ns": "q",
    "done_ns": "q",
    "first_byte_us": "I",
    "iteration": "I",
    "connection": "I",
    "status": "H",
    "outcome": "B",
    "action": "B",
    "retried": "B",
    "generator": "H",
}


@dataclass(frozen=True, slots=True)
class SampleRow:
    """One row of the sample table."""

    iteration: int
    slot: int
    due_ns: int
    sent_ns: int
    done_ns: int
    outcome: int = Outcome.OK
    status: int = 0


@dataclass(slots=True)
class SampleRecorder:
    """All results of a run so far."""

    columns: dict[str, "array[int]"] = field(
        default_factory=lambda: {name: array(code) for name, code in _TYPES.items()}
    )
    names: dict[str, int] = field(default_factory=lambda: {WAIT: 0})
    causes: dict[tuple[str, int, int, str], FailureGroup] = field(default_factory=dict)
    outputs: dict[int, IterationOutput] = field(default_factory=dict)
    outputs_size: int = 0
    outputs_dropped: int = 0

    def number(self, action: str) -> int:
        """Return an action's number, in order of first use."""
        if action == ITERATION:
            return _LAST
        if action not in self.names and len(self.names) >= _OTHER:
            action = OTHER
        return self.names.setdefault(action, len(self.names))

    def row(self, action: str, row: SampleRow) -> None:
        """Add a row."""
        columns = self.columns
        columns["due_ns"].append(row.due_ns)
        columns["sent_ns"].append(row.sent_ns)
        columns["first_byte_us"].append(NO_FIRST_BYTE)
        columns["done_ns"].append(row.done_ns)
        columns["iteration"].append(row.iteration)
        columns["connection"].append(row.slot)
        columns["status"].append(row.status)
        columns["outcome"].append(row.outcome)
        columns["action"].append(self.number(action))
        columns["retried"].append(0)
        columns["generator"].append(0)

    def __len__(self) -> int:
        return len(self.columns["outcome"])

    def mark_caught(self, rows: list[int]) -> None:
        """Mark failed rows as successful, and that the function caught their exceptions."""
        for row in rows:
            self.columns["outcome"][row] = Outcome.OK
            self.columns["retried"][row] = 1

    def failure(self, action: str, how: IterationEnd, iteration: int) -> None:
        """Count a failure in its group."""
        outcome, status, cause = how
        key = (action, outcome, status, _VARYING.sub("#", cause))
        if key not in self.causes and len(self.causes) >= MOST_CAUSES:
            action, outcome, status, cause = ITERATION, Outcome.RAISED, 0, OTHER_CAUSES
            key = (action, outcome, status, cause)
        known = self.causes.get(key) or FailureGroup(action, cause, 0, iteration, outcome, status)
        self.causes[key] = replace(
            known, count=known.count + 1, iteration=min(known.iteration, iteration)
        )

    def output(self, iteration: int, form: str, chart: str) -> None:
        """Add a chart from an iteration, up to the limit."""
        if self.outputs_size + len(chart) > MOST_OUTPUTS_SIZE:
            self.outputs_dropped += 1
            return
        self.outputs_size += len(chart)
        known = self.outputs.get(iteration) or IterationOutput(iteration)
        if form == "additive":
            known = replace(known, additive=(*known.additive, chart))
        else:
            known = replace(known, complete=(*known.complete, chart))
        self.outputs[iteration] = known

    def actions(self) -> tuple[str, ...]:
        """Return the names of the actions by number."""
        return (*self.names, ITERATION)

    def samples(self) -> Samples:
        """Return the samples in order of completion."""
        arrays = {name: np.array(column) for name, column in self.columns.items()}
        arrays["action"][arrays["action"] == _LAST] = len(self.names)
        return Samples(**arrays).by_completion()

    def ended_since(self, start: int, begun: list[int]) -> tuple[Samples, list[int]]:
        """Return the new rows of completed iterations: from `start` on, and those in `begun`.

        The rows of other iterations are returned for the next call.
        """
        columns = self.columns
        rows = [*begun, *range(start, len(self))]
        ended = {
            columns["iteration"][row]
            for row in rows
            if columns["action"][row] == _LAST or columns["outcome"][row] == Outcome.NOT_SENT
        }
        whole = [row for row in rows if columns["iteration"][row] in ended]
        arrays = {
            name: np.array(array(column.typecode, (column[row] for row in whole)))
            for name, column in columns.items()
        }
        arrays["action"][arrays["action"] == _LAST] = len(self.names)
        return Samples(**arrays), [row for row in rows if columns["iteration"][row] not in ended]

    def failures(self) -> tuple[FailureGroup, ...]:
        """Return the groups of failures, the most frequent first."""
        return tuple(sorted(self.causes.values(), key=lambda one: -one.count))
