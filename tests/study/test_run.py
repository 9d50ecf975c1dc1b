import json
import sqlite3
from dataclasses import replace

import pytest
from study_files import TWO_BY_TWO, limited, result_of, stretch_of

from loadstone.analysis.model import Cause
from loadstone.errors import EnvironmentUnusable, InvalidInput
from loadstone.keystone.journal import JOURNAL
from loadstone.search.model import Capacity
from loadstone.store.store import Store
from loadstone.study import journal
from loadstone.study.cell import config_of
from loadstone.study.figure import most_completed_rps
from loadstone.study.order import turns
from loadstone.study.outcomes import exit_code, forget_deleted, outcome_of, outcomes
from loadstone.study.read import StudySource
from loadstone.study.run import carry_out
from loadstone.study.section import report_of
from loadstone.study.table import rows
from loadstone.study.wording import beside_reference, cells
from loadstone.target.choice import OwnLab


class Laboratory:
    """Finds N = turn number in every cell, unless it is told to fail."""

    def __init__(self, store, fails=None, limits=None):
        self.store = store
        self.fails = fails or {}
        self.limits = limits or {}  # turn -> in how many of its measurements
        self.measured = []

    def __call__(self, turn):
        self.measured.append(turn.number)
        if turn.number in self.fails:
            raise self.fails[turn.number]
        result = result_of(f"20261121-0931-{len(self.measured):02}{turn.number:04}", turn.number)
        if self.measured.count(turn.number) <= self.limits.get(turn.number, 0):
            result = limited(result)
        self.store.begin(result)
        self.store.finish(result)
        return result


def rate_of(outcome):
    return outcome.result and outcome.result.measurements[0].capacity.rate_rps


@pytest.fixture
def store(tmp_path):
    with Store.open(tmp_path) as opened:
        yield opened


@pytest.fixture
def begun(tmp_path):
    return journal.begin(tmp_path, StudySource("mine.yaml", TWO_BY_TWO), quick=False, seed=3)


def quiet(_):
    pass


def test_all_cells_are_measured_in_their_order_with_pauses_between(store, begun):
    laboratory, pauses = Laboratory(store), []
    carry_out(begun, laboratory, quiet, pauses.append)
    assert laboratory.measured == list(range(1, 13))
    assert pauses == [7.0] * 11
    assert [rate_of(one) for one in outcomes(begun, store)] == list(range(1, 13))


def test_the_time_left_is_reckoned_and_then_that_of_the_cells_that_are_done(store, begun):
    said, now_s = [], iter([0.0, 0.0, *range(300, 12 * 300, 300)])  # each cell takes 5 min
    carry_out(begun, Laboratory(store), said.append, quiet, lambda: next(now_s))
    left = [line.partition("), ")[2] for line in said if line.startswith("[")]
    assert left[:3] == ["about 16 min left", "about 55 min left", "about 50 min left"]


@pytest.mark.parametrize("kill", [KeyboardInterrupt, SystemExit, RuntimeError])
def test_a_killed_study_goes_on_at_the_cell_where_it_stopped(tmp_path, store, begun, kill):
    with pytest.raises(kill):
        carry_out(begun, Laboratory(store, {5: kill()}), quiet, quiet)
    kept = [rate_of(one) for one in outcomes(begun, store)]
    assert kept == [1, 2, 3, 4] + [None] * 8
    again, second = journal.find(tmp_path, begun.study_id), Laboratory(store)
    carry_out(again, second, quiet, quiet)
    assert second.measured == list(range(5, 13))
    found = list(outcomes(again, store))
    assert [rate_of(one) for one in found] == list(range(1, 13))
    assert tuple(one.turn for one in found) == turns(begun.begun.study(), 3)


def test_what_a_turn_left_in_its_cloud_is_the_reason_of_the_exit_code(store, begun):
    carry_out(begun, Laboratory(store), quiet, quiet)
    run_id = begun.ended()[3].run_id
    target = {"chosen": "OS_*", "identity_url": "http://127.0.0.1:9/v3"}
    lines = (
        {"event": "target", "run_id": run_id, **target},
        {"event": "create", "kind": "domain", "name": f"loadstone-{run_id}"},
    )
    path = store.folder(run_id) / JOURNAL
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    found = list(outcomes(begun, store))
    report = report_of(begun, found)
    assert (exit_code(found), report.exit_code, report.is_clean) == (1, 1, False)
    [said] = [one.text for one in report.statements if "is left" in one.text]
    assert f"loadstone results clean {run_id} --store" in said


def test_a_finished_study_has_nothing_left_to_do(store, begun):
    carry_out(begun, Laboratory(store), quiet, quiet)
    again = Laboratory(store)
    carry_out(begun, again, quiet, quiet)
    assert again.measured == []


def test_a_failed_cell_is_told_and_the_others_are_measured(store, begun):
    said = []
    failed = EnvironmentUnusable("apache2 is not installed: apt-get install apache2")
    carry_out(begun, Laboratory(store, {2: failed, 9: failed}), said.append, quiet)
    assert sum("apache2 is not installed" in line for line in said) == 2
    found = list(outcomes(begun, store))
    assert [one.turn.number for one in found if one.result is None] == [2, 9]
    assert found[1].failure == str(failed)
    assert begun.ended()[2].exit_code == 3


def test_failed_cells_are_tried_again_by_resume(store, begun):
    carry_out(begun, Laboratory(store, {2: EnvironmentUnusable("no")}), quiet, quiet)
    again = Laboratory(store)
    carry_out(begun, again, quiet, quiet)
    assert again.measured == [2]
    assert all(one.failure is None for one in outcomes(begun, store))


def test_where_the_generator_was_the_limit_it_is_measured_once_more_at_the_end(store, begun):
    said = []
    laboratory = Laboratory(store, limits={2: 1, 5: 9})
    carry_out(begun, laboratory, said.append, quiet)
    assert laboratory.measured == [*range(1, 13), 2, 5]
    assert sum("once more, for the load generator was the limit" in line for line in said) == 2
    assert [number for number, one in begun.ended().items() if not one.is_valid] == [5]
    study = begun.begun.study()
    (row,) = (row for row in rows(study, list(outcomes(begun, store))) if row.is_valid is False)
    assert row.failures == ("the load generator was the limit (trial 1: no core free)",)
    again = Laboratory(store)
    carry_out(begun, again, quiet, quiet)
    assert again.measured == [5]


def test_a_second_try_that_fails_costs_no_figure(store, begun):
    class Dying(Laboratory):
        def __call__(self, turn):
            if turn.number in self.measured:
                raise EnvironmentUnusable("the disk is full")
            return super().__call__(turn)

    carry_out(begun, Dying(store, limits={2: 1}), quiet, quiet)
    assert begun.ended()[2].run_id is not None


def test_a_try_of_resume_that_fails_costs_no_figure(store, begun):
    carry_out(begun, Laboratory(store, limits={2: 9}), quiet, quiet)
    doubtful = begun.ended()[2].run_id
    again = Laboratory(store, {2: EnvironmentUnusable("the disk is full")})
    carry_out(begun, again, quiet, quiet)
    assert again.measured == [2]
    assert begun.ended()[2].run_id == doubtful
    assert not begun.ended()[2].is_done  # it is tried again


def test_a_line_that_a_kill_cut_short_does_not_count(store, begun):
    with pytest.raises(KeyboardInterrupt):
        carry_out(begun, Laboratory(store, {3: KeyboardInterrupt()}), quiet, quiet)
    with begun.path.open("ab") as file:
        file.write(b'{"turn":3,"run_i')
    again = Laboratory(store)
    carry_out(begun, again, quiet, quiet)
    assert again.measured == list(range(3, 13))
    lines = begun.path.read_text().splitlines()
    assert [json.loads(line)["turn"] for line in lines[1:]] == list(range(1, 13))


def test_a_study_goes_on_as_it_began_when_its_file_has_changed(tmp_path):
    file = tmp_path / "mine.yaml"
    file.write_text(TWO_BY_TWO)
    begun = journal.begin(tmp_path, StudySource(str(file), TWO_BY_TWO), quick=True, seed=3)
    file.write_text("title: another\n")
    again = journal.find(tmp_path, begun.study_id).begun.study()
    assert (again.title, again.quick, again.name) == ("Two by two", "one worker, once", "mine")


def test_two_cannot_run_the_same_study(store, begun):
    with begun.locked(), pytest.raises(EnvironmentUnusable, match="is being run by another"):
        carry_out(begun, Laboratory(store), quiet, quiet)


def test_a_study_that_never_began_is_told_which_did(tmp_path, begun):
    with pytest.raises(InvalidInput, match=f"no study 'x' has begun; choose from {begun.study_id}"):
        journal.find(tmp_path, "x")


def test_a_journal_that_is_damaged_names_the_line(begun):
    with begun.path.open("a") as file:
        file.write("nonsense\n")
    with pytest.raises(InvalidInput, match=r"cells.jsonl:2: not a line of a study's journal"):
        begun.ended()


def test_a_result_that_was_deleted_is_missing_and_said_so(store, begun):
    carry_out(begun, Laboratory(store), quiet, quiet)
    gone = begun.ended()[4].run_id
    store.delete(gone)
    found = list(outcomes(begun, store))[3]
    assert found.failure == f"its result {gone} is no longer in the store"
    assert exit_code(list(outcomes(begun, store))) == 3
    laboratory = Laboratory(store)
    forget_deleted(begun, store)
    carry_out(begun, laboratory, quiet, quiet)
    assert laboratory.measured == [4]
    assert exit_code(list(outcomes(begun, store))) == 0


def test_a_damaged_result_hides_no_other_and_is_restored(store, begun, tmp_path):
    carry_out(begun, Laboratory(store), quiet, quiet)
    database = sqlite3.connect(tmp_path / "results.db")
    with database:
        damage = "UPDATE measurements SET body = '{' WHERE run_id = ?"
        database.execute(damage, (begun.ended()[4].run_id,))
    database.close()
    found = list(outcomes(begun, store))
    assert [one.turn.number for one in found if one.result is None] == [4]
    assert "to restore them from its files: loadstone results recover" in found[3].failure
    store.recover()
    assert list(outcomes(begun, store))[3].failure is None


WITH_REFERENCE = """\
title: Beside the reference service
factors: {workers: [1]}
measurement: {budget_s: 60}
reference: {value: 711, words: "seen elsewhere"}
"""


def limited_by_generator(rates):
    """A search without N: its generator was the limit in all trials but the first."""
    trials = []
    for number, rate in enumerate(rates, 1):
        (trial,) = stretch_of(5 * rate, 5.0).trials
        why = ("it used 0.87 of a core",) if number > 1 else ()
        trials.append(replace(trial, number=number, health=replace(trial.health, limits=why)))
    words = ("the load generator was the limit, not the service",)
    nothing = Capacity(None, None, None, 0.0, words, causes=(Cause.GENERATOR,))
    found = result_of("20261121-0931-000000", 1.0)
    (one,) = found.measurements
    one = replace(one, capacity=nothing, trials=tuple(trials), policy="search")
    return replace(found, measurements=(one,))


def test_a_reference_that_only_the_generator_limits_has_a_lower_bound(store, tmp_path):
    begun = journal.begin(
        tmp_path, StudySource("reference.yaml", WITH_REFERENCE), quick=False, seed=1
    )
    measured = []

    def measure(turn):
        measured.append(turn.number)
        run = (
            limited_by_generator([9_000, 64_000])
            if turn.cell.is_reference
            else result_of("20261121-0931-000001", 40.0)
        )
        store.begin(run)
        store.finish(run)
        return run

    carry_out(begun, measure, quiet, quiet)
    ended = list(outcomes(begun, store))
    (row,) = (row for row in rows(begun.begun.study(), ended) if row.cell.is_reference)
    assert (row.estimate.value, row.estimate.high, row.is_valid) == (64_000, None, True)
    assert cells(row)[1] == "at least 64,000"
    assert cells(row)[-3:] == ("1/1", "711 (at least x 90)", "yes")
    assert row.failures == ("the load generator was the limit, not the service",)
    assert exit_code(ended) == 0
    assert len(measured) == 2
    (line,) = beside_reference(begun.begun.study(), rows(begun.begun.study(), ended))
    assert line == "reference: at least 1.6e+03 times N of the fastest other cell, workers 1."


def test_a_reference_that_is_a_deployment_is_measured_with_the_one_user_that_it_has():
    text = WITH_REFERENCE.replace("value: 711", "settings: {service: flask-reference}, value: 711")
    study = StudySource("reference.yaml", text).study(quick=False)
    turn = next(one for one in turns(study, 1) if one.cell.is_reference)
    config = config_of(study, "20261121-0931-000000", turn, "")
    assert isinstance(config.target, OwnLab)
    assert dict(config.target.settings.pairs())["service"] == "flask-reference"
    assert config.groups[0].most_existing == 0
    assert config.max_rate_rps == 100_000


def test_a_reference_whose_generator_was_always_the_limit_has_no_figure():
    found = limited_by_generator([9_000, 64_000])
    (one,) = found.measurements
    every = replace(one, trials=one.trials[1:])
    assert most_completed_rps(every) is None
    drifted = replace(one.capacity, causes=(Cause.DRIFT,))
    assert most_completed_rps(replace(one, capacity=drifted)) is None
    assert most_completed_rps(one) == 64_000


def test_a_range_is_an_answer_but_no_number(store, begun, tmp_path):
    found = result_of("20261121-0931-000002", 40.0)
    wide = Capacity(None, 38.0, 43.0, 0.95, ("known to within 6 % only",))
    found = replace(
        found, measurements=(replace(found.measurements[0], capacity=wide, policy="search"),)
    )
    store.begin(found)
    store.finish(found)
    once = StudySource("once.yaml", TWO_BY_TWO.replace("repeats: 3", "repeats: 1", 1))
    single = journal.begin(tmp_path, once, quick=False, seed=3)
    for kept in (begun, single):
        study = kept.begun.study()
        outcome = outcome_of(turns(study, kept.begun.seed)[0], found, study.measurement, store)
        assert exit_code([outcome]) == 0
        [shown] = [one for one in rows(study, [outcome]) if one.estimate]
        assert "38 to 43" in cells(shown)
        assert not {"40", "40.5", "41"} & set(cells(shown))
