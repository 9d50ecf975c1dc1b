"""What a study has come to so far: `studies/ID/cells.jsonl` beside the results.

The first line is the study itself, every further one a turn that has ended. Lines are only ever
added, and each is on the disk before the next turn begins.
"""

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

from loadstone.errors import EnvironmentUnusable, InvalidInput
from loadstone.lab import locks
from loadstone.store.codec import dumps, loads
from loadstone.study.model import Study
from loadstone.study.read import Source

T = TypeVar("T")

FILE = "cells.jsonl"


@dataclass(frozen=True, slots=True)
class Begun:
    """A study as it was when it began; later changes of its file do not count."""

    file: str
    text: str
    quick: bool
    seed: int
    started_at: str  # ISO 8601, UTC

    def study(self) -> Study:
        """Read the study again."""
        return Source(self.file, self.text).study(quick=self.quick)


@dataclass(frozen=True, slots=True)
class Ended:
    """How one turn ended: with a run in the store, or with the reason why there is none."""

    turn: int
    run_id: str | None
    failure: str | None
    exit_code: int = 0  # of the failure
    is_valid: bool = True  # the load generator was not the limit

    @property
    def is_done(self) -> bool:
        """Whether there is nothing that another try could better."""
        return self.run_id is not None and self.is_valid


@dataclass(frozen=True, slots=True)
class Journal:
    """The journal of one study."""

    path: Path
    begun: Begun

    @property
    def study_id(self) -> str:
        """The study's id: what `--resume` takes."""
        return self.path.parent.name

    @property
    def store(self) -> Path:
        """The folder of the store that keeps the study's results."""
        return self.path.parents[2]

    def ended(self) -> dict[int, Ended]:
        """Give the turns that have ended, by number; the last line of a turn counts."""
        _, *lines = _lines(self.path)
        found = [_record(Ended, line, self.path, i) for i, line in enumerate(lines, start=2)]
        return {one.turn: one for one in found}

    def add(self, one: Ended) -> None:
        """Keep how a turn ended."""
        _append(self.path, dumps(one))

    @contextmanager
    def held(self) -> Iterator[None]:
        """Keep others from running the same study."""
        busy = f"study {self.study_id} is being run by another loadstone"
        lock = self.path.parent / "lock"
        try:
            lock.touch()
        except OSError as problem:
            raise EnvironmentUnusable(f"{lock} cannot be written: {problem.strerror}") from problem
        with locks.held(lock, busy=busy):
            yield


def begin(store: Path, source: Source, *, quick: bool, seed: int) -> Journal:
    """Make the journal of a study that begins."""
    now = datetime.now(UTC)
    study_id = f"{now:%Y%m%d-%H%M}-{secrets.token_hex(3)}"
    begun = Begun(source.file, source.text, quick, seed, now.isoformat(timespec="seconds"))
    path = _folder(store) / study_id / FILE
    try:
        path.parent.mkdir(parents=True)
    except OSError as problem:
        raise EnvironmentUnusable(f"{path.parent}: {problem.strerror}") from problem
    _append(path, dumps(begun))
    return Journal(path, begun)


def find(store: Path, study_id: str) -> Journal:
    """Give the journal of a study that has begun, by its id or the beginning of it."""
    known = ids(store)
    matching = [one for one in known if one.startswith(study_id)]
    if study_id in known:
        matching = [study_id]
    if len(matching) != 1:
        told = ", ".join(matching or known[-4:]) or "none yet"
        raise InvalidInput(f"no study {study_id!r} has begun; there are: {told}")
    path = _folder(store) / matching[0] / FILE
    lines = _lines(path)
    if not lines:
        raise InvalidInput(f"study {matching[0]} was killed before it began; begin it again")
    return Journal(path, _record(Begun, lines[0], path, 1))


def ids(store: Path) -> tuple[str, ...]:
    """Give the ids of all studies that have begun, oldest first."""
    return tuple(sorted(path.parent.name for path in _folder(store).glob(f"*/{FILE}")))


def _folder(store: Path) -> Path:
    return store / "studies"


def _lines(path: Path) -> list[str]:
    """Give the whole lines; the end of a line that a kill cut short does not count."""
    try:
        return path.read_text(encoding="utf-8").split("\n")[:-1]
    except OSError as problem:
        raise EnvironmentUnusable(f"{path}: {problem.strerror}") from problem


def _record(kind: type[T], line: str, path: Path, number: int) -> T:
    try:
        return loads(kind, line)
    except ValueError as problem:
        raise InvalidInput(f"{path}:{number}: not a line of a study's journal: {problem}") from None


def _append(path: Path, line: str) -> None:
    """Add a line, in place of one that was cut short, and wait until it is on the disk."""
    try:
        with path.open("a+b") as file:
            file.seek(0)
            file.truncate(file.read().rfind(b"\n") + 1)
            file.write(line.encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    except OSError as problem:
        raise EnvironmentUnusable(f"{path} cannot be written: {problem.strerror}") from problem
