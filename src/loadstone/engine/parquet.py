"""Keeps the sample table on disk, as Parquet that any tool reads."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from loadstone._engine import EngineUnusable, count_samples, read_samples, write_samples
from loadstone.engine.samples import Samples
from loadstone.errors import EnvironmentUnusable


@dataclass(frozen=True, slots=True)
class SampleFile:
    """Samples on disk, read a row group at a time, so that memory does not grow with them."""

    path: Path

    @property
    def pieces(self) -> tuple[Path, ...]:
        """The file; of a run that was killed what it had written until ten seconds before."""
        parts = self.path.with_name(f"{self.path.name}.parts")
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
