"""`loadstone study run` of simulated labs: its table, cells that fail, pauses, resuming."""

import json
from collections.abc import Mapping
from contextlib import nullcontext
from statistics import fmean

import pytest
from binomial import most_failures
from simulator.service import Limiter, Service
from virtual import VirtualCommandLine

from loadstone.errors import EnvironmentUnusable, MeasurementInvalid

PAUSE_S = 600
STUDY = f"""\
title: Workers
settings: {{hash-rounds: 4}}
factors: {{workers: [1, 2]}}
repeats: 3
pause_s: {PAUSE_S}
measurement: {{scenario: issue, budget_s: 40, users: 0}}
pairs_in_turns: 0
compare:
  - {{factor: workers, levels: [1, 2]}}
"""
IN_TURNS = """\
title: Workers in turns
factors: {workers: [1, 2]}
measurement: {scenario: issue, budget_s: 40, users: 0}
pairs_in_turns: 12
compare:
  - {factor: workers, levels: [1, 2]}
"""
STEPS = """\
title: Steps
factors: {workers: [1, 2]}
measurement:
  kind: steps
  figure: rate
  users: 0
  steps:
    - {name: one at a time, scenario: issue, iterations: 100}
    - {name: four at a time, scenario: issue, concurrency: 4, iterations: 200}
"""
TASK = """\
title: A task
factors: {workers: [1, 2]}
measurement:
  kind: task
  task:
    Authenticate.keystone:
      - runner: {type: constant, times: 100, concurrency: 4}
        sla: {max_avg_duration: 0.15}
"""
FAULTS = """\
title: Overload
factors: {workers: [2]}
measurement:
  kind: faults
  do: ["overload 4x for 10 seconds"]
  figures: [goodput_rps, mttr_s]
  rate_rps: 16
  times: 2
  baseline_s: 5
  observe_s: 40
"""
REFERENCE = """\
title: The reference service
factors: {workers: [1]}
measurement: {scenario: issue, budget_s: 40, users: 0}
reference: {words: "loadstone serve"}
"""


def by_workers(settings: Mapping[str, str]) -> Service:
    """Return a lab of which each worker serves 20 a second; `loadstone serve` has four."""
    workers = int(settings.get("workers", 4))
    return Service(workers=workers, capacity_rps=20.0 * workers, variation=0.2)


def without_two(settings: Mapping[str, str]) -> Service:
    """Return a lab of which no second worker starts."""
    if settings["workers"] == "2":
        raise EnvironmentUnusable("the second worker does not start")
    return by_workers(settings)


def begin(loadstone: VirtualCommandLine, text: str) -> tuple[str, ...]:
    (loadstone.home / "study.yaml").write_text(text)
    return ("study", "run", "study.yaml", "--json=-")


def test_the_table_has_n_of_each_cell_and_the_ratio_of_two(loadstone: VirtualCommandLine) -> None:
    missed = 0
    for seed in range(3):
        ended = loadstone(*begin(loadstone, STUDY), lab=by_workers, seed=seed)
        assert ended.code == 0
        one, two = ended.data["measurements"]
        assert (one["levels"], two["levels"]) == ({"workers": "1"}, {"workers": "2"})
        assert one["value"] == pytest.approx(20.0, rel=0.05)
        assert two["value"] == pytest.approx(40.0, rel=0.05)
        assert one["repeats"] == len(one["run_ids"]) == 3
        [difference] = ended.data["differences"]
        assert difference["answer"] == "faster"
        missed += not difference["low"] <= 2.0 <= difference["high"]
        # Pauses are between two turns, of which there are six.
        assert 5 * PAUSE_S < ended.seconds < 5 * PAUSE_S + 6 * 60
    assert missed <= most_failures(3, 0.05)


def test_a_cell_that_fails_is_named_and_measured_when_the_study_goes_on(
    loadstone: VirtualCommandLine,
) -> None:
    ended = loadstone(*begin(loadstone, STUDY), lab=without_two)
    assert ended.code == 3
    one, two = ended.data["measurements"]
    assert (one["failures"], len(one["run_ids"])) == ([], 3)
    assert (two["failures"], two["value"]) == (["the second worker does not start"], None)
    assert ended.data["missing"] == 3
    words = ("study", "run", f"--resume={ended.data['study_id']}", "--json=-")
    again = loadstone(*words, lab=by_workers)
    assert (again.code, again.data["missing"]) == (0, 0)
    now, measured = again.data["measurements"]
    assert now["run_ids"] == one["run_ids"]
    assert measured["value"] == pytest.approx(40.0, rel=0.05)


def test_a_resumed_study_keeps_its_tags(loadstone: VirtualCommandLine) -> None:
    began = loadstone(*begin(loadstone, STUDY), "--tag=branch=main", lab=without_two)
    words = ("study", "run", f"--resume={began.data['study_id']}", "--json=-")
    assert loadstone(*words, lab=by_workers).code == 0
    runs = loadstone("results", "list", "--json=-", "--tag=branch=main").data
    assert len(runs) == 6


def test_a_turn_whose_generator_was_late_is_measured_once_more(
    loadstone: VirtualCommandLine,
) -> None:
    ended = loadstone(*begin(loadstone, STUDY), lab=by_workers, lag_s=0.1)
    assert ended.code == 4
    assert ended.stderr.count("once more, for the load generator was the limit") == 6
    assert [row["value"] for row in ended.data["measurements"]] == [None, None]


def test_steps_have_the_rates_that_the_response_time_law_says(
    loadstone: VirtualCommandLine,
) -> None:
    for seed in range(4):
        ended = loadstone(*begin(loadstone, STEPS), lab=by_workers, seed=seed)
        assert ended.code == 0
        rates = {
            (row["levels"]["workers"], row["step"]): row["value"]
            for row in ended.data["measurements"]
        }
        assert list(rates.values()) == pytest.approx(
            [
                {"one at a time": 20.0, "four at a time": 20.0 * int(workers)}[step]
                for workers, step in rates
            ],
            rel=0.07,
        )


def test_the_rules_of_a_task_decide_the_exit_code(loadstone: VirtualCommandLine) -> None:
    # Four at a time take 200 ms of one worker, 100 ms of two.
    ended = loadstone(*begin(loadstone, TASK), lab=by_workers)
    assert ended.code == 1
    single = TASK.replace("[1, 2]", "[2]")
    assert loadstone(*begin(loadstone, single), lab=by_workers).code == 0


def test_faults_are_a_measurement_of_a_study(
    loadstone: VirtualCommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("loadstone.faults.watcher.watched", lambda *_: nullcontext())
    ended = loadstone(*begin(loadstone, FAULTS), lab=by_workers)
    assert ended.code == 0
    found = {row["step"]: row["value"] for row in ended.data["measurements"]}
    # 64/s of which 40/s are served for 10 s; then 24/s more are served than come.
    assert list(found.values()) == [pytest.approx(40.0, rel=0.1), pytest.approx(20.0, rel=0.15)]


def test_the_reference_service_is_a_cell(loadstone: VirtualCommandLine) -> None:
    ended = loadstone(*begin(loadstone, REFERENCE), lab=by_workers)
    assert ended.code == 0
    values = [row["value"] for row in ended.data["measurements"]]
    assert sorted(values) == pytest.approx([20.0, 80.0], rel=0.05)
    assert json.loads(ended.stdout)["missing"] == 0


def test_a_deployment_that_is_not_as_expected_is_not_measured(
    loadstone: VirtualCommandLine,
) -> None:
    text = REFERENCE.replace("{workers: [1]}", "{server: {one: {expect: {password hash: bcrypt}}}}")
    ended = loadstone(*begin(loadstone, text.partition("reference:")[0]), lab=by_workers)
    assert ended.code == 3
    [row] = ended.data["measurements"]
    assert row["failures"] == ["password hash: expected bcrypt, and the target does not state it"]


def test_a_search_after_a_warm_up_is_the_figure(loadstone: VirtualCommandLine) -> None:
    text = STUDY.replace("budget_s: 40", "budget_s: 40, warm_up_s: 20").replace("repeats: 3", "")
    text = f"{text}costs: true\n"
    ended = loadstone(*begin(loadstone, text), lab=by_workers)
    assert ended.code == 0
    one, two = ended.data["measurements"]
    assert one["value"] == pytest.approx(20.0, rel=0.05)
    assert two["value"] == pytest.approx(40.0, rel=0.05)
    assert (one["cpu_ms"], one["memory_mb"]) == (None, None)  # nothing is watched here
    assert one["p99_ms"] > 50.0  # the service takes that long alone
    shown = loadstone("study", "show", ended.data["study_id"])
    assert "CPU ms" in shown.stdout


def test_compared_cells_are_loaded_in_turns(loadstone: VirtualCommandLine) -> None:
    missed, ratios = 0, []
    for seed in range(3):
        ended = loadstone(*begin(loadstone, IN_TURNS), lab=by_workers, seed=seed)
        assert (ended.code, ended.data["missing"]) == (0, 0)
        [found] = ended.data["differences"]
        assert (found["answer"], found["unit"]) == ("faster", "pairs in turns")  # of one repeat
        ratios.append(found["ratio"])
        missed += not found["low"] <= 2.0 <= found["high"]
    assert missed <= most_failures(3, 0.05)
    assert fmean(ratios) == pytest.approx(2.0, rel=0.04)
    again = loadstone("compare", *found["run_ids"], "--json=-")
    throughput = again.data["measurements"][0]["metrics"]["throughput"]
    assert (throughput["ratio"], throughput["low"]) == (found["ratio"], found["low"])
    guarded = loadstone("compare", *found["run_ids"], "--fail-if-slower=10%")
    assert "in turns, where a limiter of requests may not show" in " ".join(guarded.stdout.split())
    page = loadstone("study", "show", ended.data["study_id"]).stdout
    assert f"loadstone report {found['run_ids'][0]}" in page


def test_cells_that_cannot_be_loaded_in_turns_keep_the_ratio_of_their_repeats(
    loadstone: VirtualCommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise MeasurementInvalid("no core is free")

    text = IN_TURNS.replace("pairs_in_turns", "repeats: 3\npairs_in_turns")
    with monkeypatch.context() as patched:
        patched.setattr("loadstone.study.run.measure_comparison", refuse)
        ended = loadstone(*begin(loadstone, text), lab=by_workers)
    [found] = ended.data["differences"]
    assert (ended.code, found["unit"], found["answer"]) == (4, "pairs", "faster")
    shown = loadstone("study", "show", ended.data["study_id"]).stdout
    assert "2 / 1, in turns: no core is free" in " ".join(shown.split())
    assert "1 of 1 ratios were not measured in turns" in " ".join(shown.split())
    words = ("study", "run", f"--resume={ended.data['study_id']}", "--json=-")
    again = loadstone(*words, lab=by_workers)
    [now] = again.data["differences"]
    assert (again.code, now["unit"]) == (0, "pairs in turns")
    assert [row["run_ids"] for row in again.data["measurements"]] == [
        row["run_ids"] for row in ended.data["measurements"]
    ]


def test_cells_that_are_equally_fast_show_no_difference_in_turns(
    loadstone: VirtualCommandLine,
) -> None:
    """Throughput depends on the time of a single request, whose error is in the scatter."""

    def alike(_: Mapping[str, str]) -> Service:
        return Service(workers=4, capacity_rps=40.0, variation=0.2)

    text = IN_TURNS.replace("pairs_in_turns: 12", "pairs_in_turns: 24")
    for seed in range(4):
        ended = loadstone(*begin(loadstone, text), lab=alike, seed=seed)
        [found] = ended.data["differences"]
        assert found["answer"] not in ("faster", "slower")
        assert found["ratio"] == pytest.approx(1.0, abs=0.02)


def test_threads_that_wait_are_busy_in_turns(loadstone: VirtualCommandLine) -> None:
    """Each thread serves one request at a time, of which most is waiting."""

    def waiting(settings: Mapping[str, str]) -> Service:
        threads = int(settings["threads"])
        return Service(workers=threads, capacity_rps=10.0 * threads, variation=0.2)

    text = IN_TURNS.replace("{workers: [1, 2]}", "{threads: [8, 16]}")
    text = text.replace("factor: workers, levels: [1, 2]", "factor: threads, levels: [8, 16]")
    ended = loadstone(*begin(loadstone, f"{text}settings: {{workers: 1}}\n"), lab=waiting)
    [found] = ended.data["differences"]
    assert (found["unit"], found["answer"]) == ("pairs in turns", "faster")
    assert found["low"] <= 2.0 <= found["high"]


@pytest.mark.parametrize("repeats", [1, 3])
def test_a_limiter_that_turns_do_not_reach_leaves_the_ratio_of_n(
    loadstone: VirtualCommandLine, repeats: int
) -> None:
    """It lets through in turns what it does not over time: each side works half of the time."""

    def limited(settings: Mapping[str, str]) -> Service:
        limiter = Limiter(45.0, delays=True) if settings["workers"] == "2" else None
        return Service(workers=4, capacity_rps=100.0, variation=0.2, limiter=limiter)

    text = IN_TURNS.replace("budget_s: 40", "budget_s: 60")
    text = text.replace("pairs_in_turns", f"repeats: {repeats}\npairs_in_turns")
    ended = loadstone(*begin(loadstone, text), lab=limited)
    [found] = ended.data["differences"]
    assert (found["unit"], found["count"]) == ("pairs", repeats)
    assert found["ratio"] == pytest.approx(0.45, rel=0.05)
    assert found["answer"] == ("unknown" if repeats == 1 else "slower")
    shown = " ".join(loadstone("study", "show", ended.data["study_id"]).stdout.split())
    assert "2 / 1, in turns: the ratio is " in shown
    assert "did not reach what limits N, such as a limiter of requests" in shown
    assert "the ratio of N counts." in shown


def test_why_a_pair_of_cells_does_not_start_is_kept_without_secrets(
    loadstone: VirtualCommandLine,
) -> None:
    began = []

    def refused_in_turns(settings: Mapping[str, str]) -> Service:
        began.append(settings)
        if len(began) > 2:  # after the two cells
            raise EnvironmentUnusable(f"no such user: {settings['conf.ldap.password']}")
        return by_workers(settings)

    text = f"{IN_TURNS}settings: {{conf.ldap.password: hunter2hunter2}}\n"
    ended = loadstone(*begin(loadstone, text), lab=refused_in_turns)
    assert ended.code == 3
    [journal] = loadstone.home.rglob("cells.jsonl")
    kept = journal.read_text()
    assert "no such user: " in kept
    assert "hunter2hunter2" not in kept + ended.stdout + ended.stderr
