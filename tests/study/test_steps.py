"""Studies of steps: stretches of load one after the other in each cell."""

import io
import json
from dataclasses import replace

import pytest
from study_files import STEPS, result_with, stretch_of

from loadstone.report import terminal
from loadstone.report.console import console
from loadstone.report.data import as_data
from loadstone.report.sections import workload
from loadstone.result.outcome import exit_code
from loadstone.store.store import Store
from loadstone.study import journal
from loadstone.study.cell import steps_groups
from loadstone.study.figure import of_trial
from loadstone.study.model import Figure
from loadstone.study.order import turns
from loadstone.study.outcomes import outcome_of
from loadstone.study.read import StudySource
from loadstone.study.section import report_of
from loadstone.study.table import TurnOutcome, differences, rows

STUDY = StudySource("mine.yaml", STEPS).study(quick=False)
WARM_UP = stretch_of(10, 1.0)


def measured(validated):
    """`validated`: of each cell, the seconds that 500 validations took."""
    found = []
    for turn in turns(STUDY, 1):
        seconds = validated[turn.cell.levels[0][1]]
        stretches = (WARM_UP, stretch_of(200, 20.0), stretch_of(500, seconds))
        found.append(TurnOutcome(turn, result_with(f"run-{turn.number}", stretches)))
    return found


def test_each_timed_step_of_each_cell_has_a_row():
    found = rows(STUDY, measured({"1": 10.0, "2": 5.0}))
    assert [(str(one.cell), one.step, one.estimate.value) for one in found] == [
        ("workers 1", "create serially", 10.0),
        ("workers 1", "validate at 20", 50.0),
        ("workers 2", "create serially", 10.0),
        ("workers 2", "validate at 20", 100.0),
    ]
    assert [one.published.value if one.published else None for one in found] == [
        None, None, None, 42,
    ]  # fmt: skip


def test_levels_are_compared_step_by_step():
    found = differences(STUDY, measured({"1": 10.0, "2": 5.0}))
    assert [str(one) for one in found] == [
        # Completions without any scatter: the interval has no width.
        "2/1 = 1 [1, 1], 1 pair (create serially)",
        "2/1 = 2 [2, 2], 1 pair (validate at 20)",
    ]


def test_every_figure_has_its_unit():
    trial = stretch_of(100, 20.0).trials[0]
    shown = {figure: (of_trial(trial, figure).value, figure.unit) for figure in Figure}
    assert shown[Figure.RATE] == (5.0, "per s")
    assert shown[Figure.TOTAL] == (20.0, "s")
    assert shown[Figure.MEAN] == shown[Figure.P99] == (200.0, "ms")


def test_a_steady_stretch_has_a_narrow_interval_and_a_short_one_none():
    long, short = (of_trial(stretch_of(100, s).trials[0], Figure.RATE) for s in (20.0, 1.0))
    assert (long.low, long.high, long.confidence) == (pytest.approx(5.0), pytest.approx(5.0), 0.95)
    assert (short.value, short.low, short.high) == (100.0, None, None)
    assert of_trial(stretch_of(100, 20.0).trials[0], Figure.P99).low is None


@pytest.mark.parametrize(
    ("stretch", "line"),
    [
        (stretch_of(500, 10.0, failed=3), "validate at 20: 3 failed"),
        (stretch_of(120, 10.0), "validate at 20: only 120 of 500 iterations ended in 600 s; a "
         "higher at_most_s gives them time"),
    ],
)  # fmt: skip
def test_a_step_that_fell_short_has_no_figure_and_says_why(stretch, line):
    turn = turns(STUDY, 1)[0]
    run = result_with("run-1", (WARM_UP, stretch_of(200, 20.0), stretch))
    create, validate = (r for r in rows(STUDY, [TurnOutcome(turn, run)]) if r.cell == turn.cell)
    assert (create.estimate.value, validate.estimate) == (10.0, None)
    assert (create.failures, validate.failures) == ((), (line,))


def test_a_figure_that_was_not_counted_is_no_figure_and_says_why():
    text = STEPS.replace("figure: rate", "figure: keystone")
    study = StudySource("mine.yaml", text).study(quick=False)
    turn = turns(study, 1)[0]
    run = result_with("run-1", (WARM_UP, stretch_of(200, 20.0), stretch_of(500, 10.0)))
    create, _ = (r for r in rows(study, [TurnOutcome(turn, run)]) if r.cell == turn.cell)
    why = "requests to Keystone were not counted: no compute cloud"
    assert (create.estimate, create.failures) == (None, (f"create serially: {why}",))


def test_a_step_that_fell_short_takes_no_certainty_from_the_others(tmp_path):
    begun = journal.begin(tmp_path, StudySource("mine.yaml", STEPS), quick=False, seed=1)
    short = result_with("run-1", (WARM_UP, stretch_of(200, 20.0), stretch_of(120, 10.0)))
    found = [TurnOutcome(turn, short, None, 4) for turn in turns(STUDY, 1)]
    create, validate, *_ = as_data(report_of(begun, found))["measurements"]
    assert (create["certainty"]["exit_code"], create["failures"]) == (0, [])
    assert create["answer"]["sentence"] == "workers 1, create serially: rate 10.0 per s"
    assert validate["certainty"]["exit_code"] == 4


def test_a_warm_up_that_fell_short_costs_no_figure_and_is_said(tmp_path):
    turn = turns(STUDY, 1)[0]
    stretches = (stretch_of(9, 1.0, failed=1), stretch_of(200, 20.0), stretch_of(500, 10.0))
    run = result_with("run-1", stretches)
    lines = [row for row in rows(STUDY, [TurnOutcome(turn, run)]) if row.cell == turn.cell]
    assert [row.estimate.value for row in lines] == [10.0, 50.0]
    assert {row.failures for row in lines} == {("issue at 1 (not timed): 1 failed",)}
    with Store.open(tmp_path) as store:
        assert outcome_of(turn, run, STUDY.measurement, store).exit_code == 0
        failed = replace(run, measurements=(*stretches[:2], stretch_of(500, 10.0, failed=3)))
        assert outcome_of(turn, failed, STUDY.measurement, store).exit_code == 1


def test_a_run_that_a_kill_cut_short_has_the_steps_that_ended():
    turn = turns(STUDY, 1)[0]
    run = result_with("run-1", (WARM_UP, stretch_of(200, 20.0)))
    create, validate = (r for r in rows(STUDY, [TurnOutcome(turn, run)]) if r.cell == turn.cell)
    assert (create.found, validate.found) == (1, 0)


def test_table_and_data_name_the_figure_and_its_unit(tmp_path):
    begun = journal.begin(tmp_path, StudySource("mine.yaml", STEPS), quick=False, seed=1)
    found = measured({"1": 10.0, "2": 5.0})
    out = io.StringIO()
    terminal.show(report_of(begun, found), console(out))
    assert "rate per s" in out.getvalue()
    assert "validate at 20" in out.getvalue()
    data = json.loads(json.dumps(as_data(report_of(begun, found)), allow_nan=False))
    assert data["figure"] == {"name": "rate", "unit": "per s"}
    assert [row["step"] for row in data["measurements"]] == [
        "create serially",
        "validate at 20",
    ] * 2


def test_steps_run_in_their_order_and_the_untimed_ones_are_marked():
    steps = steps_groups(STUDY.measurement)[0].measurements
    assert [step.policy.request.load.iterations for step in steps] == [10, 200, 500]
    assert [dict(step.record.parameters)["step"] for step in steps] == [
        "issue at 1 (not timed)",
        "create serially",
        "validate at 20",
    ]
    assert {step.generator.limits.max_connections for step in steps} == {20}


def test_a_stretch_says_what_came_of_it_and_not_that_no_capacity_was_found():
    answer = workload.answer(stretch_of(100, 20.0))
    assert answer.sentence == "X: 100 of 100 succeeded, 5.00 a second, 200 ms each on average."


def test_the_exit_code_of_stretches_is_that_of_their_errors():
    assert exit_code(result_with("run-1", (stretch_of(100, 20.0),))) == 0
    assert exit_code(result_with("run-1", (stretch_of(100, 20.0, failed=9),))) == 1
