"""Studies that count statements, and studies that name what saturates."""

from dataclasses import replace

import pytest
from study_files import STEPS, result_with, stretch_of

from loadstone.diagnosis.bottleneck import Case, name_bottleneck
from loadstone.diagnosis.demand import Observation, Setup
from loadstone.diagnosis.resources import Resources
from loadstone.study import wording
from loadstone.study.counted import count_lines
from loadstone.study.order import turns
from loadstone.study.read import StudySource
from loadstone.study.table import TurnOutcome, rows

FIGURES = (
    ("selects_per_request", 12.0),
    ("inserts_per_request", 1.0),
    ("commits_per_request", 1.0),
    ("cache_gets_per_request", 16.0),
)


def watched_with(figures):
    """Return the resources of a trial, with these figures."""
    seen = Observation(10.0, 100, (), figures)
    verdict = name_bottleneck(Case(seen, Setup()))
    return Resources(seen, verdict.bottleneck, verdict.findings)


def outcomes(study, figures):
    """One outcome a cell, whose steps were watched with these figures."""
    found = watched_with(figures)
    every = []
    for turn in turns(study, 1):
        steps = [stretch_of(10, 1.0), stretch_of(200, 20.0), stretch_of(500, 10.0)]
        watched = tuple(
            replace(one, trials=tuple(replace(trial, resources=found) for trial in one.trials))
            for one in steps
        )
        every.append(TurnOutcome(turn, result_with(f"run-{turn.number}", watched)))
    return every


def test_statements_of_a_load_that_is_cut_short_are_counted():
    text = STEPS.replace("figure: rate", "figure: statements")
    text = text.replace("iterations: 500", "iterations: 9000")
    study = StudySource("mine.yaml", text).study(quick=False)
    found = rows(study, outcomes(study, FIGURES))
    assert [(row.estimate.value, row.failures) for row in found] == [(13.0, ())] * 4


def test_no_statements_at_all_is_a_count():
    text = STEPS.replace("figure: rate", "figure: statements")
    study = StudySource("mine.yaml", text).study(quick=False)
    found = rows(study, outcomes(study, (("selects_per_request", 0.0),)))
    assert [(row.estimate.value, row.failures) for row in found] == [(0.0, ())] * 4


def test_statements_are_those_that_read_or_write_rows():
    study = StudySource("mine.yaml", STEPS.replace("figure: rate", "figure: statements")).study(
        quick=False
    )
    found = outcomes(study, FIGURES)
    assert [row.estimate.value for row in rows(study, found)] == [13.0] * 4
    (first, *_) = count_lines(study, found)
    assert first == (
        "workers 1, create serially: 12.0 SELECT, 1.00 INSERT, 1.00 COMMIT, 16.0 cache gets "
        "an iteration"
    )


def test_what_the_first_requests_of_a_search_cost_is_not_what_an_iteration_costs():
    study = StudySource("mine.yaml", STEPS).study(quick=False)
    (turn, *_) = turns(study, 1)
    loads = ((6, 28.0), (600, 2.0), (60, 3.0))
    trials = tuple(
        replace(
            stretch_of(ok, 5.0).trials[0],
            resources=watched_with((("selects_per_request", selects),)),
        )
        for ok, selects in loads
    )
    search = replace(stretch_of(10, 1.0), trials=trials)
    found = TurnOutcome(turn, result_with("run-1", (stretch_of(10, 1.0), search)))
    (line,) = count_lines(study, [found])
    assert line.endswith("create serially: 2.00 SELECT an iteration")


def test_without_counters_there_is_no_figure_and_the_reason_is_said():
    study = StudySource("mine.yaml", STEPS.replace("figure: rate", "figure: statements")).study(
        quick=False
    )
    (row, *_) = rows(study, outcomes(study, ()))
    assert row.estimate is None
    assert "MariaDB" in row.failures[0]


@pytest.mark.parametrize("asked", [True, False])
def test_a_study_names_what_saturates_where_its_file_asks_for_it(asked):
    text = STEPS + ("which_saturates: true\n" if asked else "")
    study = StudySource("mine.yaml", text).study(quick=False)
    words, numbers = wording.heads(study)
    assert ("which saturates?" in words) is asked
    (row, *_) = rows(study, outcomes(study, FIGURES))
    shown = wording.cells(row)
    assert len(shown) == len(words) + len(numbers)
    assert ("no-bottleneck" in shown) is asked
