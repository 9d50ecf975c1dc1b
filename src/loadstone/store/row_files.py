"""Copies of rows as files in the run's folder: a result is kept even if the database is not usable.

Each row is written to `runs/RUN/results/` before it goes to the database: `run.json`, `1.json` of
the first measurement, `1-003.json` of its third trial. An empty file `unrecorded/RUN` in the store
marks a run until its rows are known to be complete.
"""

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import Table

from loadstone.errors import EnvironmentUnusable
from loadstone.store.run_id import is_run_id
from loadstone.store.schema import REVISIONS, measurements, require_values, runs, trials
from loadstone.system import files

FOLDER = "results"
UNRECORDED = "unrecorded"
RESERVE = "reserve"  # a file that is removed on a full disk, to have room for the last results
RESERVE_BYTES = 1 << 20
_TABLES = {table.name: table for table in (runs, measurements, trials)}  # parents first


@dataclass(frozen=True, slots=True)
class StoredRow:
    """A row and its table."""

    table: Table
    row: Mapping[str, Any]

    @property
    def file_name(self) -> str:
        """Return the name of the row's file."""
        if self.table is runs:
            return "run.json"
        number = f"-{self.row['number']:03}" if self.table is trials else ""
        return f"{self.row['position'] + 1}{number}.json"


def write(folder: Path, one: StoredRow) -> None:
    """Write a row to a file in the folder of its run; raise EnvironmentUnusable on failure."""
    path = folder / FOLDER / one.file_name
    row = dict(one.row)
    if row.get("samples_file", "") is None:
        # A trial that is stored again with a new verdict keeps its samples.
        row["samples_file"] = _samples_file(path)
    text = json.dumps({"revision": REVISIONS[-1], "table": one.table.name, "row": row})
    try:
        files.make_private_folder(path.parent)
    except OSError as problem:
        raise EnvironmentUnusable(f"cannot write {path}: {problem.strerror}") from problem
    files.write(path, text, files.PRIVATE)


def remove(folder: Path, one: StoredRow) -> None:
    """Remove the file of a row that is in the database in a later state."""
    with suppress(OSError):
        (folder / FOLDER / one.file_name).unlink()


def read(folder: Path) -> tuple[list[StoredRow], list[str]]:
    """Return the rows in the folder of a run, and what is wrong with other files.

    Parents come first, and rows of one table in the order of their keys: that of the names of their
    files has the tenth measurement before the second.
    """
    found, wrong = [], []
    for path in sorted((folder / FOLDER).glob("*.json")):
        try:
            found.append(_read(path, folder.name))
        except (OSError, ValueError, RecursionError) as problem:
            why = problem.strerror if isinstance(problem, OSError) else str(problem)
            wrong.append(f"{path} cannot be read: {why}")
    tables = list(_TABLES.values())

    def place(one: StoredRow) -> tuple[int, ...]:
        return (tables.index(one.table), one.row.get("position", 0), one.row.get("number", 0))

    return sorted(found, key=place), wrong


def mark(store: Path, run_id: str) -> None:
    """Mark a run whose rows may be incomplete, and reserve room on the disk for its results."""
    with suppress(OSError):  # without the mark, `results recover` still finds the files
        files.make_private_folder(store / UNRECORDED)
        _create(store / UNRECORDED / run_id, 0)
        _create(store / "runs" / run_id / RESERVE, RESERVE_BYTES)


def unmark(store: Path, run_id: str) -> None:
    """Remove the mark of a run whose rows are complete, and its reserve."""
    for path in (store / UNRECORDED / run_id, store / "runs" / run_id / RESERVE):
        with suppress(OSError):
            path.unlink()


def release_reserve(folder: Path) -> bool:
    """Free the room that is reserved for the results of a run; return whether there was any."""
    try:
        (folder / RESERVE).unlink()
    except OSError:
        return False
    return True


def marked(store: Path) -> list[str]:
    """List the ids of marked runs."""
    try:
        names = os.listdir(store / UNRECORDED)
    except OSError:
        return []
    return sorted(name for name in names if is_run_id(name))


def run_folders(store: Path) -> Iterator[Path]:
    """Yield the folders of runs that have row files."""
    for path in sorted((store / "runs").glob(f"*/{FOLDER}")):
        if is_run_id(path.parent.name) and not path.parent.is_symlink():
            yield path.parent


def _create(path: Path, size: int) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW, files.PRIVATE)
    try:
        if size:
            os.posix_fallocate(handle, 0, size)
    finally:
        os.close(handle)


def _samples_file(path: Path) -> Any:
    try:
        return json.loads(path.read_bytes())["row"]["samples_file"]
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _read(path: Path, run_id: str) -> StoredRow:
    plain = json.loads(path.read_bytes())
    if not isinstance(plain, dict) or plain.get("table") not in _TABLES:
        raise ValueError("it is not a row of a run")
    if plain.get("revision") != REVISIONS[-1]:
        raise ValueError(f"its revision is {plain.get('revision')!r}, not {REVISIONS[-1]!r}")
    table, row = _TABLES[plain["table"]], plain.get("row")
    if not isinstance(row, dict) or row.get("run_id") != run_id:
        raise ValueError(f"it is not of run {run_id}")
    if set(row) != {column.name for column in table.columns}:
        raise ValueError(f"it has not the columns of {table.name}")
    require_values(table, row)
    one = StoredRow(table, row)
    if one.file_name != path.name:
        raise ValueError(f"it belongs to {one.file_name}")
    return one
