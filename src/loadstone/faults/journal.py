"""The undo journal: the undo steps of a deployment's faults, on disk before each fault.

A step is written before its fault and removed when it is undone, so that any process that reads
the file can undo the rest. Undoing a step twice is harmless.
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
    """Kinds of steps that undo a fault."""

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
    """One undo step."""

    undo: Undo
    what: str  # a part, a server, a folder, an id
    boot: str  # id of the machine's boot; processes of an earlier boot are gone

    @property
    def description(self) -> str:
        """Describe the step for users, without a PID."""
        target = self.what.partition(" ")[0] if self.undo is Undo.START else self.what
        return f"{self.undo} {target}"


@dataclass(slots=True)
class UndoJournal:
    """The pending undo steps of one deployment; undone in reverse order."""

    folder: Path
    steps: list[UndoStep] = field(default_factory=list)
    _lock: Lock = field(default_factory=Lock, init=False, repr=False)

    @classmethod
    def read(cls, folder: Path) -> "UndoJournal":
        """Read the pending steps; none if there is no journal."""
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
        """Add a step; it is on disk when this returns."""
        with self._lock:
            self.steps.append(step)
            self._write()

    def remove(self, step: UndoStep) -> None:
        """Remove a step that is undone."""
        with self._lock:
            self.steps.remove(step)
            self._write()

    def _write(self) -> None:
        path = self.folder / FILE
        if self.steps:
            files.write(path, json.dumps([asdict(one) for one in self.steps]), files.PRIVATE)
        else:
            path.unlink(missing_ok=True)
