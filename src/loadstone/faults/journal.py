"""Undo journals: the undo steps of each target's faults, on disk before each fault.

There is one journal per target, outside the runs and stores, so that every command finds it. A step
is written before its fault and removed when it is undone, so that any process that reads the file
can undo the rest. Undoing a step twice is harmless.
"""

import json
import os
import secrets
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import Any, Self
from urllib.parse import quote

from loadstone.errors import EnvironmentUnusable
from loadstone.faults.cores import BoundProcesses
from loadstone.faults.host import HERE, HostCommand
from loadstone.lab import processes
from loadstone.system import files, locks, paths
from loadstone.system.redaction import masked

SUFFIX = ".json"
_LOCK = "lock"  # held while a journal is read and rewritten
_UNDOING = ".undoing"  # held while the steps of a journal are undone


class Undo(StrEnum):
    """Kinds of steps that undo a fault."""

    CONTINUE = "continue"  # SIGCONT to a part's processes
    START = "start"  # a part, if it does not run; "PART PID": that process is ended first
    ADDRESS = "address"  # haproxy sends to a node itself again
    READY = "ready"  # a server of haproxy's backend gets requests again
    KEYS = "keys"  # Fernet keys, from a copy
    WRITABLE = "writable"  # the database
    STATEMENTS = "count no statements of"  # the database; `observers.statements` counts them
    CERTIFICATE = "certificate"  # haproxy shows the valid one again
    FREE = "free"  # disk space that a file takes
    CONF = "keystone.conf"  # as it was, and the nodes restarted
    UPGRADE = "finish the upgrade"  # there is no way back from a migrated schema
    END = "end"  # processes that load the machine, or a command of the user's file in progress
    WAIT = "wait"  # for a command of the user's file that is in progress on another machine
    CORES = "cores"  # of processes that are bound to some of them
    COMMAND = "command"  # of the user's file, on a host


@dataclass(frozen=True, slots=True)
class Owner:
    """The process that injects a fault and undoes it itself as long as it lives."""

    pid: int
    started_ticks: int
    boot: str
    run: str

    @classmethod
    def this(cls, run: str = "") -> Self:
        """Return this process."""
        own = processes.identify(os.getpid())
        return cls(own.pid, own.started_ticks, processes.boot_id(), run)

    @property
    def is_alive(self) -> bool:
        """Whether the process still runs."""
        known = processes.Process(self.pid, self.started_ticks)
        return self.boot == processes.boot_id() and processes.alive(known)

    @property
    def name(self) -> str:
        """Run and process, as in "run 20261122-0731-ab12cd (pid 4711)"."""
        return f"run {self.run} (pid {self.pid})" if self.run else f"pid {self.pid}"


@dataclass(frozen=True, slots=True)
class UndoStep:
    """One undo step."""

    undo: Undo
    what: str  # a part, a server, a folder, a mark, a command
    owner: Owner
    start: str = ""  # identifies the start of the lab's deployment; empty: not of a lab
    failure: str = ""  # why the last attempt to undo it failed
    id: str = field(default_factory=lambda: secrets.token_hex(8))

    @property
    def description(self) -> str:
        """Describe the step for users, without a PID or a secret."""
        match self.undo:
            case Undo.COMMAND:
                command = HostCommand.from_json(self.what)
                return f"{masked(command.command)} ({command.host})"
            case Undo.END:
                return "end what was started"
            case Undo.WAIT:
                return "wait for what was started"
            case Undo.CORES:
                return "give the service's processes all their cores"
            case Undo.START:
                return f"{self.undo} {self.what.partition(' ')[0]}"
            case _:
                return f"{self.undo} {self.what}"

    @property
    def host(self) -> str | None:
        """The other machine that the step is carried out on."""
        if self.undo is not Undo.COMMAND:
            return None
        host = HostCommand.from_json(self.what).host
        return None if host == HERE else host

    @property
    def is_pending(self) -> bool:
        """Whether nobody will undo it by itself: its process has ended or has failed to."""
        return bool(self.failure) or not self.owner.is_alive


@dataclass(frozen=True, slots=True)
class FaultTarget:
    """What a journal belongs to: a lab on this machine, or a service at HOST:PORT."""

    lab: Path | None = None  # the deployment's folder
    endpoints: tuple[str, ...] = ()  # HOST:PORT

    @property
    def name(self) -> str:
        """Its name in messages."""
        return f"lab {self.lab.name}" if self.lab is not None else self.endpoints[0]

    @property
    def option(self) -> str:
        """The option that chooses it; empty if only the user knows."""
        return f" --lab {self.lab.name}" if self.lab is not None else ""

    @property
    def key(self) -> str:
        """The name of its journal's file."""
        if self.lab is not None:
            return quote(f"lab-{self.lab.name}", safe="")
        return quote("".join(self.endpoints[:1]).replace(":", "_"), safe="")

    def concerns(self, other: "FaultTarget") -> bool:
        """Return whether both are the same service."""
        if self.lab is not None and other.lab is not None:
            return self.lab == other.lab  # a port may have been another lab's before
        return not {*self.endpoints}.isdisjoint(other.endpoints)


@dataclass(frozen=True, slots=True)
class UndoJournal:
    """The undo steps of one target's faults. Several processes may use it at the same time."""

    path: Path
    target: FaultTarget

    @classmethod
    def of(cls, target: FaultTarget) -> "UndoJournal":
        """Return the journal of a target, which need not exist on disk yet."""
        return cls(folder() / f"{target.key}{SUFFIX}", target)

    @classmethod
    def at(cls, path: Path) -> "UndoJournal":
        """Find a journal on disk; raise EnvironmentUnusable if it is unreadable."""
        tree = _load(path)
        _steps(path, tree)
        return cls(path, _target(path, tree))

    def steps(self) -> tuple[UndoStep, ...]:
        """Return the steps on disk, in the order in which they were added."""
        try:
            return _steps(self.path, _load(self.path))
        except FileNotFoundError:
            return ()

    def note(self, kind: Undo, what: str, owner: Owner, start: str = "") -> UndoStep:
        """Add a step; it is on disk when this returns."""
        step = UndoStep(kind, what, owner, start)
        self._change(lambda steps: (*steps, step))
        return step

    def remove(self, step: UndoStep) -> None:
        """Remove a step that is undone."""
        self._change(lambda steps: tuple(one for one in steps if one.id != step.id))

    def set_failure(self, step: UndoStep, failure: str) -> None:
        """Record why a step could not be undone."""
        self._change(
            lambda steps: tuple(
                replace(one, failure=failure) if one.id == step.id else one for one in steps
            )
        )

    def forget(self) -> None:
        """Remove the steps that end when the lab's folder is removed."""
        self._change(
            lambda steps: (one for one in steps if one.undo is Undo.COMMAND or not one.is_pending)
        )

    @contextmanager
    def undoing(self) -> Iterator[None]:
        """Wait until no other process undoes steps of this journal, and keep others from it."""
        with locks.held(self.path.with_suffix(_UNDOING)):
            yield

    def _change(self, change: Callable[[Sequence[UndoStep]], Iterable[UndoStep]]) -> None:
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with locks.held(self.path.parent / _LOCK):
            steps = [asdict(one) for one in change(self.steps())]
            if not steps:
                self.path.unlink(missing_ok=True)
                return
            lab = None if self.target.lab is None else str(self.target.lab)
            target = {"lab": lab, "endpoints": self._endpoints()}
            text = json.dumps({"target": target, "steps": steps}, indent=1)
            files.write(self.path, text, files.PRIVATE)

    def _endpoints(self) -> tuple[str, ...]:
        """Return the endpoints of the target by which this and other processes know it."""
        try:
            known = _target(self.path, _load(self.path)).endpoints
        except FileNotFoundError:
            known = ()
        return tuple(dict.fromkeys((*known, *self.target.endpoints)))


def folder() -> Path:
    """Return the folder of all undo journals on this machine."""
    return paths.home() / "faults"


def of_lab(lab: Path) -> UndoJournal:
    """Return the journal of a lab."""
    return UndoJournal.of(FaultTarget(lab))


def journal_paths() -> tuple[Path, ...]:
    """Return the files of all journals on this machine."""
    return tuple(sorted(folder().glob(f"*{SUFFIX}")))


def _load(path: Path) -> dict[str, Any]:
    try:
        tree: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        return tree
    except FileNotFoundError:
        raise
    except (OSError, ValueError) as wrong:  # it may be another user's: of `sudo loadstone`
        raise _unreadable(path, wrong) from None


def _target(path: Path, tree: dict[str, Any]) -> FaultTarget:
    try:
        lab = tree["target"]["lab"]
        endpoints = tuple(str(one) for one in tree["target"]["endpoints"])
        if lab is None and not endpoints:
            raise ValueError("no target")
        return FaultTarget(None if lab is None else Path(lab), endpoints)
    except (KeyError, TypeError, ValueError) as wrong:
        raise _unreadable(path, wrong) from None


def _steps(path: Path, tree: dict[str, Any]) -> tuple[UndoStep, ...]:
    try:
        return tuple(_step(row) for row in tree["steps"])
    except (AttributeError, KeyError, TypeError, ValueError) as wrong:
        raise _unreadable(path, wrong) from None


def _step(row: dict[str, Any]) -> UndoStep:
    step = UndoStep(**{**row, "undo": Undo(row["undo"]), "owner": Owner(**row["owner"])})
    # What describes a step and undoes it relies on its form.
    if step.undo is Undo.COMMAND:
        HostCommand.from_json(step.what)
    elif step.undo is Undo.CORES:
        BoundProcesses.from_json(step.what)
    return step


def _unreadable(path: Path, wrong: Exception) -> EnvironmentUnusable:
    return EnvironmentUnusable(
        f"{path} cannot be read ({type(wrong).__name__}): faults may be in force; put the service "
        "right by hand, then remove the file (`loadstone lab down NAME` ends a lab's processes)"
    )
