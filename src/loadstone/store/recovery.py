"""Brings rows into the database that are only in files."""

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import Connection, Engine, select
from sqlalchemy.exc import IntegrityError, StatementError

from loadstone.errors import EnvironmentUnusable
from loadstone.store import database, owner, row_files
from loadstone.store.listing import KILLED
from loadstone.store.row_files import StoredRow
from loadstone.store.run_id import is_run_id
from loadstone.store.schema import runs, trials
from loadstone.store.upsert import upsert


@dataclass(frozen=True, slots=True)
class Recovered:
    """What was brought in of a run."""

    run_id: str
    trials: int  # trials that had no row
    others: int  # runs and measurements that had none, or the end of a run
    problems: tuple[str, ...] = ()  # files that cannot be read

    def __str__(self) -> str:
        """Return a sentence."""
        trials = f"{self.trials} trial{'' if self.trials == 1 else 's'}"
        others = "its measurements or how it ended"
        return f"recovered of run {self.run_id}: {trials if self.trials else others}"

    @property
    def is_news(self) -> bool:
        """Whether anything was missing."""
        return bool(self.trials or self.others)


def recover_marked(folder: Path, engine: Engine) -> tuple[Recovered, ...]:
    """Bring in the rows of runs whose process ended before all were written.

    Stops without an error if the database cannot be written; the next start tries again.
    """
    found = []
    for run_id in row_files.marked(folder):
        if is_at_work(folder / "runs" / run_id):
            continue
        try:
            found.append(recover_run(folder, engine, run_id))
        except EnvironmentUnusable:
            break
    return tuple(found)


def recover_all(folder: Path, engine: Engine) -> tuple[Recovered, ...]:
    """Bring in the rows of all runs that are not being measured.

    Raises EnvironmentUnusable if the database cannot be written.
    """
    marked = set(row_files.marked(folder))
    names = marked | {path.name for path in row_files.run_folders(folder)}
    idle = [name for name in sorted(names) if not is_at_work(folder / "runs" / name)]
    return tuple(recover_run(folder, engine, run_id) for run_id in idle)


def recover_run(folder: Path, engine: Engine, run_id: str) -> Recovered:
    """Bring in the rows of one run, and remove its mark."""
    rows, problems = row_files.read(folder / "runs" / run_id)
    try:
        missing = bring_in(engine, rows) if rows else []
    except (IntegrityError, StatementError) as problem:
        missing = []
        problems.append(f"run {run_id} cannot be recovered: {problem.orig or problem!s:.200}")
    row_files.unmark(folder, run_id)
    count = sum(one.table is trials for one in missing)
    return Recovered(run_id, count, len(missing) - count, tuple(problems))


def end_killed(folder: Path, engine: Engine) -> None:
    """Store of killed runs of this machine that they ended: other machines cannot know it.

    Does nothing if the database cannot be written; the next start tries again.
    """
    with suppress(EnvironmentUnusable):
        with database.reading(engine) as connection:
            query = select(runs).where(runs.c.status == "running")
            running = connection.execute(query).mappings().all()
        for row in running:
            if not is_run_id(row["run_id"]) or not _is_killed(row["owner"]):
                continue
            ended = StoredRow(runs, {**row, "status": "interrupted", "failure": KILLED})
            run_folder = folder / "runs" / row["run_id"]
            if run_folder.is_dir():
                row_files.write(run_folder, ended)
            with database.writing(engine) as connection:
                upsert(connection, runs, ended.row)


def _is_killed(text: str) -> bool:
    with suppress(ValueError):  # it is damaged and names no process
        return not owner.is_alive(text)
    return False


def bring_in(engine: Engine, rows: list[StoredRow]) -> list[StoredRow]:
    """Insert or update rows, all or none; return those that were missing or of an older state."""
    with database.reading(engine) as connection:
        if not any(_differs(connection, one) for one in rows):
            return []
    with database.writing(engine) as connection:
        missing = [one for one in rows if _differs(connection, one)]
        for one in rows:
            upsert(connection, one.table, one.row)
    return missing


def _differs(connection: Connection, one: StoredRow) -> bool:
    """Return whether a row is missing, is older than its file, or is damaged."""
    names = runs.columns.keys() if one.table is runs else ("status", "body")
    is_its_key = (
        one.table.c[column.name] == one.row[column.name] for column in one.table.primary_key
    )
    query = select(*(one.table.c[name] for name in names)).where(*is_its_key)
    return connection.execute(query).one_or_none() != tuple(one.row[name] for name in names)


def is_at_work(folder: Path) -> bool:
    """Return whether the run in this folder is being measured."""
    rows, _ = row_files.read(folder)
    of_run = [one.row for one in rows if one.table is runs]
    return bool(of_run) and of_run[0]["status"] == "running" and owner.is_alive(of_run[0]["owner"])
