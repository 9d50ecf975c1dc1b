"""The undo journal: what must be undone on a deployment, on disk before it is done.

A step is written before its fault and removed when it is undone, so that whoever finds the file
can undo what is left. Steps can be undone twice without harm.
"""

import json
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from pathlib import Path
from threading import Lock
from typing import Any

from loadstone import files
from loadstone.errors import EnvironmentUnusable

FILE = "faults.json"


class Undo(StrEnum):
    """How something is undone."""

    CONTINUE = "continue"  # SIGCONT to a part's processes
    START = "start"  # a part, if it does not run; "PART PID": that process is ended first
    ADDRESS = "address"  # haproxy sends to a node itself again
    READY = "ready"  # a server of haproxy's backend gets requests again
    KEYS = "keys"  # Fernet keys, from a copy
    WRITABLE = "writable"  # the database
    CERTIFICATE = "certificate"  # haproxy shows the valid one again
    FREE = "free"  # disk space that a file takes
    CONF = "keystone.conf"  # as it was, and the nodes restarted
    UPGRADE = "finish the upgrade"  # there is no way back from a migrated schema
    END = "end"  # processes that load the machine
    COMMAND = "command"  # of the user's file, on a host


@dataclass(frozen=True, slots=True)
class UndoStep:
    """One thing to undo."""

    undo: Undo
    what: str  # a part, a server, a folder, an id
    boot: str  # of the machine; processes of an earlier one are gone

    @property
    def words(self) -> str:
        """Describe the step for users, without the id of a process."""
        what = self.what.partition(" ")[0] if self.undo is Undo.START else self.what
        return f"{self.undo} {what}"


@dataclass(slots=True)
class UndoJournal:
    """The steps of one deployment that are yet to be undone, the last one first."""

    folder: Path
    steps: list[UndoStep] = field(default_factory=list)
    _lock: Lock = field(default_factory=Lock, init=False, repr=False)

    @classmethod
    def read(cls, folder: Path) -> "UndoJournal":
        """Read what is left to undo; nothing where there is no journal."""
        path = folder / FILE
        try:
            rows: list[dict[str, Any]] = json.loads(path.read_text())
            steps = [
                UndoStep(Undo(row["undo"]), str(row["what"]), str(row["boot"])) for row in rows
            ]
        except FileNotFoundError:
            return cls(folder)
        except (ValueError, KeyError, TypeError) as wrong:
            raise EnvironmentUnusable(
                f"{path} cannot be read ({type(wrong).__name__}): faults may be left; "
                f"`loadstone lab down {folder.name}` ends all of its processes"
            ) from None
        return cls(folder, steps)

    def add(self, step: UndoStep) -> None:
        """Note a step; it is on disk when this returns."""
        with self._lock:
            self.steps.append(step)
            self._write()

    def remove(self, step: UndoStep) -> None:
        """Forget a step that is undone."""
        with self._lock:
            self.steps.remove(step)
            self._write()

    def _write(self) -> None:
        path = self.folder / FILE
        if self.steps:
            files.write(path, json.dumps([asdict(one) for one in self.steps]), files.PRIVATE)
        else:
            path.unlink(missing_ok=True)
