"""The store of results: rows in SQLite or PostgreSQL, and files in runs/<run_id>/."""

import shutil
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from difflib import get_close_matches
from glob import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sqlalchemy import Connection, Engine, RowMapping, Table, delete, select

from loadstone import files
from loadstone.analysis.model import Trial
from loadstone.engine import readings
from loadstone.engine.readings import ReadingColumns
from loadstone.engine.samples import Samples
from loadstone.errors import EnvironmentUnusable, InvalidInput
from loadstone.listing import Entry, Performed
from loadstone.monitor.metrics import Metrics
from loadstone.redaction import Redaction
from loadstone.result import Measurement, PastSearch, Run
from loadstone.store import codec, database, listing, owner, rows
from loadstone.store.location import StoreLocation
from loadstone.store.schema import measurements, runs, trials

if TYPE_CHECKING:
    from sqlalchemy.dialects import postgresql, sqlite

    from loadstone.engine.parquet import SampleFile

LATEST = "latest"


class Store:
    """Store of results. Several processes and machines may use it at the same time."""

    def __init__(
        self, location: StoreLocation, engine: Engine, redaction: Redaction | None = None
    ) -> None:
        self.location = location
        self._folder = location.folder
        self._engine = engine
        self.redaction = redaction or Redaction(database.known_secrets(engine))

    @classmethod
    def open(cls, place: Path | StoreLocation, patience_s: float = database.PATIENCE_S) -> "Store":
        """Open or create a store; raise EnvironmentUnusable if that is impossible."""
        location = StoreLocation.of(place)
        try:
            (location.folder / "runs").mkdir(parents=True, exist_ok=True)
        except OSError as problem:
            raise EnvironmentUnusable(
                f"{location.folder} cannot hold results: {problem.strerror}; choose another with "
                "--store"
            ) from problem
        return cls(location, database.connect(location, patience_s))

    def hiding(self, secrets: Iterable[str]) -> "Store":
        """Return the same store with these secrets redacted in everything that it stores."""
        return Store(self.location, self._engine, self.redaction.also(secrets))

    @classmethod
    def open_to_read(cls, place: Path | StoreLocation) -> "Store":
        """Open a store without creating it; an absent one is empty."""
        location = StoreLocation.of(place)
        return cls(location, database.connect_to_read(location))

    def close(self) -> None:
        """Close the connections to the database."""
        self._engine.dispose()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def begin(self, run: Run) -> Path:
        """Store a run that has just begun, and return its folder."""
        with database.explained(self._engine):
            self.folder(run.run_id).mkdir(parents=True, exist_ok=True)
        with database.writing(self._engine) as connection:
            row = self._hidden(rows.run_row(run)) | {"owner": owner.this_process()}
            connection.execute(runs.insert().values(row))
            self._keep_measurements(connection, run)
        return self.folder(run.run_id)

    def keep_measurement(self, run_id: str, index: int, measurement: Measurement) -> None:
        """Store a measurement with its trials; `index` counts the run's measurements from 0."""
        with database.writing(self._engine) as connection:
            self._keep_measurement(connection, run_id, index, measurement)

    def keep_trial(
        self,
        run_id: str,
        index: int,
        trial: Trial,
        samples: "Samples | SampleFile | None" = None,
    ) -> Trial:
        """Store a trial that has ended; return it with the name of its samples file.

        Its measurement must be stored already. A file of samples must be at `samples_path`.
        """
        if samples is not None:
            path = self.samples_path(run_id, index, trial.number)
            trial = replace(trial, samples_file=str(path.relative_to(self.folder(run_id))))
            if isinstance(samples, Samples):
                self._write_samples(path, samples)
        of_measurement = (measurements.c.run_id == run_id) & (measurements.c.position == index)
        with database.writing(self._engine) as connection:
            body = connection.execute(
                select(measurements.c.body).where(of_measurement)
            ).scalar_one()
            row = rows.trial_row(run_id, index, trial, codec.loads(Measurement, body))
            _upsert(connection, trials, self._hidden(row))
        return trial

    def keep_readings(self, run_id: str, index: int, number: int, metrics: Metrics) -> str:
        """Write a trial's readings to a file; return its name, relative to the run's folder."""
        path = self.folder(run_id) / f"readings/{index + 1}-{number:03}.parquet"
        with database.explained(self._engine):
            path.parent.mkdir(exist_ok=True)  # the run's folder exists
        columns = ReadingColumns(
            (metrics.time_s * 1e6).astype(np.int64), metrics.series, metrics.value, metrics.names
        )
        readings.write(path, columns)
        return str(path.relative_to(self.folder(run_id)))

    def keep_profile(self, run_id: str, index: int, number: int, folded: str) -> str:
        """Write a trial's folded stacks to a file; return its name as `keep_readings` does."""
        path = self.folder(run_id) / f"profiles/{index + 1}-{number:03}.folded"
        with database.explained(self._engine):
            path.parent.mkdir(exist_ok=True)  # the run's folder exists
        files.write(path, folded)
        return str(path.relative_to(self.folder(run_id)))

    def samples_path(self, run_id: str, index: int, number: int) -> Path:
        """Return the path for the samples of a trial, in an existing folder."""
        path = self.folder(run_id) / f"samples/{index + 1}-{number:03}.parquet"
        with database.explained(self._engine):
            path.parent.mkdir(exist_ok=True)  # the run's folder exists
        return path

    def finish(self, run: Run) -> None:
        """Store the end of a run: status, measurements, and trials with their final verdicts."""
        with database.writing(self._engine) as connection:
            row = self._hidden(rows.run_row(run))
            connection.execute(runs.update().where(runs.c.run_id == run.run_id).values(row))
            self._keep_measurements(connection, run)

    def holds(self, run_id: str) -> bool:
        """Return whether a run with exactly this id is stored."""
        with database.reading(self._engine) as connection:
            return run_id in _run_ids(connection)

    def get(self, name: str) -> Run:
        """Return a run by its id, a unique prefix of it, or "latest"."""
        with database.reading(self._engine) as connection:
            run_id = self._resolve(connection, name)
            run = connection.execute(select(runs).where(runs.c.run_id == run_id)).mappings().one()
            return rows.run_of(
                run, _all(connection, measurements, run_id), _all(connection, trials, run_id)
            )

    def every(self, limit: int | None = None) -> list[Entry]:
        """List the runs, newest first; at most `limit` of them."""
        with database.reading(self._engine) as connection:
            return listing.every(connection, limit)

    def history(self) -> list[Performed]:
        """List the workloads of all runs, oldest first; each step is an entry of its own."""
        with database.reading(self._engine) as connection:
            return listing.history(connection)

    def past_searches(self) -> list[PastSearch]:
        """List the searches of `capacity` and `demo`, oldest first; repeated ones as combined.

        Searches of studies are left out, as cells differ on purpose.
        """
        with database.reading(self._engine) as connection:
            query = (
                select(measurements, runs.c.started_at, runs.c.environment)
                .join(runs, runs.c.run_id == measurements.c.run_id)
                .where(measurements.c.policy == "search", runs.c.kind.in_(("capacity", "demo")))
                .order_by(runs.c.started_at, runs.c.run_id, measurements.c.position)
            )
            found = {
                (row["run_id"], row["scenario"]): rows.past_search(row)
                for row in connection.execute(query).mappings()
            }
        return list(found.values())

    def with_parameter(self, name: str) -> list[tuple[str, dict[str, str]]]:
        """List finished runs with this parameter, newest first, with all their parameters."""
        with database.reading(self._engine) as connection:
            query = (
                select(measurements.c.run_id, measurements.c.body)
                .join(runs, runs.c.run_id == measurements.c.run_id)
                .where(runs.c.status == "finished", measurements.c.body.contains(f'["{name}",'))
                .order_by(runs.c.started_at.desc(), runs.c.run_id.desc())
            )
            bodies = connection.execute(query).all()
        found = ((run_id, codec.loads(Measurement, body).parameters) for run_id, body in bodies)
        return [
            (run_id, dict(parameters)) for run_id, parameters in found if name in dict(parameters)
        ]

    def require_files(self, run_id: str) -> None:
        """Raise EnvironmentUnusable if the files of a run are on another machine."""
        if not database.is_postgresql(self._engine) or self.folder(run_id).is_dir():
            return
        with database.reading(self._engine) as connection:
            of_run = select(runs.c.owner).where(runs.c.run_id == run_id)
            host = owner.host(connection.execute(of_run).scalar_one())
        raise EnvironmentUnusable(
            f"the files of run {run_id} are not in {self._folder}: it was measured on {host}; "
            "do this there, or name a folder that all machines share: "
            "--store 'postgresql://...?files=FOLDER'"
        )

    def delete(self, name: str, *, is_forced: bool = False) -> str:
        """Remove a run with its files, and return its id.

        Raises InvalidInput while it is being measured. `is_forced` also removes the rows of a run
        on another machine, whose state is unknown here.
        """
        with database.writing(self._engine) as connection:
            run_id = self._resolve(connection, name)
            run = connection.execute(select(runs).where(runs.c.run_id == run_id)).mappings().one()
            is_ours = owner.is_here(run["owner"])
            if listing.status_of(run)[0] == "running" and (is_ours or not is_forced):
                where = "" if is_ours else f" on {owner.host(run['owner'])}"
                raise InvalidInput(
                    f"run {run_id} is being measured{where}; end it first (Ctrl-C)"
                    + ("" if is_ours else "; if that machine is gone: --force")
                )
            connection.execute(delete(runs).where(runs.c.run_id == run_id))
        with database.explained(self._engine), suppress(FileNotFoundError):
            shutil.rmtree(self.folder(run_id))
        return run_id

    def samples(self, run_id: str, trial: Trial) -> Samples:
        """Read the samples of a trial; raise EnvironmentUnusable if there are none."""
        from loadstone.engine import parquet

        what = f"trial {trial.number}"
        if trial.samples_file is None:
            raise EnvironmentUnusable(f"{what} of {run_id} was kept without samples")
        path = self.folder(run_id) / trial.samples_file
        if not path.is_file():
            self.require_files(run_id)
            raise EnvironmentUnusable(f"{path} is missing: the samples of {what}")
        return parquet.read(path)

    def folder(self, run_id: str) -> Path:
        """Return the folder of a run's files; needs the full id."""
        return self._folder / "runs" / run_id

    def _write_samples(self, path: Path, samples: Samples) -> None:
        from loadstone.engine import parquet

        parquet.write(path, samples)

    def _hidden(self, row: dict[str, Any]) -> dict[str, Any]:
        return rows.hidden(row, self.redaction)

    def _keep_measurements(self, connection: Connection, run: Run) -> None:
        for index, measurement in enumerate(run.measurements):
            self._keep_measurement(connection, run.run_id, index, measurement)

    def _keep_measurement(
        self, connection: Connection, run_id: str, index: int, measurement: Measurement
    ) -> None:
        row = rows.measurement_row(run_id, index, measurement)
        _upsert(connection, measurements, self._hidden(row))
        for trial in measurement.trials:
            trial_row = rows.trial_row(run_id, index, trial, measurement)
            _upsert(connection, trials, self._hidden(trial_row))

    def _resolve(self, connection: Connection, name: str) -> str:
        if not name:
            raise InvalidInput("no run is named: the name is empty; is a variable not set?")
        known = _run_ids(connection)
        if any(self._folder.glob(f"studies/{escape(name)}*")) and name not in known:
            raise InvalidInput(f"{name} is a study, not a run: loadstone study show {name}")
        if not known:
            raise InvalidInput(f"no run {name!r}: {self.location} holds no results yet")
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
    query = select(table).where(table.c.run_id == run_id).order_by(*table.primary_key.columns)
    return connection.execute(query).mappings().all()


def _upsert(connection: Connection, table: Table, row: dict[str, Any]) -> None:
    statement = _insert(connection, table).values(row)
    changed = {name: statement.excluded[name] for name in row if name not in table.primary_key}
    if row.get("samples_file", "") is None:
        # A trial that is stored again with a new verdict keeps its samples.
        del changed["samples_file"]
    key = [column.name for column in table.primary_key]
    connection.execute(statement.on_conflict_do_update(index_elements=key, set_=changed))


def _insert(connection: Connection, table: Table) -> "sqlite.Insert | postgresql.Insert":
    # Upserts are specific to the dialect.
    if connection.dialect.name == "postgresql":
        from sqlalchemy.dialects import postgresql

        return postgresql.insert(table)
    from sqlalchemy.dialects import sqlite

    return sqlite.insert(table)
