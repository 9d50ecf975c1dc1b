"""What iterations told, as columns, grouped failures and outputs."""

import re
from array import array
from dataclasses import dataclass, field, replace

import numpy as np

from loadstone.engine.callables.model import ITERATION, WAIT, Failure, Output
from loadstone.engine.outcome import Outcome
from loadstone.engine.samples import NO_FIRST_BYTE, Samples

MOST_CAUSES = 100
MOST_OUTPUTS_SIZE = 4_000_000  # characters, since the store keeps them in one row
# One byte numbers the actions; the last number is ITERATION's, until the others are known.
_LAST, _OTHER, OTHER = 255, 254, "(other actions)"
OTHER_CAUSES = "(other causes)"
# What tells failures apart that are alike: ids, numbers, addresses.
_VARYING = re.compile(r"(?i)\b[0-9a-f]{8,}(?:-[0-9a-f]{4,})*\b|\d+(?:\.\d+)?")
_TYPES = {
    "due_ns": "q",
    "sent_ns": "q",
    "done_ns": "q",
    "first_byte_us": "I",
    "iteration": "I",
    "connection": "H",
    "status": "H",
    "outcome": "B",
    "action": "B",
}


@dataclass(frozen=True, slots=True)
class Row:
    """One row of the sample table."""

    iteration: int
    slot: int
    due_ns: int
    sent_ns: int
    done_ns: int
    outcome: int = Outcome.OK
    status: int = 0


@dataclass(slots=True)
class Record:
    """Everything that is kept of a run while it goes on."""

    columns: dict[str, "array[int]"] = field(
        default_factory=lambda: {name: array(code) for name, code in _TYPES.items()}
    )
    names: dict[str, int] = field(default_factory=lambda: {WAIT: 0})
    causes: dict[tuple[str, str], Failure] = field(default_factory=dict)
    outputs: dict[int, Output] = field(default_factory=dict)
    outputs_size: int = 0
    outputs_dropped: int = 0

    def number(self, action: str) -> int:
        """Give an action's number; the first mention decides the order."""
        if action == ITERATION:
            return _LAST
        if action not in self.names and len(self.names) >= _OTHER:
            action = OTHER
        return self.names.setdefault(action, len(self.names))

    def row(self, action: str, row: Row) -> None:
        """Keep a row."""
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

    def __len__(self) -> int:
        return len(self.columns["outcome"])

    def forgive(self, rows: list[int]) -> None:
        """Note that rows which failed were no failure after all."""
        for row in rows:
            self.columns["outcome"][row] = Outcome.OK

    def failure(self, action: str, cause: str, iteration: int) -> None:
        """Count a failure among those that are like it."""
        key = (action, _VARYING.sub("#", cause))
        if key not in self.causes and len(self.causes) >= MOST_CAUSES:
            action, cause = ITERATION, OTHER_CAUSES
            key = (action, cause)
        known = self.causes.get(key) or Failure(action, cause, 0, iteration)
        self.causes[key] = Failure(
            known.action, known.cause, known.count + 1, min(known.iteration, iteration)
        )

    def output(self, iteration: int, form: str, chart: str) -> None:
        """Keep a chart that an iteration gave, as long as there is room for it."""
        if self.outputs_size + len(chart) > MOST_OUTPUTS_SIZE:
            self.outputs_dropped += 1
            return
        self.outputs_size += len(chart)
        known = self.outputs.get(iteration) or Output(iteration)
        if form == "additive":
            known = replace(known, additive=(*known.additive, chart))
        else:
            known = replace(known, complete=(*known.complete, chart))
        self.outputs[iteration] = known

    def actions(self) -> tuple[str, ...]:
        """Name the actions in the order of their numbers."""
        return (*self.names, ITERATION)

    def samples(self) -> Samples:
        """Give the table, in the order of completion."""
        made = {name: np.array(column) for name, column in self.columns.items()}
        made["action"][made["action"] == _LAST] = len(self.names)
        order = np.argsort(made["done_ns"], kind="stable")
        return Samples(**{name: column[order] for name, column in made.items()})

    def ended_since(self, start: int, begun: list[int]) -> tuple[Samples, list[int]]:
        """Give the rows, from `start` on and those that are named, of iterations that have ended.

        The others are named for the next time.
        """
        columns = self.columns
        rows = [*begun, *range(start, len(self))]
        ended = {
            columns["iteration"][row]
            for row in rows
            if columns["action"][row] == _LAST or columns["outcome"][row] == Outcome.NOT_SENT
        }
        whole = [row for row in rows if columns["iteration"][row] in ended]
        made = {
            name: np.array(array(column.typecode, (column[row] for row in whole)))
            for name, column in columns.items()
        }
        made["action"][made["action"] == _LAST] = len(self.names)
        return Samples(**made), [row for row in rows if columns["iteration"][row] not in ended]

    def failures(self) -> tuple[Failure, ...]:
        """Give the groups of failures, the most frequent first."""
        return tuple(sorted(self.causes.values(), key=lambda one: -one.count))
