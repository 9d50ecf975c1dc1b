"""Rally's iterations as a sample table, in the form of engine/callables."""

from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from loadstone.engine.callables.model import ITERATION, PAUSE, WAIT
from loadstone.engine.outcome import Outcome
from loadstone.engine.samples import NO_FIRST_BYTE, Samples
from loadstone.store.import_limits import duration_s, moment_s

# An action's number has one byte; further actions count in the iteration only.
MOST_ACTIONS = 250


@dataclass(slots=True)
class SampleTable:
    """Rows in the order of their ends, times in ns since the first iteration's start."""

    start_s: float
    names: dict[str, int] = field(default_factory=lambda: {WAIT: 0, PAUSE: 1})
    rows: "array[int]" = field(default_factory=lambda: array("q"))

    @classmethod
    def of(cls, data: Sequence[Mapping[str, Any]]) -> Self:
        """Read iterations in either of Rally's formats."""
        starts_s = [moment_s(one["timestamp"], "timestamp") for one in data]
        table = cls(min(starts_s, default=0.0))
        for number, iteration in enumerate(data):
            table._iteration(number, iteration)
        return table

    def actions(self) -> tuple[str, ...]:
        """Return the actions' names in the order of their numbers."""
        return (*self.names, ITERATION)

    def samples(self) -> Samples:
        """Return the table."""
        number, action, start, end, failed, caught = np.array(self.rows, np.int64).reshape(-1, 6).T
        whole = action < 0
        # Within an iteration: waiting, what it did, the whole; over all, by their ends.
        order = np.lexsort((whole, end))
        start, end, action = start[order], end[order], action[order]
        return Samples(
            due_ns=start,
            sent_ns=start,
            done_ns=end,
            first_byte_us=np.full(len(start), NO_FIRST_BYTE, np.uint32),
            iteration=number[order].astype(np.uint32),
            connection=np.zeros(len(start), np.uint32),
            status=np.zeros(len(start), np.uint16),
            outcome=np.where(failed[order] > 0, Outcome.RAISED, Outcome.OK).astype(np.uint8),
            action=np.where(action < 0, len(self.names), action).astype(np.uint8),
            retried=caught[order].astype(np.uint8),
            generator=np.zeros(len(start), np.uint16),
        )

    def _iteration(self, number: int, iteration: Mapping[str, Any]) -> None:
        start_s = float(iteration["timestamp"])
        idle_s = duration_s(iteration.get("idle_duration") or 0.0, "idle_duration")
        end_s = start_s + duration_s(iteration["duration"], "duration") + idle_s
        duration_s(end_s - self.start_s, "the time from the first start to the last end")
        self._row(number, 0, (start_s, start_s))
        if idle_s > 0:
            self._row(number, 1, (end_s - idle_s, end_s))
        is_failed = bool(iteration.get("error"))
        for path, began_s, ended_s, has_raised in _actions(iteration, start_s):
            if path in self.names or len(self.names) < MOST_ACTIONS:
                action = self.names.setdefault(path, len(self.names))
                # Clocks step: keep actions inside their iteration.
                at_s = (min(max(began_s, start_s), end_s), min(max(ended_s, start_s), end_s))
                # An exception that the scenario caught does not fail the iteration.
                failed, caught = has_raised and is_failed, has_raised and not is_failed
                self._row(number, action, at_s, failed=failed, caught=caught)
        self._row(number, -1, (start_s, end_s), failed=is_failed)

    def _row(
        self,
        number: int,
        action: int,
        ends_s: tuple[float, float],
        *,
        failed: bool = False,
        caught: bool = False,
    ) -> None:
        ends = (round((at_s - self.start_s) * 1e9) for at_s in ends_s)
        self.rows.extend((number, action, *ends, int(failed), int(caught)))


def _actions(
    iteration: Mapping[str, Any], start_s: float
) -> Iterator[tuple[str, float, float, bool]]:
    """Yield path, start, end and whether it raised; the old form has only durations."""
    actions: Sequence[Mapping[str, Any]] | Mapping[str, Any] = iteration["atomic_actions"]
    if isinstance(actions, Mapping):
        for name, took_s in actions.items():
            if took_s is None and not iteration.get("error"):
                continue  # it raised, and Rally kept no time that could count as a success
            end_s = start_s + float(took_s or 0.0)
            yield _part(name), start_s, end_s, took_s is None
            start_s = end_s
        return
    for action in actions:
        yield from _nested(action, "")


def _part(name: object) -> str:
    """Return an action's name as a part of a path; what is in parentheses is Loadstone's own."""
    part = str(name).replace("/", "-")
    return part if part and not part.startswith("(") else f"action {part}".rstrip()


def _nested(action: Mapping[str, Any], outer: str) -> Iterator[tuple[str, float, float, bool]]:
    path = f"{outer}{_part(action['name'])}"
    start_s = float(action["started_at"])
    end_s = float(action.get("finished_at") or start_s)
    yield path, start_s, end_s, bool(action.get("failed"))
    for inner in action.get("children") or ():
        yield from _nested(inner, f"{path}/")
