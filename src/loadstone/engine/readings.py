"""Keeps the monitor's readings on disk, as Parquet that any tool reads."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from loadstone._engine import read_metrics, write_metrics
from loadstone.engine.parquet import map_errors
from loadstone.errors import StoreUnusable


@dataclass(frozen=True, slots=True)
class ReadingColumns:
    """A row per reading; `series` is an index into `names`: source, metric, unit."""

    time_us: NDArray[np.int64]  # Unix time
    series: NDArray[np.uint32]
    value: NDArray[np.float64]
    names: tuple[tuple[str, str, str], ...]


def write(path: Path, columns: ReadingColumns) -> None:
    """Write a file with the columns time, source, metric, value and unit, atomically."""
    arrays = {name: getattr(columns, name) for name in ReadingColumns.__slots__}
    with map_errors("; free space there or choose another folder (--store)", StoreUnusable):
        write_metrics(path, arrays)


def read(path: Path) -> ReadingColumns:
    """Read a file that `write` wrote."""
    with map_errors():
        arrays = read_metrics(path)
    return ReadingColumns(
        arrays["time_us"], arrays["series"], arrays["value"], tuple(arrays["names"])
    )
