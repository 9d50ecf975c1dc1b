"""`loadstone results trends`: N over the runs of a target, and what changed where it changed."""

import json
import re
from dataclasses import replace

import made_runs
import pytest
from made_workloads import workload
from realistic import keystone

from loadstone.cli import main
from loadstone.errors import EnvironmentUnusable
from loadstone.report import html
from loadstone.report.history import CapacityTrend, capacity_trends, sentences
from loadstone.report.sections.trends import report_of
from loadstone.report.trends import Trend
from loadstone.report.trends import trends as workload_trends
from loadstone.result.listing import Performed
from loadstone.result.model import Run
from loadstone.result.task_workload import TaskWorkload
from loadstone.search.model import Capacity
from loadstone.store.store import Store

RESULT, SAMPLES = keystone()
LEVELS = [50.0, 51.0, 49.5, 50.5, 50.2, 49.8, 44.0, 44.5, 43.6, 44.2]


def facts(workers: str, port: int) -> tuple[tuple[str, str], ...]:
    known = dict(RESULT.environment.target)
    known |= {"workers": workers, "lab": "nightly", "url": f"http://127.0.0.1:{port}/v3"}
    return tuple(known.items())


@pytest.fixture
def trends(tmp_path, monkeypatch, capfd):
    """Run `results trends` over ten nights, in which the workers went from 4 to 3."""
    with Store.open(tmp_path) as store:
        for night, level in enumerate(LEVELS):
            target = facts("4" if night < 6 else "3", 5000 + night)
            of_night = replace(
                RESULT.measurements[0],
                capacity=Capacity(level, 0.98 * level, 1.02 * level, 0.95),
                trials=(),
            )
            store.begin(
                replace(
                    RESULT,
                    run_id=f"202611{night + 1:02}-0300-ab12cd",
                    kind="capacity",
                    started_at=f"2026-11-{night + 1:02}T03:00:00+00:00",
                    environment=replace(RESULT.environment, target=target),
                    measurements=(of_night,),
                )
            )
        # A study's cells differ on purpose and are no history.
        store.begin(replace(RESULT, run_id="20261120-0000-ffffff", kind="study"))

    def run(*words: str) -> str:
        command = ["loadstone", "results", "trends", "--store", str(tmp_path), *words]
        monkeypatch.setattr("sys.argv", command)
        with pytest.raises(SystemExit) as ended:
            main()
        shown, told = capfd.readouterr()
        assert ended.value.code == 0, told
        return shown

    return run


def test_a_change_of_n_is_found_with_the_settings_that_changed_there(trends):
    [found] = json.loads(trends("--json", "-"))
    assert (found["kind"], found["target"]) == ("capacity", "lab nightly")
    assert [run["rate_rps"] for run in found["runs"]] == LEVELS
    [change] = found["changes"]
    assert change["before"] == "20261106-0300-ab12cd"
    assert change["after"] == "20261107-0300-ab12cd"
    assert change["low"] < 0.88 < change["high"]
    assert change["settings"] == [{"name": "workers", "before": "4", "after": "3"}]


def test_the_terminal_and_the_page_show_it(trends, tmp_path):
    shown = " ".join(trends().split())
    assert "N fell by 12 % between 20261106-0300-ab12cd and 20261107-0300-ab12cd" in shown
    assert "What differs: workers 4 -> 3." in shown
    assert trends("-o", str(tmp_path / "n.html")).strip() == str(tmp_path / "n.html")
    page = (tmp_path / "n.html").read_text()
    assert "What differs: workers 4 -&gt; 3." in page
    assert "N over the runs" in page
    assert re.search(r"<title>-1\d\.\d %</title>", page)  # the span of the change


def search(day: int, users: str, **changes) -> Run:
    target = (("url", "http://127.0.0.1:5000/v3"),)
    measurement = replace(
        RESULT.measurements[0],
        title="token issue",
        capacity=Capacity(40.0 + day, 40.0, 50.0, 0.95),
        parameters=(("users", users), ("method", "meter")),
        trials=(),
        **changes,
    )
    return replace(
        RESULT,
        run_id=f"202611{day:02}-0300-ab12cd",
        kind="capacity",
        started_at=f"2026-11-{day:02}T03:00:00+00:00",
        environment=replace(RESULT.environment, target=target),
        measurements=(measurement,),
    )


def found(tmp_path, *runs: Run) -> tuple[CapacityTrend, ...]:
    with Store.open(tmp_path / "searches") as store:
        for run in runs:
            store.begin(run)
        return capacity_trends(store.past_searches())


def test_groups_of_one_title_say_in_what_their_loads_differ(tmp_path):
    ten, twenty = found(tmp_path, search(1, "20"), search(2, "10"), search(3, "10"))
    assert ten.subject == "http://127.0.0.1:5000/v3, users 10"
    assert twenty.subject == "http://127.0.0.1:5000/v3, users 20"
    assert ten.latest.rate_rps == 43.0
    page = html.render(report_of((ten, twenty), ()))
    head = page[page.index("<header>") : page.index("</header>")]
    assert "N of token issue" in head
    assert "http://127.0.0.1:5000/v3, users 10" in head
    assert "40 to 50" in head


def test_a_bound_is_not_drawn_as_n(tmp_path):
    at_least = search(2, "10")
    [one] = at_least.measurements
    bound = replace(one, capacity=Capacity(50.0, 50.0, None, 0.95))
    [trend] = found(tmp_path, search(1, "10"), replace(at_least, measurements=(bound,)))
    [section] = report_of((trend,), ()).sections
    lines = {line.name: line.data for line in section.charts[0].series}
    assert lines["N"] == ((1.0, 41.0),)
    assert lines["lower bound"] == ((1.0, 40.0), (2.0, 50.0))


def test_an_interrupted_search_is_no_group(tmp_path):
    interrupted = search(2, "10", status="interrupted")
    [trend] = found(tmp_path, search(1, "10"), interrupted)
    assert len(trend.runs) == 1


def test_each_workload_of_a_task_is_a_group_also_if_two_are_of_one_scenario(tmp_path):
    run = search(1, "10")
    [of_first] = run.measurements
    tasks = [(("task", f"task.yaml, workload {number} of 2"),) for number in (1, 2)]
    both = tuple(replace(of_first, parameters=one) for one in tasks)
    trends = found(tmp_path, replace(run, measurements=both))
    assert [trend.load for trend in trends] == [
        "task task.yaml, workload 1 of 2",
        "task task.yaml, workload 2 of 2",
    ]


def test_one_of_repeated_searches_belongs_to_those_of_its_title(tmp_path):
    one = search(2, "10")
    first = replace(one.measurements[0], title="token issue, search 1 of 3")
    [trend] = found(tmp_path, search(1, "10"), replace(one, measurements=(first,)))
    assert [run.run_id for run in trend.runs] == ["20261101-0300-ab12cd", "20261102-0300-ab12cd"]


def test_repeated_searches_of_a_run_count_once_as_combined(tmp_path):
    run = search(1, "10")
    [one] = run.measurements
    repeats = [replace(one, title=f"token issue, search {number} of 2") for number in (1, 2)]
    whole = replace(one, title="token issue, 2 searches", capacity=Capacity(45.0, 44.0, 46.0, 0.95))
    [trend] = found(tmp_path, replace(run, measurements=(*repeats, whole)))
    assert [run.capacity.rate_rps for run in trend.runs] == [45.0]


def test_two_loads_of_one_scenario_in_a_run_are_two_trends(tmp_path):
    run = search(1, "10")
    [one] = run.measurements
    other = replace(one, parameters=(("users", "200"), ("method", "meter")))
    assert len(found(tmp_path, replace(run, measurements=(one, other)))) == 2


def test_a_run_whose_body_is_damaged_is_left_out_and_named():
    runs = [
        Performed(
            f"run-{day}", 0, "s", "c", f"2026-11-{day:02}", "finished", 9, 9, *[1.0] * 6, True
        )
        for day in range(1, 4)
    ]
    task = made_runs.runs()["task"]

    def run_of(run_id: str) -> Run:
        if run_id == "run-3":
            raise EnvironmentUnusable("run run-3 is left out: its rows are damaged")
        return task

    said = []
    [trend] = workload_trends(runs, run_of, said.append)
    assert [run.run_id for run in trend.runs] == ["run-1", "run-2"]
    assert said == ["run run-3 is left out: its rows are damaged"]


def test_the_times_of_a_trend_have_the_digits_of_all_other_tables():
    times = (0.00031, 0.00041, 0.00045, 0.00048, 0.25, 0.00042)
    run = Performed("run-1", 0, "s", "c", "2026-11-01", "finished", 9, 9, *times, True)
    trends = workload_trends([run], lambda _: made_runs.runs()["task"])
    [section] = report_of((), trends).sections
    assert section.answer.sentence == "s: median 0.0004 s, one run."
    [row] = section.tables[0].rows
    assert row.cells[1:7] == ("0.0003", "0.0004", "0.0004", "0.0005", "0.250", "0.0004")


def test_a_trend_whose_last_run_had_no_success_has_no_median_in_seconds():
    run = Performed("run-1", 0, "s", "c", "2026-11-01", "finished", 9, 0, *(None,) * 6, False)
    trends = workload_trends([run], lambda _: made_runs.runs()["task"])
    [section] = report_of((), trends).sections
    assert section.answer.sentence == "s: no iteration succeeded, one run."
    assert section.answer.unit == ""


def without_n(day: int) -> Run:
    run = search(day, "10")
    lost = Capacity(None, None, None, 0.0, ("the service answers errors only",))
    return replace(run, measurements=(replace(run.measurements[0], capacity=lost),))


def test_of_a_long_history_it_is_said_how_much_was_searched():
    assert [*sentences((), 300, "N")] == ["N has no change point in 300 runs."]
    assert [*sentences((), 301, "N")] == ["N has no change point in the newest 300 of 301 runs."]


def test_a_load_without_any_n_has_a_page(tmp_path):
    page = html.render(report_of(found(tmp_path, without_n(1), without_n(2)), ()))
    assert "N of token issue: not found, latest of 2 runs" in page


def test_the_highest_rate_allowed_is_no_change_of_n(tmp_path):
    held = (Capacity(rate, rate, None, 0.95) for rate in [20.0] * 8 + [40.0] * 8)
    runs = (
        replace(run, measurements=(replace(run.measurements[0], capacity=one),))
        for day, one in enumerate(held, 1)
        for run in [search(day, "10")]
    )
    [trend] = found(tmp_path, *runs)
    assert (trend.known, trend.changes) == (0, ())
    [section] = report_of((trend,), ()).sections
    assert section.answer.sentence == (
        "N of token issue: at least 40.0 per second, latest of 16 runs."
    )


def test_a_range_in_the_last_run_is_what_the_sentence_says(tmp_path):
    run = search(2, "10")
    ranged = Capacity(None, 20.0, 30.0, 0.95, ("known to within 20 % only",))
    last = replace(run, measurements=(replace(run.measurements[0], capacity=ranged),))
    [section] = report_of(found(tmp_path, search(1, "10"), last), ()).sections
    assert section.answer.sentence == "N of token issue: 20 to 30 per second, latest of 2 runs."
    assert (section.answer.text, section.answer.unit) == ("20 to 30", "per second")


def test_a_search_that_did_not_end_is_no_part_of_a_trend(tmp_path):
    killed = search(3, "10")
    begun = replace(killed.measurements[0], status="running", capacity=None)
    [group] = found(tmp_path, search(2, "10"), replace(killed, measurements=(begun,)))
    assert len(group.runs) == 1


def test_a_workload_without_a_load_is_dated_by_its_run(tmp_path):
    failed = workload(SAMPLES[0, 1], status="failed", failure="no such role", trials=())
    with Store.open(tmp_path) as store:
        store.begin(replace(RESULT, kind="task", measurements=(failed,)))
        [entry] = store.history()
    assert entry.started_at == RESULT.started_at


def test_equal_workloads_of_one_task_are_one_run() -> None:
    def performed(run_id: str, position: int, median_s: float) -> Performed:
        span = (0.1, median_s, 0.2, 0.2, 0.2, 0.1)
        return Performed(run_id, position, "s", "c", "", "finished", 9, 9, *span, None)

    runs = [performed(f"run-{one}", two, 0.1 * (1 + two)) for one in (1, 2) for two in (0, 1, 2)]
    trend = Trend("c", "s", TaskWorkload(), tuple(runs))
    assert (trend.count, trend.known, len(trend.runs)) == (2, 2, 6)
