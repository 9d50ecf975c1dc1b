"""Runs of this process whose rows could not be written yet."""

import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Self

from loadstone.result.model import Measurement
from loadstone.system.say import Say

RETRY_S = 30.0  # between two attempts to write, each of which may wait for a lock


@dataclass(slots=True)
class _State:
    """State that all copies of a store share."""

    runs: set[str] = field(default_factory=set)
    tried_s: float | None = None  # the last attempt that failed


@dataclass(frozen=True, slots=True)
class Backlog:
    """What is only in files, and when to try to write it next."""

    say: Say | None = None  # None: nobody can be told, so errors are raised
    # The measurements of this process's runs, of which trials need the load.
    measurements: dict[tuple[str, int], Measurement] = field(default_factory=dict)
    _state: _State = field(default_factory=_State)

    def telling(self, say: Say) -> Self:
        """Return the same backlog with another way to tell the user."""
        return replace(self, say=say)

    def holds(self, run_id: str) -> bool:
        """Return whether rows of this run are only in files."""
        return run_id in self._state.runs

    def runs(self) -> frozenset[str]:
        """Return the runs of which rows are only in files."""
        return frozenset(self._state.runs)

    def is_due(self) -> bool:
        """Return whether the database should be tried: it works, or the last attempt is old."""
        tried_s = self._state.tried_s
        return tried_s is None or time.monotonic() - tried_s >= RETRY_S

    def add(self, run_id: str) -> None:
        """Remember that rows of this run are only in files."""
        self._state.runs.add(run_id)

    def fell_behind(self, run_id: str, why: str, folder: Path) -> None:
        """Remember a failed attempt; say so the first time."""
        if not self._state.runs and self.say is not None:
            self.say(
                f"results cannot be written to the store: {why}. They are kept in {folder}; "
                "the run goes on, and the next loadstone command that opens the store, or "
                "loadstone results recover, brings them in"
            )
        self._state.runs.add(run_id)
        self._state.tried_s = time.monotonic()

    def caught_up(self) -> frozenset[str]:
        """Remember that all rows are written; return the runs of which some were not."""
        found = self.runs()
        if found and self.say is not None:
            self.say("results are written to the store again, with those that were missing")
        self._state.runs.clear()
        self._state.tried_s = None
        return found
