"""The store of results: rows in SQLite or PostgreSQL, and files in runs/<run_id>/."""

import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from difflib import get_close_matches
from glob import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sqlalchemy import Connection, Engine, RowMapping, Table, delete, select

from loadstone.analysis.model import Trial
from loadstone.engine import readings
from loadstone.engine.readings import ReadingColumns
from loadstone.engine.samples import Samples
from loadstone.errors import EnvironmentUnusable, InvalidInput
from loadstone.monitor.metrics import Metrics
from loadstone.result.listing import Entry, Performed
from loadstone.result.model import Measurement, PastSearch, Run
from loadstone.store import codec, database, listing, owner, privacy, row_files, rows, upkeep
from loadstone.store.backlog import Backlog
from loadstone.store.location import StoreLocation
from loadstone.store.recovery import Recovered, bring_in, is_at_work, recover_all
from loadstone.store.row_files import StoredRow
from loadstone.store.run_id import is_file_name, is_run_id, require_run_id
from loadstone.store.schema import measurements, runs, trials
from loadstone.store.upsert import upsert
from loadstone.system import files
from loadstone.system.redaction import Redaction
from loadstone.system.say import Say

if TYPE_CHECKING:
    from loadstone.engine.parquet import SampleFile

LATEST = "latest"


class RunDamaged(EnvironmentUnusable):
    """The rows of a run cannot be read."""


class Store:
    """Store of results. Several processes and machines may use it at the same time.

    Each result of a run goes to a file in the run's folder and then to the database. What could not
    be written to the database follows later, from the files.
    """

    def __init__(
        self,
        location: StoreLocation,
        engine: Engine,
        redaction: Redaction | None = None,
        backlog: Backlog | None = None,
    ) -> None:
        self.location = location
        self._folder = location.folder
        self._engine = engine
        self.redaction = redaction or Redaction(database.known_secrets(engine))
        self._backlog = backlog or Backlog()
        self.notices: tuple[str, ...] = ()  # what was repaired at the start, damaged runs

    @classmethod
    def open(cls, place: Path | StoreLocation, patience_s: float = database.PATIENCE_S) -> "Store":
        """Open or create a store; raise EnvironmentUnusable if that is impossible."""
        location = StoreLocation.of(place)
        try:
            files.make_private_folder(location.folder)
            files.make_private_folder(location.folder / "runs")
        except OSError as problem:
            raise EnvironmentUnusable(
                f"{location.folder} cannot hold results: {problem.strerror}; choose another with "
                "--store"
            ) from problem
        return cls._kept_up(location, database.connect(location, patience_s))

    @classmethod
    def _kept_up(cls, location: StoreLocation, engine: Engine) -> "Store":
        try:
            store = cls(location, engine)
            if location.folder.is_dir():
                store.notices = upkeep.at_start(location, engine)
        except BaseException:
            engine.dispose()
            raise
        return store

    def hiding(self, secrets: Iterable[str], say: Say | None = None) -> "Store":
        """Return the same store with these secrets redacted in everything that it stores.

        With `say`, the store goes on with files while the database cannot be written; `say` gets a
        line then, and when it can be written again. Otherwise EnvironmentUnusable is raised.
        """
        backlog = self._backlog if say is None else self._backlog.telling(say)
        return Store(self.location, self._engine, self.redaction.also(secrets), backlog)

    @classmethod
    def open_to_read(cls, place: Path | StoreLocation) -> "Store":
        """Open a store without creating it; an absent one is empty."""
        location = StoreLocation.of(place)
        return cls._kept_up(location, database.connect_to_read(location))

    def close(self) -> None:
        """Close the connections to the database."""
        self._engine.dispose()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def begin(self, run: Run) -> Path:
        """Store a run that has just begun, and return its folder."""
        folder = self.folder(run.run_id)
        with database.explained(self._engine):
            files.make_private_folder(folder)
        records = [self._run_row(run), *self._measurement_rows(run)]
        try:
            with database.writing(self._engine) as connection:
                connection.execute(runs.insert().values(dict(records[0].row)))
                for one in records[1:]:
                    upsert(connection, one.table, one.row)
        except EnvironmentUnusable:
            with suppress(OSError):  # an import has put its files there, and removes them itself
                folder.rmdir()
            raise
        # Before the mark: a mark without files is taken for one that was left behind.
        try:
            self._write_files(run.run_id, records)
            if run.status == "running":
                row_files.mark(self._folder, run.run_id)
        except BaseException:
            if run.status != "running":  # an import that is interrupted leaves nothing
                self._remove_rows(run.run_id)
            raise
        return folder

    def _remove_rows(self, run_id: str) -> None:
        with suppress(EnvironmentUnusable), database.writing(self._engine) as connection:
            connection.execute(delete(runs).where(runs.c.run_id == run_id))

    def keep_measurement(self, run_id: str, index: int, measurement: Measurement) -> None:
        """Store a measurement with its trials; `index` counts the run's measurements from 0."""
        self._keep(run_id, self._rows_of(run_id, index, measurement))

    def keep_trial(
        self,
        run_id: str,
        index: int,
        trial: Trial,
        samples: "Samples | SampleFile | None" = None,
    ) -> Trial:
        """Store a trial that has ended; return it with the name of its samples file.

        Its measurement must be stored already. A file of samples must be at `samples_path`. A trial
        whose samples cannot be written is stored without them, before EnvironmentUnusable is
        raised.
        """
        lost: EnvironmentUnusable | None = None
        if samples is not None:
            path = self.samples_path(run_id, index, trial.number)
            try:
                if isinstance(samples, Samples):
                    from loadstone.engine import parquet

                    parquet.write(path, samples)
                trial = replace(trial, samples_file=str(path.relative_to(self.folder(run_id))))
            except EnvironmentUnusable as problem:
                lost = problem
        row = rows.trial_row(run_id, index, trial, self._measurement(run_id, index))
        self._keep(run_id, [StoredRow(trials, self._hidden(row))])
        if lost is not None:
            raise lost
        return trial

    def keep_readings(self, run_id: str, index: int, number: int, metrics: Metrics) -> str:
        """Write a trial's readings to a file; return its name, relative to the run's folder."""
        path = self._new_file(run_id, f"readings/{index + 1}-{number:03}.parquet")
        columns = ReadingColumns(
            (metrics.time_s * 1e6).astype(np.int64), metrics.series, metrics.value, metrics.names
        )
        readings.write(path, columns)
        return str(path.relative_to(self.folder(run_id)))

    def keep_profile(self, run_id: str, index: int, number: int, folded: str) -> str:
        """Write a trial's folded stacks to a file; return its name as `keep_readings` does."""
        path = self._new_file(run_id, f"profiles/{index + 1}-{number:03}.folded")
        files.write(path, folded, files.PRIVATE)
        return str(path.relative_to(self.folder(run_id)))

    def samples_path(self, run_id: str, index: int, number: int) -> Path:
        """Return the path for the samples of a trial, in an existing folder."""
        return self._new_file(run_id, f"samples/{index + 1}-{number:03}.parquet")

    def finish(self, run: Run) -> None:
        """Store the end of a run: status, measurements, and trials with their final verdicts."""
        self._keep(run.run_id, [self._run_row(run), *self._measurement_rows(run)], is_last=True)
        if not self._backlog.holds(run.run_id):
            row_files.unmark(self._folder, run.run_id)
        privacy.share(self.location, self.folder(run.run_id))

    def mark_clean(self, run_id: str) -> None:
        """Record that nothing that a run created is left in its cloud; not of a damaged run."""
        with suppress(RunDamaged):
            run = self.get(run_id)
            if run.environment.has_leftovers:
                environment = replace(run.environment, has_leftovers=False)
                row = self._run_row(replace(run, environment=environment))
                self._keep(run_id, [row], is_last=True)
                privacy.share(self.location, self.folder(run_id))

    def holds(self, run_id: str) -> bool:
        """Return whether a run with exactly this id is stored."""
        if self._backlog.holds(run_id):
            return True
        with database.reading(self._engine) as connection:
            return run_id in _run_ids(connection)

    def resolve(self, name: str) -> str:
        """Return the id of a run by its id, a unique prefix of it, or "latest"."""
        with database.reading(self._engine) as connection:
            return self._resolve(connection, name)

    def get(self, name: str) -> Run:
        """Return a run by its id, a unique prefix of it, or "latest".

        Raises RunDamaged if its rows are damaged.
        """
        if self._backlog.holds(name):
            return self._of_files(name)
        with database.reading(self._engine) as connection:
            run_id = self._resolve(connection, name)
            run = connection.execute(select(runs).where(runs.c.run_id == run_id)).mappings().one()
            try:
                return rows.run_of(
                    run, _all(connection, measurements, run_id), _all(connection, trials, run_id)
                )
            except codec.BAD_DATA as problem:
                why = listing.damage(run_id, problem, self.location.option, "cannot be read")
                raise RunDamaged(why) from problem

    def _of_files(self, run_id: str) -> Run:
        """Return a run of this process whose rows are only in files."""
        found, _ = row_files.read(self.folder(run_id))
        of_tables = {
            table: [one.row for one in found if one.table is table]
            for table in (runs, measurements, trials)
        }
        return rows.run_of(of_tables[runs][0], of_tables[measurements], of_tables[trials])

    def every(self, limit: int | None = None) -> list[Entry]:
        """List the runs, newest first, at most `limit`.

        Damaged runs are left out, and named in `notices`.
        """
        with database.reading(self._engine) as connection:
            found, damaged = listing.every(connection, limit, self.location.option)
        self.notices += tuple(damaged)
        return found

    def history(self) -> list[Performed]:
        """List the workloads of all runs, oldest first; each step is an entry of its own.

        Damaged runs are left out, and named in `notices`.
        """
        with database.reading(self._engine) as connection:
            found, damaged = listing.history(connection, self.location.option)
        self.notices += tuple(damaged)
        return found

    def past_searches(self) -> list[PastSearch]:
        """List the searches of `capacity` and `demo`, oldest first; repeated ones, then combined.

        Searches of studies are left out, as cells differ on purpose, and so are those that did not
        end. Damaged runs are left out, and named in `notices`.
        """
        with database.reading(self._engine) as connection:
            query = (
                select(measurements, runs.c.started_at, runs.c.environment)
                .join(runs, runs.c.run_id == measurements.c.run_id)
                .where(
                    measurements.c.policy == "search",
                    measurements.c.status.not_in(("running", "interrupted", "failed")),
                    runs.c.kind.in_(("capacity", "demo")),
                )
                .order_by(runs.c.started_at, runs.c.run_id, measurements.c.position)
            )
            found = []
            for row in connection.execute(query).mappings():
                try:
                    found.append(rows.past_search(row))
                except codec.BAD_DATA as problem:
                    why = listing.damage(row["run_id"], problem, self.location.option)
                    self.notices += (why,)
        return found

    def with_parameter(self, name: str) -> list[tuple[str, dict[str, str]]]:
        """List finished runs with this parameter, newest first, with all their parameters.

        Damaged runs are left out.
        """
        with database.reading(self._engine) as connection:
            query = (
                select(measurements.c.run_id, measurements.c.body)
                .join(runs, runs.c.run_id == measurements.c.run_id)
                .where(runs.c.status == "finished", measurements.c.body.contains(f'["{name}",'))
                .order_by(runs.c.started_at.desc(), runs.c.run_id.desc())
            )
            bodies = connection.execute(query).all()
        found = []
        for run_id, body in bodies:
            with suppress(*codec.BAD_DATA):
                found.append((run_id, dict(codec.loads(Measurement, body).parameters)))
        return [(run_id, parameters) for run_id, parameters in found if name in parameters]

    def recover(self) -> tuple[Recovered, ...]:
        """Bring rows into the database that are only in files, of all runs not being measured."""
        return recover_all(self._folder, self._engine)

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
        """Remove a run with its files, and return its id; no files if the id names no folder.

        Raises InvalidInput while it is being measured. `is_forced` also removes the rows of a run
        on another machine, whose state is unknown here.
        """
        with database.writing(self._engine) as connection:
            run_id = self._resolve(connection, name)
            run = connection.execute(select(runs).where(runs.c.run_id == run_id)).mappings().one()
            is_ours = owner.is_here(run["owner"])
            folder = self.folder(run_id) if is_run_id(run_id) else None
            is_running = False
            with suppress(ValueError):  # its owner is damaged and names no process
                is_running = listing.status_of(run)[0] == "running"
            if is_running and (is_ours or not is_forced):
                where = "" if is_ours else f" on {owner.host(run['owner'])}"
                raise InvalidInput(
                    f"run {run_id} is being measured{where}; end it first (Ctrl-C)"
                    + ("" if is_ours else "; if that machine is gone: --force")
                )
            # Files first: on a full disk they make the room that the database needs to delete rows,
            # and a run whose files cannot be removed stays in the list.
            if folder is not None:
                with suppress(FileNotFoundError):
                    shutil.rmtree(folder)
            connection.execute(delete(runs).where(runs.c.run_id == run_id))
        if folder is not None:
            row_files.unmark(self._folder, run_id)
        return run_id

    def samples(self, run_id: str, trial: Trial) -> Samples:
        """Read the samples of a trial; raise EnvironmentUnusable if there are none."""
        from loadstone.engine import parquet

        what = f"trial {trial.number}"
        if trial.samples_file is None:
            raise EnvironmentUnusable(f"{what} of {run_id} was kept without samples")
        path = self.file(run_id, trial.samples_file)
        if not path.is_file():
            self.require_files(run_id)
            raise EnvironmentUnusable(f"{path} is missing: the samples of {what}")
        return parquet.read(path)

    def folder(self, run_id: str) -> Path:
        """Return the folder of a run's files, as `run_folder` does."""
        return run_folder(self.location, run_id)

    def make_folder(self, run_id: str) -> Path:
        """Create the folder of a run to import; InvalidInput if it is there already."""
        folder = self.folder(run_id)
        try:
            # Not looked for first: another import may create it at the same moment.
            folder.mkdir(mode=files.PRIVATE_FOLDER)
        except FileExistsError:
            raise InvalidInput(
                f"{folder} is there already; if no other import is at work, remove it first"
            ) from None
        except OSError as problem:
            raise EnvironmentUnusable(f"cannot write {folder}: {problem.strerror}") from problem
        return folder

    def file(self, run_id: str, name: str) -> Path:
        """Return a run's file of samples, readings or stacks by its name in a result."""
        if not is_file_name(name):
            raise EnvironmentUnusable(f"run {run_id}: {name!r:.80} is not a file of a run")
        folder = self.location.folder
        path = folder / "runs" / require_run_id(run_id) / name
        _require_in_place(path, folder.resolve() / "runs" / run_id / name)
        return path

    def _new_file(self, run_id: str, name: str) -> Path:
        """Return the path of a file in an existing folder of a run."""
        path = self.file(run_id, name)
        with database.explained(self._engine):
            path.parent.mkdir(mode=files.PRIVATE_FOLDER, exist_ok=True)  # the run's folder exists
        return path

    def _hidden(self, row: dict[str, Any]) -> dict[str, Any]:
        return rows.hidden(row, self.redaction)

    def _run_row(self, run: Run) -> StoredRow:
        return StoredRow(runs, self._hidden(rows.run_row(run)) | {"owner": owner.this_process()})

    def _measurement_rows(self, run: Run) -> Iterator[StoredRow]:
        for index, measurement in enumerate(run.measurements):
            yield from self._rows_of(run.run_id, index, measurement)

    def _rows_of(self, run_id: str, index: int, measurement: Measurement) -> list[StoredRow]:
        self._backlog.measurements[run_id, index] = replace(measurement, trials=())
        row = rows.measurement_row(run_id, index, measurement)
        found = [StoredRow(measurements, self._hidden(row))]
        for trial in measurement.trials:
            row = rows.trial_row(run_id, index, trial, measurement)
            found.append(StoredRow(trials, self._hidden(row)))
        return found

    def _measurement(self, run_id: str, index: int) -> Measurement:
        """Return a measurement as it was stored last."""
        if (run_id, index) in self._backlog.measurements:
            return self._backlog.measurements[run_id, index]
        of_measurement = (measurements.c.run_id == run_id) & (measurements.c.position == index)
        with database.reading(self._engine) as connection:
            query = select(measurements.c.body).where(of_measurement)
            return codec.loads(Measurement, connection.execute(query).scalar_one())

    def _keep(self, run_id: str, records: Sequence[StoredRow], *, is_last: bool = False) -> None:
        """Write rows to files and then to the database, or later from the files.

        Raises EnvironmentUnusable if neither can be written, or nobody can be told.
        """
        lost = self._write_files(run_id, records)
        if lost is None and not is_last and not self._backlog.is_due():
            self._backlog.add(run_id)
            return
        try:
            for behind in self._backlog.runs():
                bring_in(self._engine, row_files.read(self.folder(behind))[0])
            with database.writing(self._engine) as connection:
                for one in records:
                    upsert(connection, one.table, one.row)
        except EnvironmentUnusable as why:
            if lost is not None or self._backlog.say is None:
                raise
            self._backlog.fell_behind(run_id, str(why), self.folder(run_id) / row_files.FOLDER)
            return
        for one in records if lost is not None else ():
            row_files.remove(self.folder(run_id), one)
        for behind in self._backlog.caught_up() - {run_id}:
            if not is_at_work(self.folder(behind)):  # as the other run of a comparison may be
                row_files.unmark(self._folder, behind)

    def _write_files(self, run_id: str, records: Sequence[StoredRow]) -> EnvironmentUnusable | None:
        """Write rows to files; return the reason if that is impossible."""
        folder = self.folder(run_id)
        for one in records:
            try:
                try:
                    row_files.write(folder, one)
                except EnvironmentUnusable:
                    if not row_files.release_reserve(folder):
                        raise
                    row_files.write(folder, one)
            except EnvironmentUnusable as problem:
                return problem
        return None

    def _resolve(self, connection: Connection, name: str) -> str:
        if not name:
            raise InvalidInput("no run is named: the name is empty; is a variable not set?")
        known = _run_ids(connection)
        matching = [run_id for run_id in known if run_id.startswith(name)]
        if not matching and any(self._folder.glob(f"studies/{escape(name)}*")):
            raise InvalidInput(f"{name} is a study, not a run: loadstone study show {name}")
        if not known:
            raise InvalidInput(f"no run {name!r}: {self.location} holds no results yet")
        if name == LATEST:
            return known[0]
        if name in matching or len(matching) == 1:
            return name if name in matching else matching[0]
        if matching:
            raise InvalidInput(f"run {name!r} could be {', '.join(matching[:4])}; give more of it")
        # Ids of different runs are alike in half of their characters.
        near = get_close_matches(name, (LATEST, *known), 1, cutoff=0.8)
        meant = f"; did you mean {near[0]}?" if near else ""
        listed = f"loadstone results list{self.location.option}"
        raise InvalidInput(f"no run {name!r}{meant}; {listed} shows all")


def run_folder(location: StoreLocation, run_id: str) -> Path:
    """Return the folder of a run's files, for which no database is needed; needs the full id.

    Raises InvalidInput for what is no id, and EnvironmentUnusable if a symbolic link leads
    elsewhere.
    """
    path = location.folder / "runs" / require_run_id(run_id)
    _require_in_place(path, location.folder.resolve() / "runs" / run_id)
    return path


def _require_in_place(path: Path, expected: Path) -> None:
    if path.resolve() != expected:
        raise EnvironmentUnusable(
            f"{path} is or is behind a symbolic link, which may lead out of the store; remove the "
            "link, or choose the folder it leads to with --store"
        )


def _run_ids(connection: Connection) -> Sequence[str]:
    newest = select(runs.c.run_id).order_by(runs.c.started_at.desc(), runs.c.run_id.desc())
    return connection.execute(newest).scalars().all()


def _all(connection: Connection, table: Table, run_id: str) -> Sequence[RowMapping]:
    query = select(table).where(table.c.run_id == run_id).order_by(*table.primary_key.columns)
    return connection.execute(query).mappings().all()
