"""Reads recorded arrivals for replay."""

from math import isfinite
from pathlib import Path

from loadstone.analysis.iterations import iterations
from loadstone.engine.parquet import read
from loadstone.errors import InvalidInput
from loadstone.plan.load import ReplayLoad

LONGEST_S = 365 * 86_400.0


def recorded(path: Path) -> ReplayLoad:
    """Read the instants of a recording: seconds from its start, one per line, in any order.

    From a sample file (.parquet) these are the due times of its iterations.
    """
    if path.suffix == ".parquet":
        offsets_s = (iterations(read(path)).due_ns / 1e9).tolist()
    else:
        offsets_s = _lines(path)
    if not offsets_s:
        raise InvalidInput(f"{path}: holds no arrivals; give seconds from the start, one per line")
    return ReplayLoad(tuple(sorted(offsets_s)))


def _lines(path: Path) -> list[float]:
    try:
        lines = path.read_text().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{path}: cannot be read: {error}") from None
    return [_seconds(path, n, line) for n, line in enumerate(lines, 1) if line.strip()]


def _seconds(path: Path, number: int, line: str) -> float:
    try:
        value = float(line)
    except ValueError:
        value = float("nan")
    if not isfinite(value) or value < 0:
        raise InvalidInput(f"{path}:{number}: must be seconds from the start, not {line[:40]!r}")
    if value > LONGEST_S:
        raise InvalidInput(
            f"{path}:{number}: is more than a year after the start; subtract the first instant"
        )
    return value
