"""Rally's own results, taken in: pieces of what Rally 5.1.1 wrote."""

import json
from dataclasses import replace
from pathlib import Path
from statistics import mean

import pytest
from made_runs import runs, samples_of

from loadstone.analysis.model import Durations
from loadstone.engine import parquet
from loadstone.errors import EnvironmentUnusable, InvalidInput
from loadstone.rally.export import as_rally
from loadstone.rally.import_run import import_file
from loadstone.report.sections.trends import report_of
from loadstone.report.trends import trends
from loadstone.result import outcome

FOLDER = Path(__file__).parent.parent / "data/rally"
REPORT, OLD = FOLDER / "report.json", FOLDER / "results-old.json"
NAMES = ("min", "median", "90%ile", "95%ile", "max", "avg")


def rows(statistics):
    """Rally's rows of actions, those inside others behind them."""
    for row in statistics:
        yield row
        yield from rows(row["children"])


def test_a_report_becomes_a_run_for_each_task_with_rallys_own_figures(store):
    first, _ = import_file(store, REPORT)
    given = json.loads(REPORT.read_text())["tasks"][0]
    measurements = store.get(first).measurements
    workloads = [one for subtask in given["subtasks"] for one in subtask["workloads"]]
    assert len(measurements) == len(workloads) == 3
    for measurement, workload in zip(measurements, workloads, strict=True):
        durations = workload["statistics"]["durations"]
        theirs = [durations["total"], *rows(durations["atomics"])]
        mine = [measurement.stats.total, *measurement.stats.actions]
        assert [row.name.rpartition("/")[2] for row in mine] == [row["name"] for row in theirs]
        for row, other in zip(mine, theirs, strict=True):
            found = (row.min_s, row.median_s, row.p90_s, row.p95_s, row.max_s, row.mean_s)
            assert found == pytest.approx([other["data"][name] for name in NAMES], abs=0.0011)
            assert row.count == other["data"]["iteration_count"]
            assert row.repeats == other["count_per_iteration"]
        assert measurement.stats.load_s == workload["load_duration"]
        assert measurement.wall_s == workload["full_duration"]
        assert [row.detail for row in measurement.checks] == [
            row["detail"] for row in workload["sla_results"]["sla"]
        ]


@pytest.mark.parametrize(
    ("criterion", "of_run", "of_workload"),
    [
        ("aborted_on_sla", "finished", "aborted"),
        ("aborted_manually", "interrupted", "finished"),
    ],
)
def test_a_task_that_its_sla_ended_was_not_interrupted(
    store, tmp_path, criterion, of_run, of_workload
):
    given = json.loads(REPORT.read_text())
    given["tasks"] = given["tasks"][1:]
    given["tasks"][0]["status"] = "aborted"  # in both cases
    (workload,) = given["tasks"][0]["subtasks"][0]["workloads"]
    row = {"criterion": criterion, "success": False, "detail": "Task was aborted."}
    workload["sla_results"]["sla"].append(row)
    (tmp_path / "aborted.json").write_text(json.dumps(given))
    (run_id,) = import_file(store, tmp_path / "aborted.json")
    run = store.get(run_id)
    (measurement,) = run.measurements
    assert (run.status, measurement.status) == (of_run, of_workload)
    assert outcome.exit_code(run, is_clean=True) != 0


def test_a_failed_iteration_keeps_its_message(store):
    _, second = import_file(store, REPORT)
    (measurement,) = store.get(second).measurements
    (failure,) = measurement.stats.failures
    assert failure.count == 1
    assert "Bad Gateway" in failure.message
    assert measurement.stats.total.ok == measurement.stats.total.count - 1
    assert not measurement.checks_passed


@pytest.mark.parametrize("file", [REPORT, OLD])
def test_an_exception_that_the_scenario_caught_fails_no_iteration(store, tmp_path, file):
    given = json.loads(file.read_text())
    if file is REPORT:
        given["tasks"] = given["tasks"][:1]
        workload = given["tasks"][0]["subtasks"][0]["workloads"][0]
        for iteration in workload["data"]:
            iteration["atomic_actions"][1]["failed"] = True
    else:  # an action that raised has no time
        workload = {"data": given[0]["result"]}
        for iteration in workload["data"]:
            iteration["atomic_actions"] |= dict.fromkeys([list(iteration["atomic_actions"])[1]])
    assert [one["error"] for one in workload["data"]] == [[], []]
    (tmp_path / "caught.json").write_text(json.dumps(given))
    (run,) = import_file(store, tmp_path / "caught.json")
    stats = store.get(run).measurements[0].stats
    assert (stats.ok, stats.failed) == (2, 0)
    assert stats.total.mean_s == pytest.approx(mean(one["duration"] for one in workload["data"]))
    assert all(row.min_s > 0 for row in stats.actions)
    back = as_rally(store.get(run), lambda one: store.samples(run, one))["tasks"][0]
    [workload, *_] = back["subtasks"][0]["workloads"]
    assert workload["failed_iteration_count"] == 0
    assert [one["error"] for one in workload["data"]] == [[], []]
    marks = [[bool(a.get("failed")) for a in one["atomic_actions"]] for one in workload["data"]]
    assert marks == ([[False, True]] * 2 if file is REPORT else [[False]] * 2)


def test_what_was_taken_in_goes_back_to_rally_as_it_came(store):
    first, _ = import_file(store, REPORT)
    given = json.loads(REPORT.read_text())["tasks"][0]
    result = store.get(first)
    back = as_rally(result, lambda one: store.samples(first, one))["tasks"][0]
    for ours, theirs in zip(back["subtasks"], given["subtasks"], strict=True):
        (mine,), (other,) = ours["workloads"], theirs["workloads"]
        for key in ("scenario", "runner", "contexts", "sla", "sla_results", "position"):
            assert mine[key] == other[key]
        for one, two in zip(mine["data"], other["data"], strict=True):
            assert one["duration"] == pytest.approx(two["duration"], abs=1e-6)
            assert one["timestamp"] == pytest.approx(two["timestamp"], abs=1e-5)
            assert shape(one["atomic_actions"]) == shape(two["atomic_actions"])


def statistics(task):
    """The statistics of each workload of an exported task."""
    workloads = [one for subtask in task["subtasks"] for one in subtask["workloads"]]
    return [one["statistics"]["durations"] for one in workloads]


def without_samples(_trial):
    raise EnvironmentUnusable("samples/1-001.parquet is missing")


def test_a_workload_without_samples_goes_to_rally_with_its_stored_statistics(store):
    for run_id in import_file(store, REPORT):
        run, said = store.get(run_id), []
        [whole] = as_rally(run, lambda one, run=run: store.samples(run.run_id, one))["tasks"]
        [bare] = as_rally(run, without_samples, said.append)["tasks"]
        assert [line.partition(": ")[::2] for line in said] == [
            (
                f"Rally's JSON has no iterations of {one.title}, and statistics of the successful "
                "ones only",
                "samples/1-001.parquet is missing",
            )
            for one in run.workloads
        ]
        for measurement, one, two in zip(
            run.workloads, statistics(bare), statistics(whole), strict=True
        ):
            if measurement.stats.failed == 0:
                assert one == two
            else:
                data = one["total"]["data"]
                assert data["iteration_count"] == two["total"]["data"]["iteration_count"]
                assert data["success"] == two["total"]["data"]["success"]
                assert data["max"] == pytest.approx(measurement.stats.total.max_s, abs=0.0005)


def test_without_samples_the_times_with_pauses_are_not_made_up(store):
    run_id, _ = import_file(store, REPORT)
    run = store.get(run_id)
    [trial] = run.measurements[0].trials
    idle = Durations("idle", 2, 2, 1.0, 2.0, 2.8, 2.9, 2.98, 3.0, 2.0)
    trial = replace(trial, stats=replace(trial.stats, idle=idle))
    run = replace(run, measurements=(replace(run.measurements[0], trials=(trial,)),))
    [task] = as_rally(run, without_samples)["tasks"]
    total = statistics(task)[0]["total"]
    assert total["data"]["max"] is None
    assert total["data"]["avg"] == pytest.approx(trial.stats.total.mean_s + 2.0, abs=0.0005)
    assert [one["data"]["max"] for one in total["children"]] == [
        round(trial.stats.total.max_s, 3),
        3.0,
    ]


def test_errors_go_back_to_rally_as_far_as_they_were_kept(store, tmp_path):
    given = json.loads(REPORT.read_text())
    given["tasks"] = given["tasks"][:1]
    workload = given["tasks"][0]["subtasks"][0]["workloads"][0]
    workload["data"] = [{**workload["data"][0], "error": ["ValueError", e, ""]} for e in "abb"]
    (tmp_path / "errors.json").write_text(json.dumps(given))
    (run,) = import_file(store, tmp_path / "errors.json")
    back = as_rally(store.get(run), lambda one: store.samples(run, one))["tasks"][0]
    found = [one["error"][0] for one in back["subtasks"][0]["workloads"][0]["data"]]
    assert found == ["ValueError: a", "ValueError: b", "one of 2 causes"]


def shape(actions):
    return [(action["name"], shape(action["children"])) for action in actions]


def test_the_old_form_gives_the_same_workloads_one_history(store):
    import_file(store, REPORT)
    (old,) = import_file(store, OLD)
    for measurement in store.get(old).measurements:
        same = [one for one in store.history() if one.config_id == measurement.config_id]
        assert len(same) == 2
        assert same[0].median_s == pytest.approx(same[1].median_s, abs=1e-6)


def test_rallys_requests_have_a_history_of_their_own(store, tmp_path):
    (_, imported) = import_file(store, REPORT)
    run = store.get(imported)
    (of_rally,) = run.measurements
    for number, as_rally_sends in enumerate((False, True)):
        measurement = replace(of_rally, requests_as_rally=as_rally_sends)
        own = replace(run, run_id=f"20261128-120{number}-ab12cd", measurements=(measurement,))
        store.begin(own)
        document = as_rally(own, lambda one: store.samples(imported, one))
        (tmp_path / f"{number}.json").write_text(json.dumps(document))
        import_file(store, tmp_path / f"{number}.json")  # an export comes back to its own history
    history = [one for one in store.history() if one.scenario == of_rally.scenario]
    plain, like_rally = trends(history, store.get)
    if plain.requests_as_rally:
        plain, like_rally = like_rally, plain
    assert (len(plain.runs), len(like_rally.runs)) == (2, 3)
    assert imported in {one.run_id for one in like_rally.runs}
    assert [one.requests_as_rally for one in (plain, like_rally)] == [False, True]
    subtitles = [one.subtitle for one in report_of((), (plain, like_rally)).sections]
    assert ["Rally's own requests" in one for one in subtitles] == [False, True]


def test_scenarios_of_which_rally_sends_no_more_have_one_history(store, tmp_path):
    given = json.loads(REPORT.read_text())
    given["tasks"] = given["tasks"][1:]
    (workload,) = given["tasks"][0]["subtasks"][0]["workloads"]
    workload["scenario"] = {"Dummy.dummy": {}}
    (tmp_path / "dummy.json").write_text(json.dumps(given))
    (imported,) = import_file(store, tmp_path / "dummy.json")
    (measurement,) = store.get(imported).measurements
    assert not measurement.requests_as_rally


def test_a_rate_that_rally_kept_is_of_its_pacing_also_after_an_export(store, tmp_path):
    given = json.loads(REPORT.read_text())
    given["tasks"] = given["tasks"][1:]
    (workload,) = given["tasks"][0]["subtasks"][0]["workloads"]
    workload["runner"] = {"rps": {"times": 2, "rps": 1}}
    (tmp_path / "rps.json").write_text(json.dumps(given))
    (imported,) = import_file(store, tmp_path / "rps.json")
    run = store.get(imported)
    assert [one.paced_as_rally for one in run.measurements] == [True]
    (one,) = run.measurements
    for measurement in (one, replace(one, paced_as_rally=False)):
        own = replace(run, run_id=f"own-{measurement.paced_as_rally}", measurements=(measurement,))
        document = as_rally(own, lambda one: store.samples(imported, one))
        (tmp_path / "own.json").write_text(json.dumps(document))
        (back,) = import_file(store, tmp_path / "own.json")
        assert store.get(back).measurements[0].config_id == measurement.config_id


def test_hooks_of_the_old_form_are_those_of_a_task_file(store, tmp_path):
    given = json.loads(OLD.read_text())
    trigger = {"unit": "iteration", "at": [2]}
    config = {"name": "sys_call", "args": "true", "trigger": {"name": "event", "args": trigger}}
    result = {
        "status": "success",
        "started_at": 1795242800.0,
        "finished_at": 1795242801.0,
        "triggered_by": {"event_type": "iteration", "value": 2},
    }
    given[0]["hooks"] = [{"config": config, "results": [result], "summary": {"success": 1}}]
    (tmp_path / "old.json").write_text(json.dumps(given))
    (run,) = import_file(store, tmp_path / "old.json")
    measurement = store.get(run).measurements[0]
    (hook,) = measurement.workload.hooks
    assert (hook["action"], hook["trigger"]) == ({"sys_call": "true"}, {"event": trigger})
    assert [(one.value, one.status) for one in measurement.hook_runs] == [(2, "success")]


def test_subtasks_of_one_title_stay_apart(store, tmp_path):
    given = json.loads(REPORT.read_text())
    [task, *_] = given["tasks"]
    first, second = task["subtasks"][:2]
    first["description"], second["description"] = "logins", None
    both = {**first, "workloads": [*first["workloads"], *second["workloads"]]}
    task["subtasks"] = [both, {**second, "title": first["title"]}, second]
    given["tasks"] = [task]
    (tmp_path / "alike.json").write_text(json.dumps(given))
    (run,) = import_file(store, tmp_path / "alike.json")
    back = as_rally(store.get(run), lambda one: store.samples(run, one))["tasks"][0]["subtasks"]
    found = [(one["title"], one["description"], len(one["workloads"])) for one in back]
    title = first["title"]
    assert found == [(title, "logins", 2), (title, "", 1), (second["title"], "", 1)]


@pytest.mark.parametrize(("file", "created_at"), [(REPORT, "06:31:55"), (OLD, "06:32:53")])
def test_a_task_without_an_iteration_is_of_the_time_at_which_it_was_created(
    store, tmp_path, file, created_at
):
    given = json.loads(file.read_text())
    if file is REPORT:
        given["tasks"] = given["tasks"][:1]
        subtasks = given["tasks"][0]["subtasks"]
        for workload in (one for subtask in subtasks for one in subtask["workloads"]):
            workload |= {"data": [], "start_time": None, "load_duration": 0}
    else:
        given = [{**one, "result": [], "load_duration": 0} for one in given]
    (tmp_path / "failed.json").write_text(json.dumps(given))
    (run,) = import_file(store, tmp_path / "failed.json")
    assert store.get(run).started_at == f"2026-11-21T{created_at}+00:00"


@pytest.mark.parametrize(
    ("dates", "day"),
    [
        (("2017-06-30T10:00:00", "2017-07-01T10:00:00"), "2017-06-30"),  # not in Rally's form
        (("2017-06-30 10:00:00", None), "2017-06-30"),
        (("2017-30-06T10:00:00", "2017-02-07T10:00:00"), "2017-06-30"),
    ],
)
def test_dates_of_old_results_may_be_in_iso_8601(store, tmp_path, dates, day):
    entry = json.loads(OLD.read_text())[0] | {"result": [], "load_duration": 0}
    given = [{**entry, "created_at": date} for date in dates]
    (tmp_path / "failed.json").write_text(json.dumps(given))
    (run,) = import_file(store, tmp_path / "failed.json")
    assert store.get(run).started_at == f"{day}T10:00:00+00:00"


def test_what_is_already_here_is_refused_and_nothing_is_doubled(store):
    import_file(store, REPORT)
    with pytest.raises(InvalidInput, match="already in this store"):
        import_file(store, REPORT)
    assert len(store.every()) == 2


def test_what_a_killed_import_left_behind_holds_up_no_other_task(store):
    first, second = import_file(store, REPORT)
    for run_id in (first, second):
        store.delete(run_id)
    store.make_folder(first)
    said = []
    assert import_file(store, REPORT, said.append) == (second,)
    [line] = said
    assert line.startswith(f"{store.folder(first)} is there already")
    store.delete(second)
    store.make_folder(second)
    with pytest.raises(InvalidInput, match="is there already"):
        import_file(store, REPORT, said.append)


@pytest.mark.parametrize("failing", [0, 1, 3])
@pytest.mark.parametrize("error", [EnvironmentUnusable("No space left"), KeyboardInterrupt()])
def test_a_failed_import_leaves_no_part_of_a_run_and_can_be_repeated(
    store, monkeypatch, failing, error
):
    write, written = parquet.write, []

    def fails_once(path, samples):
        written.append(path)
        if len(written) == failing + 1:
            raise error
        write(path, samples)

    monkeypatch.setattr(parquet, "write", fails_once)
    with pytest.raises(type(error)):
        import_file(store, REPORT)
    kept = [entry.run_id for entry in store.every()]
    assert len(kept) == failing // 3  # the file's first task has three workloads
    said = []
    ids = import_file(store, REPORT, said.append)
    assert said == [f"run {run_id} is already in this store" for run_id in kept]
    assert sorted([*kept, *ids]) == sorted(entry.run_id for entry in store.every())
    assert len(store.every()) == 2
    for entry in store.every():
        for measurement in store.get(entry.run_id).measurements:
            assert len(store.samples(entry.run_id, measurement.trials[0]))


@pytest.mark.parametrize(
    "text", ["", "{}", "[]", "[1]", '{"tasks": []}', '{"tasks": [{"subtasks": [{}]}]}', "\x00"]
)
def test_a_file_of_something_else_is_refused_in_one_line(store, tmp_path, text):
    (tmp_path / "file.json").write_text(text)
    with pytest.raises(InvalidInput, match=r"file\.json") as refused:
        import_file(store, tmp_path / "file.json")
    assert "\n" not in str(refused.value)
    assert store.every() == []


def test_a_workload_passes_if_its_rules_held_and_the_task_if_all_did() -> None:
    task = runs()["task"]
    first = task.measurements[0]
    first = replace(first, workload=replace(first.workload, scenario={first.scenario: {}}))
    checks = tuple(replace(row, success=True) for row in first.checks)
    held = replace(first, trials=(replace(first.trials[-1], checks=checks),))
    for measurements, passed in (((first, held), [False, True]), ((held,), [True])):
        [found] = as_rally(replace(task, measurements=measurements), samples_of)["tasks"]
        workloads = [one for subtask in found["subtasks"] for one in subtask["workloads"]]
        assert [one["pass_sla"] for one in workloads] == passed
        assert found["pass_sla"] is all(passed)


def test_what_did_not_end_has_not_passed() -> None:
    task = runs()["task"]
    first = replace(task.measurements[0], status="interrupted", trials=())
    run = replace(task, status="interrupted", measurements=(first,))
    [found] = as_rally(run, samples_of)["tasks"]
    [workload] = found["subtasks"][0]["workloads"]
    assert (found["status"], found["pass_sla"], workload["pass_sla"]) == ("aborted", False, False)
    assert [row["criterion"] for row in workload["sla_results"]["sla"]] == ["aborted_manually"]
    [found] = as_rally(replace(run, measurements=()), samples_of)["tasks"]
    assert not found["pass_sla"]
