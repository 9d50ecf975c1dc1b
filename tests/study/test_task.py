"""Studies of a Rally task: each of its workloads has a row."""

import json
from dataclasses import replace

import numpy as np
import pytest
from study_files import result_with

from loadstone.analysis.model import NOT_JUDGED, Durations, Stats, Ticks, Trial
from loadstone.analysis.sla import Check
from loadstone.errors import InvalidInput
from loadstone.report.figures import MISSING
from loadstone.result.model import Measurement
from loadstone.result.task_workload import TaskWorkload
from loadstone.study.cell import config_of, task_of
from loadstone.study.first_failure import first_failures
from loadstone.study.order import turns
from loadstone.study.read import StudySource
from loadstone.study.table import TurnOutcome, differences, rows
from loadstone.study.wording import cells, missing_ratios

TASK = """\
title: A task
factors: {workers: [1, 2]}
measurement:
  kind: task
  figure: p95
  task:
    Authenticate.keystone:
      - runner: {type: constant, times: 20, concurrency: 2}
        context: {users: {tenants: 1, users_per_tenant: 2}}
        sla: {failure_rate: {max: 0}}
    KeystoneBasic.create_user:
      - runner: {type: serial, times: 5}
published:
  - {cell: {workers: 2}, step: 1. Authenticate.keystone, value: 485}
"""
NO_TICKS = Ticks(*[np.zeros(0, np.int64)] * 4)
STUDY = StudySource("mine.yaml", TASK).study(quick=False)
TOTAL = Durations("total", 20, 20, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.25)
SHOWN = Measurement(
    "Authenticate.keystone",
    "t",
    policy="fixed",
    status="finished",
    workload=TaskWorkload(),
    trials=(Trial(1, None, "", 4.0, Stats(TOTAL, TOTAL, 4.0, 5.0), NO_TICKS, NOT_JUDGED),),
)


def test_each_workload_is_a_row_in_the_unit_of_its_figure():
    assert STUDY.steps == ("1. Authenticate.keystone", "2. KeystoneBasic.create_user")
    assert STUDY.figure == ("p95", "ms")
    turn = next(one for one in turns(STUDY, 1) if one.cell.levels[0][1] == "2")
    failed = replace(SHOWN, trials=(), failure="no such role")
    run = result_with("run-1", (SHOWN, failed))
    issue, create = (r for r in rows(STUDY, [TurnOutcome(turn, run)]) if r.cell == turn.cell)
    assert (issue.estimate.value, issue.published.value) == (400.0, 485)
    assert create.estimate is None
    assert create.failures == ("2. KeystoneBasic.create_user: no such role",)


def test_what_is_carried_out_is_the_task_of_the_file():
    (first, *_) = task_of(STUDY.measurement).subtasks
    assert first.workloads[0].scenario.name == "Authenticate.keystone"
    assert json.loads(STUDY.measurement.text).keys() == {
        "Authenticate.keystone",
        "KeystoneBasic.create_user",
    }


def test_a_mistake_in_the_task_is_told_at_its_place_in_the_study():
    with pytest.raises(InvalidInput, match=r"mine.yaml:6: .*Authenticate.keyston"):
        StudySource(
            "mine.yaml", TASK.replace("Authenticate.keystone:", "Authenticate.keyston:")
        ).study(quick=False)


RISING = """\
title: Until one fails
factors: {workers: [1]}
measurement:
  kind: task
  figure: success
  until_failure: true
  task:
    Authenticate.keystone:
      - {runner: {type: constant, times: 20, concurrency: 2}, sla: {failure_rate: {max: 0}}}
      - {runner: {type: constant, times: 20, concurrency: 4}, sla: {failure_rate: {max: 0}}}
      - {runner: {type: constant, times: 20, concurrency: 8}, sla: {failure_rate: {max: 0}}}
"""


def with_failures(count: int) -> Measurement:
    [trial] = SHOWN.trials
    total = replace(TOTAL, ok=20 - count)
    check = Check("failure_rate", not count, f"{5 * count} %")
    stats = replace(trial.stats, total=total)
    return replace(SHOWN, trials=(replace(trial, stats=stats, checks=(check,)),))


def test_a_study_until_one_fails_says_where_success_fell():
    study = StudySource("mine.yaml", RISING).study(quick=False)
    [turn] = turns(study, 1)
    assert config_of(study, "s", turn, "").ends_at_broken_criteria
    run = result_with("run-1", (with_failures(0), with_failures(5)))
    outcome = TurnOutcome(turn, run)
    assert [cells(row)[2] for row in rows(study, [outcome])] == ["100", "75.0", MISSING]
    *_, last = first_failures(study, [outcome])
    assert last == "workers 1, repeat 1: success fell at 2. Authenticate.keystone, 4 at once"
    held = TurnOutcome(turn, result_with("run-1", (with_failures(0),) * 3))
    *_, last = first_failures(study, [held])
    assert "no failure up to 3. Authenticate.keystone, 8 at once" in last


SHARES = """\
title: Shares
repeats: 4
factors: {workers: [1, 2]}
compare: [{factor: workers, levels: [2, 1]}]
measurement:
  kind: task
  figure: success
  task:
    Authenticate.keystone:
      - {runner: {type: constant, times: 20, concurrency: 2}}
"""


@pytest.mark.parametrize(
    ("failed", "words"),
    [
        ([20, 20, 0, 0], ["a figure is 0 in 2 of 4 repeats, so that the repeats have no ratio"]),
        ([10, 10, 10, 10], []),
    ],
)
def test_repeats_with_a_figure_of_0_are_not_left_out_of_a_ratio(failed, words):
    """Those of the other repeats were the same in both cells."""
    study = StudySource("mine.yaml", SHARES).study(quick=False)
    found = []
    for turn in turns(study, 1):
        count = failed[turn.repeat - 1] if turn.cell.level("workers") == "2" else 0
        one = with_failures(count)
        [trial] = one.trials
        run = result_with(
            f"run-{turn.number}", (replace(one, trials=(replace(trial, checks=()),)),)
        )
        found.append(TurnOutcome(turn, run))
    assert len(differences(study, found)) == 1 - len(words)
    said = list(missing_ratios(study, found))
    assert said == [f"1 / 2 (1. Authenticate.keystone): {one}." for one in words]
