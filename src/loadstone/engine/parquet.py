"""Keeps the sample table on disk, as Parquet that any tool reads."""

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
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
from loadstone.errors import EnvironmentUnusable, StoreUnusable


@dataclass(frozen=True, slots=True)
class SampleFile:
    """Samples on disk, read by row group so that memory does not grow with the file."""

    path: Path

    @property
    def pieces(self) -> tuple[Path, ...]:
        """The file; of a killed run, the parts that it wrote up to ten seconds before its end."""
        parts = parts_of(self.path)
        if self.path.exists() or not parts.is_dir():
            return (self.path,)
        return tuple(sorted(parts.glob("*.parquet")))

    @property
    def rows(self) -> int:
        """Number of samples."""
        with map_errors():
            return sum(sum(count_samples(piece)) for piece in self.pieces)

    def groups(self) -> Iterator[Samples]:
        """Yield the row groups (at most 262,144 rows) one after another.

        Within a group rows are in the order of completion. Where several threads sent the load,
        groups that follow each other may overlap by some seconds.
        """
        with map_errors():
            for piece in self.pieces:
                for index in range(len(count_samples(piece))):
                    yield Samples(**read_samples(piece, index))


def parts_of(path: Path) -> Path:
    """Return the folder of the part files that are joined into the file at `path`."""
    return path.with_name(f"{path.name}.parts")


GROUP_ROWS = 1 << 18
# Rows are written after this time even if they are few, as in the engine (rust/engine, parts.rs).
PART_AGE_S = 7.0


@dataclass(slots=True)
class GrowingFile:
    """A sample file that grows during a load and can be read at any time."""

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
        with map_errors():
            join_samples(self.path)
        return SampleFile(self.path)

    def break_off(self) -> None:
        """Keep the rows of a load that failed as a part; without rows, leave nothing."""
        self._flush()
        with suppress(OSError):  # it has parts
            parts_of(self.path).rmdir()

    def _flush(self) -> None:
        self._began_s = time.monotonic()
        if not any(map(len, self._waiting)):
            return
        rows = Samples.joined(self._waiting).by_completion()
        write(parts_of(self.path) / f"{self._written:06}.parquet", rows)
        self._waiting.clear()
        self._written += 1


def write(path: Path, samples: Samples) -> None:
    """Write a sample file atomically."""
    columns = {name: getattr(samples, name) for name in Samples.__slots__}
    with map_errors("; free space there or choose another folder (--store)", StoreUnusable):
        write_samples(path, columns)


def read(path: Path) -> Samples:
    """Read a sample file."""
    with map_errors():
        return Samples(**read_samples(path))


@contextmanager
def map_errors(
    hint: str = "", kind: type[EnvironmentUnusable] = EnvironmentUnusable
) -> Iterator[None]:
    """Convert the engine's file errors to this kind; `hint` ends the message."""
    try:
        yield
    except EngineUnusable as error:
        raise kind(f"{error}{hint}") from None
