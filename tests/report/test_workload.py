"""Tests of the report of a load that is not a search."""

from dataclasses import replace

from made_runs import runs
from made_stats import nothing_ended

from loadstone.report import figures
from loadstone.report.sections import workload
from loadstone.report.sections.run import report_of
from loadstone.result.model import Measurement

SEARCHED = runs()["search"].measurements[0]
TRIAL = SEARCHED.trials[0]


def of(**changes) -> Measurement:
    loaded = replace(SEARCHED, policy="fixed", capacity=None, trials=(TRIAL,))
    return replace(loaded, **changes)


def test_times_are_left_out_where_nothing_succeeded():
    failed = of(trials=(replace(TRIAL, stats=nothing_ended(TRIAL.stats)),))
    assert workload.answer(failed).sentence == "Token issue: 0 of 76 succeeded."
    assert [one.label for one in workload.facts(failed)] == ["load"]


def test_the_load_of_a_closed_loop_is_what_was_in_flight():
    closed = of(
        trials=(replace(TRIAL, rate_rps=None),), parameters=(("load", "8 at once for 10 s"),)
    )
    [load] = [one.text for one in workload.facts(closed) if one.label == "load"]
    assert load == "8 at once for 10 s"


def test_workloads_of_one_scenario_are_told_apart_in_the_overview():
    one = runs()["task"].measurements[0]
    alike = [replace(one, subtask=subtask) for subtask in ("small", "large", "large")]
    run = replace(runs()["task"], measurements=tuple(alike))
    rows = report_of(run).overview.rows
    scenario = one.scenario
    assert [row.cells[0] for row in rows] == [
        f"{scenario}: small",
        f"{scenario}: large",
        f"{scenario}: large (2)",
    ]


def test_what_happened_once_is_told_in_the_singular():
    task = runs()["task"].measurements[0]
    [trial] = task.trials
    once = replace(trial, hook_runs=trial.hook_runs[1:], stats=replace(trial.stats, cut_off=1))
    shown = replace(task, trials=(once,))
    assert "acted 1 time" in [one.text for one in workload.facts(shown)]
    said = [one.text for one in workload.described(shown)]
    assert "Hooks acted 1 time, none failed." in said
    total = replace(trial.stats.total, ok=1, count=1)
    only = replace(task, trials=(replace(trial, stats=replace(trial.stats, total=total)),))
    assert workload.described(only)[0].text.startswith("1 of 1 iteration succeeded,")
    fixed = replace(task, workload=None, parameters=(("iterations", "1"), ("at once", "1")))
    assert workload.load_in_words(fixed) == "1 iteration, 1 at a time"
    assert (
        "Cut off when the load ended, counted neither as succeeded nor as failed: 1 iteration."
        in said
    )


def test_steps_without_an_sla_have_none_that_held():
    rising = runs()["steps"].measurements[0]
    free = replace(rising, trials=tuple(replace(one, checks=()) for one in rising.trials))
    [section] = report_of(replace(runs()["steps"], measurements=(free,))).sections
    assert section.answer.sentence.endswith("in 2 steps: it has no SLA.")
    assert section.certainty.text == "valid"
    [table] = section.tables
    assert {row.cells[-1] for row in table.rows} == {figures.MISSING}
