"""Keeps the sample table on disk, as Parquet that any tool reads."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from loadstone._engine import (
    EngineUnusable,
    count_samples,
    join_samples,
    read_samples,
    write_samples,
)
from loadstone.engine.samples import Samples
from loadstone.errors import EnvironmentUnusable


@dataclass(frozen=True, slots=True)
class SampleFile:
    """Samples on disk, read a row group at a time, so that memory does not grow with them."""

    path: Path

    @property
    def pieces(self) -> tuple[Path, ...]:
        """The file; of a run that was killed what it had written until ten seconds before."""
        parts = parts_of(self.path)
        if self.path.exists() or not parts.is_dir():
            return (self.path,)
        return tuple(sorted(parts.glob("*.parquet")))

    @property
    def rows(self) -> int:
        """How many samples it holds."""
        with told():
            return sum(sum(count_samples(piece)) for piece in self.pieces)

    def groups(self) -> Iterator[Samples]:
        """Yield the row groups (at most 262,144 rows) one after another.

        Within a group rows are in the order of completion. Where several threads sent the load,
        groups that follow each other may overlap by some seconds.
        """
        with told():
            for piece in self.pieces:
                for index in range(len(count_samples(piece))):
                    yield Samples(**read_samples(piece, index))


def parts_of(path: Path) -> Path:
    """Return the folder of the files that become the file at `path`."""
    return path.with_name(f"{path.name}.parts")


GROUP_ROWS = 1 << 18
# Age at which rows are written although they are few, as the engine does (rust/engine, parts.rs).
PART_AGE_S = 7.0


@dataclass(slots=True)
class GrowingFile:
    """A sample file that rows are added to while a load goes on, readable at every moment."""

    path: Path
    _waiting: list[Samples] = field(default_factory=list)
    _written: int = 0
    _began_s: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        folder = parts_of(self.path)
        try:
            folder.mkdir()
        except OSError as error:
            raise EnvironmentUnusable(f"{folder}: cannot be made: {error.strerror}") from None

    def add(self, rows: Samples) -> None:
        """Add rows; they are on disk some seconds later."""
        self._waiting.append(rows)
        is_old = time.monotonic() - self._began_s >= PART_AGE_S
        if is_old or sum(map(len, self._waiting)) >= GROUP_ROWS:
            self._flush()

    def finish(self) -> SampleFile:
        """Complete the file."""
        self._flush()
        with told():
            join_samples(self.path)
        return SampleFile(self.path)

    def _flush(self) -> None:
        self._began_s = time.monotonic()
        if not any(map(len, self._waiting)):
            return
        rows = Samples.joined(self._waiting).by_completion()
        write(parts_of(self.path) / f"{self._written:06}.parquet", rows)
        self._waiting.clear()
        self._written += 1


def write(path: Path, samples: Samples) -> None:
    """Write a sample file: all of it, or none."""
    columns = {name: getattr(samples, name) for name in Samples.__slots__}
    with told("; free space there or choose another folder (--store)"):
        write_samples(path, columns)


def read(path: Path) -> Samples:
    """Read a sample file."""
    with told():
        return Samples(**read_samples(path))


@contextmanager
def told(mend: str = "") -> Iterator[None]:
    """Raise what the engine says of a file as the error that users are shown."""
    try:
        yield
    except EngineUnusable as error:
        raise EnvironmentUnusable(f"{error}{mend}") from None
