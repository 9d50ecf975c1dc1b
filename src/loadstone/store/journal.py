"""Journals of long work, such as a study: `FOLDER/ID/FILE` beside the results, a record a line.

The first line says how the work began, every further line is a part of it that has ended. The file
is append-only, and each line is synced to disk before the work goes on.
"""

import secrets
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

from loadstone.errors import EnvironmentUnusable, InvalidInput
from loadstone.store.codec import BAD_DATA, dumps, loads
from loadstone.store.location import StoreLocation
from loadstone.system import files, locks

T = TypeVar("T")

SHOWN = 4  # ids in a message


@dataclass(frozen=True, slots=True)
class JournalKind:
    """The journals of one kind of work."""

    work: str  # in messages: "study"
    folder: str
    file: str
    without_line: str  # what --resume does if a damaged line is removed

    def begin(self, store: StoreLocation, begun: object) -> Path:
        """Create the journal of new work."""
        work_id = f"{datetime.now(UTC):%Y%m%d-%H%M}-{secrets.token_hex(3)}"
        path = store.folder / self.folder / work_id / self.file
        try:
            for folder in (store.folder, path.parent.parent, path.parent):
                files.make_private_folder(folder)
        except OSError as problem:
            raise EnvironmentUnusable(f"{path.parent}: {problem.strerror}") from problem
        files.append_line(path, dumps(begun))
        return path

    def ids(self, store: StoreLocation) -> tuple[str, ...]:
        """Return the ids of all that has begun, oldest first."""
        paths = (store.folder / self.folder).glob(f"*/{self.file}")
        return tuple(sorted(path.parent.name for path in paths))

    def find(self, store: StoreLocation, name: str) -> Path:
        """Return the journal of an id or of a unique prefix of one."""
        if not name:
            raise InvalidInput(f"no {self.work} is named: the ID is empty; is a variable not set?")
        known = self.ids(store)
        matching = [name] if name in known else [one for one in known if one.startswith(name)]
        if len(matching) > 1:
            shown = ", ".join(matching[:SHOWN])
            raise InvalidInput(f"{self.work} {name!r} could be {shown}; give more of it")
        if not matching:
            listed = f"; choose from {', '.join(known[-SHOWN:])}" if known else f" in {store}"
            raise InvalidInput(f"no {self.work} {name!r} has begun{listed}")
        return store.folder / self.folder / matching[0] / self.file

    def begun(self, kind: type[T], path: Path) -> T:
        """Return the first record, of how the work began."""
        lines = _lines(path)
        if not lines:
            raise InvalidInput(
                f"{self.work} {path.parent.name} was killed before it began; begin it again"
            )
        return self._record(kind, lines[0], path, 1)

    def ended(self, kind: type[T], path: Path) -> list[T]:
        """Return the further records."""
        numbered = enumerate(_lines(path)[1:], 2)
        return [self._record(kind, line, path, number) for number, line in numbered]

    def locked(self, path: Path) -> AbstractContextManager[None]:
        """Lock the work against other processes; EnvironmentUnusable if it is being done."""
        busy = f"{self.work} {path.parent.name} is being run by another loadstone"
        return locks.held(path.parent / "lock", busy=busy)

    def _record(self, kind: type[T], line: bytes, path: Path, number: int) -> T:
        try:
            return loads(kind, line.decode())
        except BAD_DATA as problem:
            why = "it is not UTF-8" if isinstance(problem, UnicodeDecodeError) else problem
            later = f"without this line, --resume {self.without_line}"
            mend = f"begin the {self.work} again" if number == 1 else later
            raise InvalidInput(
                f"{path}:{number}: not a line of a {self.work}'s journal: {why}; {mend}"
            ) from None


def _lines(path: Path) -> list[bytes]:
    """Return the complete lines, without a last line that a kill cut short."""
    try:
        return path.read_bytes().split(b"\n")[:-1]
    except OSError as problem:
        raise EnvironmentUnusable(f"{path}: {problem.strerror}") from problem
