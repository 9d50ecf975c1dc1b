"""The store: one folder with results.db and runs/<run_id>/."""

import shutil
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from sqlalchemy import Connection, Engine, RowMapping, Table, delete, func, select
from sqlalchemy.dialects.sqlite import insert

from loadstone.analysis.model import Trial
from loadstone.engine.samples import Samples
from loadstone.errors import EnvironmentUnusable, InvalidInput
from loadstone.result import Entry, Finding, Found, Performance, Performed, Result
from loadstone.store import database, owner, rows
from loadstone.store.schema import findings, performances, runs, trials

if TYPE_CHECKING:
    from loadstone.engine.parquet import SampleFile

LATEST = "latest"


class Store:
    """Keeps results. Several processes may use the same folder at once."""

    def __init__(self, folder: Path, engine: Engine) -> None:
        self._folder = folder
        self._engine = engine

    @classmethod
    def open(cls, folder: Path, patience_s: float = database.PATIENCE_S) -> "Store":
        """Open the store in this folder, or make it; EnvironmentUnusable says why it cannot."""
        try:
            (folder / "runs").mkdir(parents=True, exist_ok=True)
        except OSError as problem:
            raise EnvironmentUnusable(
                f"{folder} cannot hold results: {problem.strerror}; choose another with --store"
            ) from problem
        return cls(folder, database.connect(folder / "results.db", patience_s))

    def close(self) -> None:
        """Let go of the database."""
        self._engine.dispose()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def begin(self, result: Result) -> Path:
        """Keep a run that has just begun, and give its folder."""
        with database.explained(self._engine):
            self.folder(result.run_id).mkdir(parents=True, exist_ok=True)
        with database.writing(self._engine) as connection:
            row = rows.run_row(result) | {"owner": owner.this_process()}
            connection.execute(runs.insert().values(row))
            _keep_findings(connection, result)
            for index, performance in enumerate(result.performances):
                kept = rows.performance_row(result.run_id, index, performance)
                _upsert(connection, performances, kept)
        return self.folder(result.run_id)

    def keep_trial(
        self, run_id: str, finding_index: int, trial: Trial, samples: Samples | None
    ) -> Trial:
        """Keep a trial as soon as it has ended; give it back with the name of its samples' file.

        `finding_index` counts the result's findings from 0; a trial's number is its own in them.
        """
        if samples is not None:
            name = f"samples/{finding_index + 1}-{trial.number:03}.parquet"
            trial = replace(trial, samples_file=name)
            self._write_samples(self.folder(run_id) / name, samples)
        with database.writing(self._engine) as connection:
            _upsert(connection, trials, rows.trial_row(run_id, finding_index, trial))
        return trial

    def keep_finding(self, run_id: str, finding_index: int, finding: Finding) -> None:
        """Keep what one search found, before the run's next one begins."""
        with database.writing(self._engine) as connection:
            _keep_finding(connection, run_id, finding_index, finding)

    def keep_performance(
        self,
        run_id: str,
        index: int,
        performance: Performance,
        samples: "Samples | SampleFile | None" = None,
    ) -> Performance:
        """Keep a workload of a task; give it back with the name of its samples' file.

        `index` counts the task's workloads from 0. A file is that of `samples_path`.
        """
        if samples is not None:
            path = self.samples_path(run_id, index)
            name = str(path.relative_to(self.folder(run_id)))
            performance = replace(performance, samples_file=name)
            if isinstance(samples, Samples):
                self._write_samples(path, samples)
        with database.writing(self._engine) as connection:
            row = rows.performance_row(run_id, index, performance)
            _upsert(connection, performances, row)
        return performance

    def samples_path(self, run_id: str, index: int) -> Path:
        """Give the file for the samples of a task's workload; its folder is there."""
        path = self.folder(run_id) / f"samples/workload-{index + 1:03}.parquet"
        with database.explained(self._engine):
            path.parent.mkdir(parents=True, exist_ok=True)
        return path

    def finish(self, result: Result) -> None:
        """Keep a run's end: its status, its findings, and their trials as they are judged last."""
        with database.writing(self._engine) as connection:
            row = rows.run_row(result)
            connection.execute(runs.update().where(runs.c.run_id == result.run_id).values(row))
            _keep_findings(connection, result)

    def holds(self, run_id: str) -> bool:
        """Say whether a run of exactly this id is kept."""
        with database.reading(self._engine) as connection:
            return run_id in _run_ids(connection)

    def get(self, name: str) -> Result:
        """Give the result of a run: its id, a prefix that only one has, or "latest"."""
        with database.reading(self._engine) as connection:
            run_id = self._resolve(connection, name)
            run = connection.execute(select(runs).where(runs.c.run_id == run_id)).mappings().one()
            return rows.result_of(
                run,
                _all(connection, findings, run_id),
                _all(connection, trials, run_id),
                _all(connection, performances, run_id),
            )

    def every(self) -> list[Entry]:
        """List the runs, newest first."""
        with database.reading(self._engine) as connection:
            newest = select(runs).order_by(runs.c.started_at.desc(), runs.c.run_id.desc())
            return [_entry(connection, run) for run in connection.execute(newest).mappings()]

    def history(self) -> list[Performed]:
        """List the performed workloads of all runs, oldest first."""
        oldest = select(performances).order_by(performances.c.started_at, performances.c.run_id)
        with database.reading(self._engine) as connection:
            return [rows.performed(row) for row in connection.execute(oldest).mappings()]

    def delete(self, name: str) -> str:
        """Remove a run with its files, and give its id; InvalidInput while it is measured."""
        with database.writing(self._engine) as connection:
            run_id = self._resolve(connection, name)
            run = connection.execute(select(runs).where(runs.c.run_id == run_id)).mappings().one()
            if rows.status_of(run)[0] == "running":
                raise InvalidInput(f"run {run_id} is being measured; end it first (Ctrl-C)")
            connection.execute(delete(runs).where(runs.c.run_id == run_id))
        with database.explained(self._engine), suppress(FileNotFoundError):
            shutil.rmtree(self.folder(run_id))
        return run_id

    def samples(self, run_id: str, kept: Trial | Performance) -> Samples:
        """Read the samples of a trial or workload; EnvironmentUnusable when there are none."""
        from loadstone.engine import parquet

        what = f"trial {kept.number}" if isinstance(kept, Trial) else kept.scenario
        if kept.samples_file is None:
            raise EnvironmentUnusable(f"{what} of {run_id} was kept without samples")
        path = self.folder(run_id) / kept.samples_file
        if not path.is_file():
            raise EnvironmentUnusable(f"{path} is missing: the samples of {what}")
        return parquet.read(path)

    def folder(self, run_id: str) -> Path:
        """Give the folder of a run's files, from its whole id."""
        return self._folder / "runs" / run_id

    def _write_samples(self, path: Path, samples: Samples) -> None:
        from loadstone.engine import parquet

        with database.explained(self._engine):
            path.parent.mkdir(parents=True, exist_ok=True)
        parquet.write(path, samples)

    def _resolve(self, connection: Connection, name: str) -> str:
        if not name:
            raise InvalidInput("no run is named: the name is empty; is a variable not set?")
        known = _run_ids(connection)
        if not known:
            raise InvalidInput(f"no run {name!r}: {self._folder} holds no results yet")
        if name == LATEST:
            return known[0]
        matching = [run_id for run_id in known if run_id.startswith(name)]
        if name in matching or len(matching) == 1:
            return name if name in matching else matching[0]
        if matching:
            raise InvalidInput(f"run {name!r} could be {', '.join(matching[:4])}; give more of it")
        nearest = (get_close_matches(name, known, 1, cutoff=0.0) or known)[0]
        raise InvalidInput(f"no run {name!r}; the nearest is {nearest} (loadstone results list)")


def _run_ids(connection: Connection) -> Sequence[str]:
    newest = select(runs.c.run_id).order_by(runs.c.started_at.desc(), runs.c.run_id.desc())
    return connection.execute(newest).scalars().all()


def _all(connection: Connection, table: Table, run_id: str) -> Sequence[RowMapping]:
    own = select(table).where(table.c.run_id == run_id).order_by(*table.primary_key.columns)
    return connection.execute(own).mappings().all()


def _entry(connection: Connection, run: RowMapping) -> Entry:
    own = _all(connection, findings, run["run_id"])
    count = select(func.count()).select_from(trials).where(trials.c.run_id == run["run_id"])
    return Entry(
        run_id=run["run_id"],
        kind=run["kind"],
        status=rows.status_of(run)[0],
        started_at=run["started_at"],
        ended_at=run["ended_at"],
        findings=tuple(_found(connection, row) for row in own),
        trials=connection.execute(count).scalar_one(),
        performed=tuple(
            rows.performed(row) for row in _all(connection, performances, run["run_id"])
        ),
    )


def _found(connection: Connection, row: RowMapping) -> Found:
    stretch_rps = None
    if not rows.is_search(row):
        own = (trials.c.run_id == row["run_id"]) & (trials.c.position == row["position"])
        ended = select(trials.c.throughput_rps).where(own).order_by(trials.c.number)
        stretch_rps = connection.execute(ended).scalars().first()
    n = (row["rate_rps"], row["low_rps"], row["high_rps"])
    return Found(row["scenario"], row["title"], *n, stretch_rps)


def _keep_findings(connection: Connection, result: Result) -> None:
    for index, finding in enumerate(result.findings):
        _keep_finding(connection, result.run_id, index, finding)


def _keep_finding(connection: Connection, run_id: str, index: int, finding: Finding) -> None:
    _upsert(connection, findings, rows.finding_row(run_id, index, finding))
    for trial in finding.trials:
        _upsert(connection, trials, rows.trial_row(run_id, index, trial))


def _upsert(connection: Connection, table: Table, row: dict[str, Any]) -> None:
    statement = insert(table).values(row)
    changed = {name: statement.excluded[name] for name in row if name not in table.primary_key}
    if row.get("samples_file", "") is None:
        # A trial that comes back judged anew does not lose the samples kept with it.
        del changed["samples_file"]
    own = [column.name for column in table.primary_key]
    connection.execute(statement.on_conflict_do_update(index_elements=own, set_=changed))
