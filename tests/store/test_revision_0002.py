"""A store of before revision 0003, of real runs, is read: nothing of what was shown is lost.

`revision_0002/` holds the database as SQL, sample files, what the commands of that version showed
as JSON, and the runs as it exported them.
"""

import json
import math
import shutil
import sqlite3
from dataclasses import asdict
from pathlib import Path

import pytest
from sqlalchemy import MetaData

from loadstone.rally.export import as_rally
from loadstone.report import html, schema
from loadstone.report.data import as_data
from loadstone.report.junit import render as junit
from loadstone.report.openmetrics import render as openmetrics
from loadstone.report.sections.run import report_of
from loadstone.report.trends import as_data as trend_as_data
from loadstone.report.trends import trends
from loadstone.store import bundle, database, location, postgresql
from loadstone.store.store import Store

HERE = Path(__file__).parent / "revision_0002"
RUNS = sorted(path.stem for path in HERE.glob("2026*.json"))
SEARCH, STEPS, STUDY, FAILED, TASK = (
    "20261122-1053-143273",
    "20261122-1050-b35a29",
    "20261122-1051-53d768",
    "20261122-1051-a882d7",
    "20261122-1059-144d34",
)


@pytest.fixture
def old(place: location.StoreLocation):
    """The store as it was: in a file, and in PostgreSQL."""
    shutil.copytree(HERE / "runs", place.folder / "runs")
    file = place.folder / database.FILE
    connection = sqlite3.connect(file)
    connection.executescript((HERE / "results.sql").read_text())
    connection.commit()
    if place.database is not None:
        _copied(connection, place)
    connection.close()
    with Store.open(place) as store:
        yield store


def _copied(source: sqlite3.Connection, place: location.StoreLocation) -> None:
    engine = postgresql.engine(place.database, 15.0)
    with database.writing(engine) as target:
        database.upgrade(target, "0002")
        tables = MetaData()
        tables.reflect(target)
        source.row_factory = sqlite3.Row
        for name in ("runs", "findings", "trials", "performances"):
            rows = [dict(row) for row in source.execute(f"SELECT * FROM {name}")]
            for row in rows:
                if "pass_sla" in row:
                    row["pass_sla"] = bool(row["pass_sla"])
            target.execute(tables.tables[name].insert(), rows)
    engine.dispose()
    (place.folder / database.FILE).unlink()


def alike(ours, theirs, where=""):
    """The same but for new keys, and the last digit of what is now in seconds."""
    if isinstance(theirs, dict):
        missing = theirs.keys() - ours.keys()
        assert not missing, f"{where}: {missing}"
        for key, value in theirs.items():
            alike(ours[key], value, f"{where}.{key}")
    elif isinstance(theirs, list):
        assert len(ours) == len(theirs), where
        for number, (one, other) in enumerate(zip(ours, theirs, strict=True)):
            alike(one, other, f"{where}[{number}]")
    elif isinstance(theirs, float):
        assert ours is not None, where
        assert math.isclose(ours, theirs, rel_tol=1e-12), where
    else:
        assert ours == theirs, where


def figures_as_shown(run_id):
    """Return throughput and 95th percentile of each load, and N, as they were shown."""
    theirs = json.loads((HERE / f"{run_id}.json").read_text())
    capacity = (theirs.get("capacity") or {}).get("rate_rps")
    if "workloads" in theirs:
        loads = [(one["throughput_rps"], one["total"]) for one in theirs["workloads"]]
        return capacity, [(rate, total["p95_s"]) for rate, total in loads if total]
    trials = [
        trial for one in theirs.get("findings") or [theirs] for trial in one.get("trials") or ()
    ]
    return capacity, [(one["throughput_rps"], one["latency_ms"]["p95"] / 1000) for one in trials]


def figures_of(run):
    data = as_data(report_of(run))
    schema.check(json.loads(json.dumps(data)))
    found = [one["capacity"]["rate_rps"] for one in data["measurements"] if one["capacity"]]
    trials = [trial for one in data["measurements"] for trial in one["trials"]]
    figures = [(one["throughput_rps"], one["latency"]["p95_s"]) for one in trials]
    return next(iter(found), None), figures


@pytest.mark.parametrize("run_id", RUNS)
def test_each_run_is_shown_with_its_figures(old, run_id):
    capacity, loads = figures_of(old.get(run_id))
    n, shown = figures_as_shown(run_id)
    assert capacity == (None if n is None else pytest.approx(n))
    assert loads == [pytest.approx(one) for one in shown]


@pytest.mark.parametrize("run_id", RUNS)
def test_each_run_that_was_exported_is_taken_in(store, run_id):
    assert bundle.import_run(store, HERE / f"exported/{run_id}.zip") == run_id
    _, loads = figures_of(store.get(run_id))
    assert loads == [pytest.approx(one) for one in figures_as_shown(run_id)[1]]
    store.require_files(run_id)


def test_the_list_of_runs_is_as_it_was(old):
    entries = [asdict(one) | {"configuration": dict(one.configuration)} for one in old.every()]
    before = json.loads((HERE / "list.json").read_text())
    for entry in before:
        if entry["performed"]:
            assert entry.pop("trials") == 0  # those of tasks count since
    alike(json.loads(json.dumps(entries)), before)


def test_trends_are_as_they_were(old):
    found = trends(old.history(), old.get)
    alike([trend_as_data(one) for one in found], json.loads((HERE / "trends.json").read_text()))


def test_steps_of_one_workload_are_one_measurement(old):
    (measurement,) = old.get(STEPS).measurements
    assert (measurement.policy, len(measurement.trials)) == ("steps", 3)
    runners = [json.loads(trial.runner)["constant"]["concurrency"] for trial in measurement.trials]
    assert runners == [1, 3, 5]
    assert [one.policy for one in old.get(TASK).measurements] == ["fixed"] * 3


def test_policies_say_what_a_measurement_was(old):
    assert [one.policy for one in old.get(SEARCH).measurements] == ["search"]
    assert [one.policy for one in old.get(STUDY).measurements] == ["fixed"] * 2


def test_a_failure_is_kept_once_and_shown_as_a_check(old):
    failed, aborted = old.get(FAILED).measurements
    assert failed.trials == ()
    assert [check.criterion for check in failed.checks] == ["something_went_wrong"]
    assert failed.checks[0].detail == failed.failure
    assert [check.criterion for check in aborted.checks] == ["failure_rate", "aborted_on_sla"]


def test_samples_are_found(old):
    for run_id in RUNS:
        run = old.get(run_id)
        trials = [trial for one in run.measurements for trial in one.trials]
        assert all(len(old.samples(run_id, trial)) for trial in trials)


@pytest.mark.parametrize("run_id", RUNS)
def test_every_format_can_be_written(old, run_id):
    run = old.get(run_id)
    report = report_of(run, lambda trial: old.samples(run_id, trial))
    assert run_id in html.render(report)
    assert run_id in junit(report)
    assert run_id in openmetrics(run)
    if run.workloads:
        (task,) = as_rally(run, lambda trial: old.samples(run_id, trial))["tasks"]
        counts = [
            one["total_iteration_count"] for sub in task["subtasks"] for one in sub["workloads"]
        ]
        assert counts == [one.stats.total.count if one.stats else 0 for one in run.workloads]
