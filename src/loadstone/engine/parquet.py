"""Keeps the sample table on disk, as Parquet that any tool reads."""

from pathlib import Path

from loadstone._engine import EngineUnusable, read_samples, write_samples
from loadstone.engine.samples import Samples
from loadstone.errors import EnvironmentUnusable


def write(path: Path, samples: Samples) -> None:
    """Write a sample file: all of it, or none."""
    columns = {name: getattr(samples, name) for name in Samples.__slots__}
    try:
        write_samples(path, columns)
    except EngineUnusable as error:
        raise EnvironmentUnusable(
            f"{error}; free space there or choose another folder (--store)"
        ) from None


def read(path: Path) -> Samples:
    """Read a sample file."""
    try:
        return Samples(**read_samples(path))
    except EngineUnusable as error:
        raise EnvironmentUnusable(str(error)) from None
