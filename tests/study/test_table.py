import io
import json
import re
from dataclasses import replace
from math import exp, inf, log, nan, sqrt

import pytest
import result_schema
from rich.console import Console
from study_files import TWO_BY_TWO, result_of, stretch_of

from loadstone.analysis.holm import adjusted
from loadstone.analysis.interval import of_logs
from loadstone.analysis.model import Cause
from loadstone.compare.answer import ComparisonAnswer, MetricComparison
from loadstone.compare.metrics import THROUGHPUT
from loadstone.compare.turns import NotFull
from loadstone.monitor.usage import Usage
from loadstone.report import html, markdown, terminal
from loadstone.report.console import console
from loadstone.report.data import as_data
from loadstone.result.model import LAB_HOST, Environment
from loadstone.search.model import Capacity
from loadstone.study import journal, raw, read, wording
from loadstone.study.duet import FLEET, cell_pairs
from loadstone.study.figure import Estimate
from loadstone.study.journal import ThroughputRatio
from loadstone.study.order import turns
from loadstone.study.read import StudySource
from loadstone.study.section import report_of
from loadstone.study.table import (
    RatioOutcome,
    TurnOutcome,
    differences,
    level_of_tests,
    rows,
)

STUDY = StudySource("mine.yaml", TWO_BY_TWO).study(quick=False)
QUICK = StudySource("mine.yaml", TWO_BY_TWO).study(quick=True)


def notes_of(study, found):
    return wording.comparison_notes(study, rows(study, found), differences(study, found))


def measured(rates, study=STUDY):
    """`rates`: (web, workers) -> N of each repeat."""
    found = []
    for turn in turns(study, 1):
        levels = dict(turn.cell.levels)
        rate = rates.get((levels["web"], levels["workers"]), [None] * 3)[turn.repeat - 1]
        run = None if rate is None else result_of(f"run-{turn.number}", rate)
        found.append(TurnOutcome(turn, run, None if run else "apache is not installed"))
    return found


def row(found, web, workers, study=STUDY):
    wanted = (("web", web), ("workers", workers))
    return next(one for one in rows(study, found) if one.cell.levels == wanted)


def test_the_interval_over_repeats_is_students_t_on_logarithms():
    # Logs 1, 2, 3: mean 2, s = 1, t(0.975, 2) = 4.302653: half-width 4.302653 / sqrt 3 = 2.484138.
    found = of_logs([1.0, 2.0, 3.0])
    assert found.mean == pytest.approx(exp(2))
    assert found.low == pytest.approx(exp(2 - 2.484138), rel=1e-6)
    assert found.high == pytest.approx(exp(2 + 2.484138), rel=1e-6)


def test_the_test_of_a_difference_is_students_t():
    # Logs 1, 2, 3: t = 2 / (1 / sqrt 3) = 3.4641, 2 degrees of freedom: p = 1 - t / sqrt(t^2 + 2).
    found = measured({
        ("apache", "1"): [10.0, 10.0, 10.0],
        ("nginx", "1"): [10.0 * exp(1), 10.0 * exp(2), 10.0 * exp(3)],
    })  # fmt: skip
    (one,) = differences(STUDY, found)
    assert one.p == pytest.approx(1 - 3.464102 / (14**0.5), rel=1e-5)
    same = measured({("apache", "1"): [10.0] * 3, ("nginx", "1"): [10.0] * 3})
    assert differences(STUDY, same)[0].p == 1.0


def test_holms_method_adjusts_from_the_smallest_p_on():
    # 3 x 0.01, then 2 x 0.02 = 0.04, then 1 x 0.03, which is not below the one before it.
    assert adjusted([0.03, None, 0.01, 0.02]) == pytest.approx((0.04, None, 0.03, 0.04))
    assert adjusted([0.6, 0.7]) == (1.0, 1.0)
    assert adjusted([]) == ()


def test_a_ratio_has_an_answer_in_the_direction_of_the_figure():
    better = measured({
        ("apache", "1"): [10.0, 20.0, 40.0],
        ("nginx", "1"): [12.0, 24.2, 47.8],
    })  # fmt: skip
    assert differences(STUDY, better)[0].answer is ComparisonAnswer.FASTER
    equal = measured({
        ("apache", "1"): [10.0, 20.0, 40.0],
        ("nginx", "1"): [10.02, 19.98, 40.1],
    })  # fmt: skip
    assert differences(STUDY, equal)[0].answer is ComparisonAnswer.SAME
    (one,) = differences(STUDY, equal)
    assert wording.conclusion(one, STUDY).startswith("the same within 3.0 %, p = ")


def test_a_row_is_the_mean_over_repeats():
    shown = row(measured({("apache", "2"): [10.0, 20.0, 40.0]}), "apache", "2")
    assert shown.estimate.value == pytest.approx(20.0)
    assert shown.estimate.low == pytest.approx(20.0 * exp(-4.302653 * log(2) / 3**0.5))
    assert shown.estimate.confidence == 0.95
    assert shown.figures == (10.0, 20.0, 40.0)
    assert shown.published.value == 42


def test_of_one_repeat_the_search_speaks_itself():
    shown = row(measured({("apache", "1"): [10.0, None, None]}), "apache", "1")
    assert (shown.estimate.value, shown.estimate.confidence) == (10.0, 0.9)
    assert (shown.found, shown.repeats) == (1, 3)
    assert shown.failures == ("apache is not installed",)
    assert shown.published is None


def test_a_cell_that_never_worked_has_its_reason_and_no_figure():
    shown = row(measured({}), "nginx", "1")
    assert (shown.estimate, shown.figures, shown.is_valid) == (None, (), None)
    assert shown.failures == ("apache is not installed",)


def test_a_search_that_found_no_number_says_why_below_the_table():
    turn, found = turns(STUDY, 1)[0], result_of("run-1", 10.0)
    words = "The capacity changed during the search: 27/s at first, 37/s later"
    changed = replace(
        found.measurements[0].capacity, rate_rps=None, words=(words,), causes=(Cause.DRIFT,)
    )
    finding = replace(found.measurements[0], capacity=changed)
    (shown,) = (
        one
        for one in rows(STUDY, [TurnOutcome(turn, replace(found, measurements=(finding,)))])
        if one.cell == turn.cell
    )
    assert (shown.found, shown.failures) == (0, (words,))
    assert shown.estimate.low == changed.low_rps


def test_levels_are_compared_within_a_repeat():
    # From repeat to repeat everything doubles; nginx is 1.1, 1.2, 1.15 times as fast all the while.
    found = measured({
        ("apache", "1"): [10.0, 20.0, 40.0],
        ("nginx", "1"): [11.0, 24.0, 46.0],
    })  # fmt: skip
    (one,) = differences(STUDY, found)
    assert one.ratio.mean == pytest.approx((1.1 * 1.2 * 1.15) ** (1 / 3))
    assert str(one) == "nginx/apache = 1.15 [1.03, 1.28], 3 pairs (workers 1)"
    assert one.p == pytest.approx(0.0315, abs=2e-3)


def test_a_repeat_without_one_of_the_two_is_no_pair():
    found = measured({
        ("apache", "1"): [10.0, 20.0, None],
        ("nginx", "1"): [11.0, 22.0, 46.0],
    })  # fmt: skip
    assert differences(STUDY, found)[0].ratio.count == 2


def test_over_several_configurations_each_counts_once():
    text = TWO_BY_TWO.replace("workers: [1, 2]", "workers: [1, 2, 4]")
    study = StudySource("mine.yaml", text).study(quick=False)
    rates = {
        ("apache", "1"): [10.0, 10.0, 10.0], ("nginx", "1"): [11.0, 11.0, 11.0],
        ("apache", "2"): [10.0, 10.0, 10.0], ("nginx", "2"): [12.0, 12.0, 12.0],
    }  # fmt: skip
    assert [one.unit for one in differences(study, measured(rates, study))] == ["pairs"] * 2
    rates |= {("apache", "4"): [10.0, 10.0, 10.0], ("nginx", "4"): [13.0, 13.0, 13.0]}
    *alone, over = differences(study, measured(rates, study))
    assert len(alone) == 3
    assert (over.ratio.count, over.unit, over.others) == (3, "configurations", ())
    assert over.ratio.mean == pytest.approx((1.1 * 1.2 * 1.3) ** (1 / 3))


def test_of_many_tests_each_p_is_adjusted_for_all():
    found = measured({("apache", "2"): [10.0, 10.0, 10.0], ("nginx", "2"): [11.0, 11.4, 11.2]})
    [alone] = differences(STUDY, found)
    assert (alone.p_holm, alone.answer) == (alone.p, ComparisonAnswer.FASTER)
    assert list(notes_of(STUDY, found)) == []
    many = replace(STUDY, comparisons=STUDY.comparisons * 20)
    first = differences(many, found)[0]
    assert first.p_holm == pytest.approx(20 * alone.p)
    assert first.answer is ComparisonAnswer.UNKNOWN
    (last,) = notes_of(many, found)
    assert last.startswith("p is adjusted for 20 tests (Holm)")


def test_an_interval_that_says_nothing_is_written_without_powers_of_ten():
    found = measured({("apache", "1"): [10.0, 10.0, None], ("nginx", "1"): [5.0, 40.0, None]})
    (one,) = differences(STUDY, found)
    assert str(one) == "nginx/apache = 1.41 [under 0.001, over 1,000], 2 pairs (workers 1)"


def test_one_pair_has_the_interval_of_its_two_searches_and_no_test():
    found = measured({("apache", "1"): [10.0] * 3, ("nginx", "1"): [9.0] * 3}, QUICK)
    (one,) = differences(QUICK, found)
    assert str(one) == "nginx/apache = 0.9 [0.781, 1.04], 1 pair (workers 1)"
    (why,) = notes_of(QUICK, found)
    assert wording.conclusion(one, QUICK) == "no test (*)"
    assert why == "(*) of one pair there is no test; its interval is that within the measurements"
    assert one.p is None


ALIKE = [8.1, 8.3, 8.6]


def test_of_cells_that_show_no_difference_this_is_said_first(tmp_path):
    cells = [(web, workers) for web in ("apache", "nginx") for workers in ("1", "2")]
    found = measured(dict.fromkeys(cells, ALIKE))
    (line,) = wording.overview(STUDY, rows(STUDY, found))
    assert line == (
        "Web and workers show no difference here (each within 0.0 %): 8.33 to 8.33 per s in 4 "
        "cells."
    )
    begun = journal.begin(tmp_path, StudySource("mine.yaml", TWO_BY_TWO), quick=False, seed=1)
    report = report_of(begun, found)
    header = html.render(report).partition("</header>")[0]
    assert header.index("show no difference") < header.index('id="overview"')
    assert line in markdown.render(report)
    different = measured(dict.fromkeys(cells[:3], ALIKE) | {cells[3]: [16.0, 16.3, 16.6]})
    assert list(wording.overview(STUDY, rows(STUDY, different))) == []
    faster = measured({(web, n): [3 * x if n == "2" else x for x in ALIKE] for web, n in cells})
    (line,) = wording.overview(STUDY, rows(STUDY, faster))
    assert line.startswith("Web shows no difference here (each within 0.0 %): 8.33 to 25.0 per s")
    # Wide intervals that overlap do not show that figures are alike.
    wide = {(web, n): [x * (1 if web == "apache" else 2) for x in (3, 9, 27)] for web, n in cells}
    (line,) = wording.overview(STUDY, rows(STUDY, measured(wide)))
    assert line.startswith("Workers shows no difference here")
    incomplete = measured(dict.fromkeys(cells[:3], ALIKE))
    assert list(wording.overview(STUDY, rows(STUDY, incomplete))) == []


def test_a_factor_whose_ratio_shows_a_difference_is_not_said_to_show_none(tmp_path):
    """The machine drifts from repeat to repeat, so that the intervals of the cells overlap."""
    times = {
        ("apache", "1"): 1.0,
        ("apache", "2"): 1.01,
        ("nginx", "1"): 1.06,
        ("nginx", "2"): 1.07,
    }
    found = measured({place: [x * one for x in (8.0, 8.3, 8.7)] for place, one in times.items()})
    compared = differences(STUDY, found)
    assert {one.answer for one in compared} == {ComparisonAnswer.FASTER}
    (line,) = wording.overview(STUDY, rows(STUDY, found), compared)
    assert line.startswith("Workers shows no difference here (each within 0.5 %)")
    begun = journal.begin(tmp_path, StudySource("mine.yaml", TWO_BY_TWO), quick=False, seed=1)
    assert line in [one.text for one in report_of(begun, found).statements]


def test_ranges_with_one_middle_are_not_said_to_show_no_difference():
    cells = [(web, workers) for web in ("apache", "nginx") for workers in ("1", "2")]
    found = measured({cell: [10.0, None, None] for cell in cells})
    assert list(wording.overview(STUDY, rows(STUDY, found)))
    assert list(wording.overview(STUDY, rows(STUDY, with_ranges(found)))) == []


def late(found):
    """Return the outcomes with one trial each, in which the load generator was the limit."""
    (trial,) = stretch_of(10, 5.0).trials
    trial = replace(trial, health=replace(trial.health, limits=("no core free",)))
    runs = [
        replace(one.result, measurements=(replace(one.result.measurements[0], trials=(trial,)),))
        for one in found
    ]
    return [replace(one, result=run) for one, run in zip(found, runs, strict=True)]


def test_what_the_load_generator_limited_shows_neither_a_difference_nor_none():
    cells = [(web, workers) for web in ("apache", "nginx") for workers in ("1", "2")]
    alike = measured(dict.fromkeys(cells, ALIKE))
    assert list(wording.overview(STUDY, rows(STUDY, alike)))
    assert list(wording.overview(STUDY, rows(STUDY, late(alike)))) == []
    faster = measured({cell: [3 * x if cell[0] == "nginx" else x for x in ALIKE] for cell in cells})
    assert {one.answer for one in differences(STUDY, faster)} == {ComparisonAnswer.FASTER}
    for one in differences(STUDY, late(faster)):
        assert (one.answer, one.p, one.ratio.count) == (ComparisonAnswer.UNKNOWN, None, 3)
        assert wording.conclusion(one, STUDY) == "no test: the load generator was the limit"
    assert not list(notes_of(STUDY, late(faster)))


def with_bound(found, repeat=2):
    """Return the outcomes whose search found only a lower bound in one repeat."""
    bound = Capacity(30.0, 30.0, None, 0.0)
    bounded = list(found)
    for at, one in enumerate(found):
        if one.result is not None and one.turn.repeat == repeat:
            (search,) = one.result.measurements
            run = replace(one.result, measurements=(replace(search, capacity=bound),))
            bounded[at] = replace(one, result=run)
    return bounded


def test_the_lowest_of_a_range_and_a_bound_is_the_low_end_of_the_range():
    found = measured({("apache", "1"): [10.0, 30.0, None]})
    estimate = row(with_bound(with_ranges(found)), "apache", "1").estimate
    assert (estimate.value, estimate.high) == (pytest.approx(10.0 / 1.2), None)


def test_a_repeat_with_a_lower_bound_is_not_left_out_of_a_ratio():
    """Of the two others alone, both cells would be the same."""
    found = measured({("apache", "1"): [10.0] * 3, ("nginx", "1"): [10.0] * 3})
    assert len(differences(STUDY, found)) == 1
    assert not differences(STUDY, with_bound(found))
    assert list(wording.missing_ratios(STUDY, with_bound(found))) == [
        "nginx / apache (workers 1): only a lower bound is known in 1 of 3 repeats, so that the "
        "repeats have no ratio."
    ]
    assert not list(wording.missing_ratios(STUDY, found))


def test_settings_that_differ_between_two_levels_are_one_folded_table(tmp_path):
    found = measured({(web, "1"): ALIKE for web in ("apache", "nginx")})
    facts = {"apache": (("cache", "on"),), "nginx": (("cache", "off"), ("a", "1"), ("b", "2"))}
    found = [
        one
        if one.result is None
        else replace(
            one,
            result=replace(
                one.result,
                environment=Environment((), facts[dict(one.turn.cell.levels)["web"]]),
            ),
        )
        for one in found
    ]
    begun = journal.begin(tmp_path, StudySource("mine.yaml", TWO_BY_TWO), quick=False, seed=1)
    (table,) = report_of(begun, found).settings
    assert table.title == "Settings in which apache and nginx differ"
    assert [row.cells for row in table.rows] == [
        ("cache", "on", "off"),
        ("a", "–", "1"),  # noqa: RUF001
        ("b", "–", "2"),  # noqa: RUF001
    ]


def test_one_pair_whose_interval_is_far_from_1_is_no_evidence():
    found = measured({("apache", "1"): [10.0] * 3, ("nginx", "1"): [15.0] * 3}, QUICK)
    (one,) = differences(QUICK, found)
    assert one.ratio.low > 1.1
    assert one.answer is ComparisonAnswer.UNKNOWN


def test_table_and_data_say_the_same(tmp_path):
    begun = journal.begin(tmp_path, StudySource("mine.yaml", TWO_BY_TWO), quick=False, seed=5)
    found = measured({
        ("apache", "2"): [10.0, 10.5, 11.0],
        ("nginx", "2"): [20.0, 20.0, 23.0],
    })  # fmt: skip
    out = io.StringIO()
    terminal.show(report_of(begun, found), console(out))
    text = out.getvalue()
    assert "42" in text
    assert "6 of 12 measurements are missing" in text
    assert f"loadstone study run --resume {begun.study_id} --store {tmp_path}" in text
    assert "web apache, workers 1: apache is not installed" in text
    data = json.loads(json.dumps(as_data(report_of(begun, found)), allow_nan=False))
    assert (data["study"], data["seed"], data["missing"]) == ("mine", 5, 6)
    assert data["measurements"][1]["values"] == [10.0, 10.5, 11.0]
    assert data["measurements"][1]["published"] == 42
    result_schema.check(data)
    [one] = data["differences"]
    assert one["words"].startswith("nginx/apache = 2 [1.78, 2.24], 3 pairs")
    assert "nginx / apache" in text
    assert "1.78 to 2.24" in text


def test_a_cell_with_a_figure_is_not_said_to_be_not_measured(tmp_path):
    begun = journal.begin(tmp_path, StudySource("mine.yaml", TWO_BY_TWO), quick=False, seed=5)
    found = measured({("apache", "2"): [10.0, 10.5, 11.0]})
    sections = {one.title: one for one in report_of(begun, found).sections}
    known, failed = sections["web apache, workers 2"], sections["web nginx, workers 2"]
    assert known.answer.text == "10.5"
    assert known.certainty.text == "load generator's health not known"
    assert failed.certainty.text == "not measured"


def test_the_multiple_of_a_range_has_both_ends():
    one = row(measured({("apache", "2"): [40.0, 41.0, 42.0]}), "apache", "2")
    ranged = replace(one, estimate=Estimate(40.0, 30.0, 50.0, 0.95, is_range=True))
    assert "42 (x 0.71 to 1.2)" in wording.cells(ranged)


def test_as_markdown_it_is_a_table_with_source_date_and_machine(tmp_path):
    text = TWO_BY_TWO.replace("title:", 'source: "a <b> | c"\ntitle:')
    begun = journal.begin(tmp_path, StudySource("mine.yaml", text), quick=False, seed=5)
    found = measured({
        ("apache", "2"): [10.0, 10.5, 11.0],
        ("nginx", "2"): [20.0, 20.0, 23.0],
    })  # fmt: skip
    machine = Environment((("cores", "2"), ("memory", "8 GB")), ())
    found = [replace(o, result=o.result and replace(o.result, environment=machine)) for o in found]
    lines = markdown.render(report_of(begun, found)).splitlines()
    assert lines[0] == "### Two by two"
    assert "After: a &lt;b> \\| c" in lines[2]
    assert lines[4:8] == [
        "| web | workers | N per s | interval | found | published | valid |",
        "| --- | --- | ---: | ---: | ---: | ---: | ---: |",
        "| apache | 1 | failed | \u2013 | 0/3 |  | \u2013 |",
        "| apache | 2 | 10.5 | 9.3 to 11.8 | 3/3 | 42 (x 0.25) | \u2013 |",
    ]
    assert "- Published 42: seen elsewhere" in lines
    assert any(line.startswith("| nginx / apache | workers 2 | 2 |") for line in lines)
    assert lines[2].endswith(
        f"Study {begun.study_id}, seed 5, 6 of 12 measurements, "
        "2026-11-21 09:31 to 2026-11-21 09:32 UTC on: cores 2, memory 8 GB."
    )


def test_the_table_of_isp_ras_fits_into_80_columns(tmp_path):
    begun = journal.begin(tmp_path, read.find("isp-ras-2015"), quick=True, seed=1)
    order = turns(begun.begun.study(), 1)
    found = [TurnOutcome(turn, result_of(f"run-{turn.number}", 6.5)) for turn in order]
    out = io.StringIO()
    terminal.show(report_of(begun, found), Console(file=out, width=80, markup=False))
    lines = out.getvalue().splitlines()
    (first,) = [i for i, line in enumerate(lines) if "storage" in line and "N per s" in line]
    shown = lines[first + 2 : first + 15]
    assert [line.split()[:3] for line in shown] == [
        [level for _, level in cell.levels] for cell in begun.begun.study().cells
    ]
    assert all("6.5" in line for line in shown)


def test_other_work_on_the_machine_is_said_below_the_table(tmp_path):
    begun = journal.begin(tmp_path, StudySource("mine.yaml", TWO_BY_TWO), quick=False, seed=1)
    found = measured({("apache", "2"): [10.0, 10.5, 11.0]})
    quiet = usage(10.0, service_cpu_s=17.0)  # of 20 s of two cores; the generator takes 1 s
    busy = usage(10.0, service_cpu_s=8.0)
    place = [i for i, one in enumerate(found) if one.result]
    for i, one in zip(place, (quiet, busy, busy), strict=True):
        trial = replace(stretch_of(100, 10.0).trials[0], usage=one)
        result = found[i].result
        found[i] = replace(
            found[i],
            result=replace(
                result, measurements=(replace(result.measurements[0], trials=(trial,)),)
            ),
        )
    said = (
        "Other work took 10 % of this machine's CPU or more in 2 of 3 measurements, 51 % at most: "
        "on a quiet machine the figures may differ."
    )
    out = io.StringIO()
    terminal.show(report_of(begun, found), Console(file=out, width=300))
    assert said in out.getvalue()
    assert said in markdown.render(report_of(begun, found))


def usage(wall_s, service_cpu_s):
    return Usage(wall_s, 2, 0.95, 0.01, service_cpu_s, 1.0)


def test_repeats_of_different_software_are_named(tmp_path):
    found = measured({("apache", "2"): [10.0, 10.0, 10.0]})
    begun = journal.begin(tmp_path, StudySource("mine.yaml", TWO_BY_TWO), quick=False, seed=1)
    labels = {
        1: "keystone 30.0.0 with fix.patch (ab12)",
        2: "keystone 30.0.0 with fix.patch (cd34)",
    }
    for at, one in enumerate(found):
        if one.result is not None:
            label = labels[min(one.turn.repeat, 2)]
            environment = replace(one.result.environment, target=(("release", label),))
            found[at] = replace(one, result=replace(one.result, environment=environment))
    said = [one.text for one in report_of(begun, found).statements]
    [line] = (one for one in said if "different software" in one)
    assert line.startswith("web apache, workers 2 was measured with different software")
    assert all(label in line for label in labels.values())
    same = measured({("apache", "2"): [10.0, 10.0, 10.0]})
    assert not [one for one in report_of(begun, same).statements if "software" in one.text]


def test_a_machine_that_changed_before_the_study_was_resumed_is_named(tmp_path):
    begun = journal.begin(tmp_path, StudySource("mine.yaml", TWO_BY_TWO), quick=False, seed=1)

    def said(later_cores, target=()):
        found = []
        for one in measured({("apache", "2"): [10.0, 10.0, 10.0]}):
            cores = "2" if one.turn.repeat == 1 else later_cores
            environment = Environment(machine=(("cores", cores),), target=target)
            result = one.result and replace(one.result, environment=environment)
            found.append(replace(one, result=result))
        statements = report_of(begun, found).statements
        return [one.text for one in statements if "machine was not the same" in one.text]

    [line] = said("4")
    assert line.startswith("The machine was not the same in all measurements (cores: 2; 4), ")
    assert not said("2")
    assert not said("4", ((LAB_HOST, "10.0.0.7"),))


TURNS = TWO_BY_TWO.replace("pairs_in_turns: 0\n", "")
THREE_EACH = {
    ("apache", "1"): [10.0, 10.0, 10.0], ("nginx", "1"): [12.0, 11.9, 12.1],
    ("apache", "2"): [10.0, 10.0, 10.0], ("nginx", "2"): [12.0, 11.9, 12.1],
}  # fmt: skip


def test_cells_that_share_no_load_leave_the_whole_error_rate_to_the_repeats():
    levels = "{a: {scenario: issue}, b: {scenario: validate}}"
    text = f"title: t\nfactors: {{what: {levels}}}\ncompare: [{{factor: what, levels: [a, b]}}]\n"
    apart = StudySource("mine.yaml", text).study(quick=False)
    in_turns = StudySource("mine.yaml", TURNS).study(quick=False)
    assert level_of_tests(apart) == level_of_tests(STUDY) == 0.05
    assert level_of_tests(in_turns) == 0.025


def test_a_ratio_of_too_few_pairs_in_turns_has_no_interval(tmp_path):
    source = StudySource("mine.yaml", TURNS)
    found, study = measured(THREE_EACH), source.study(quick=False)
    [pair, _] = cell_pairs(study)
    row = MetricComparison(THROUGHPUT, 10.0, 12.0, 1.2, 0.0, inf, 1, ComparisonAnswer.UNKNOWN, nan)
    in_turns = [RatioOutcome(pair, ThroughputRatio(("a", "b"), row))]
    begun = journal.begin(tmp_path, source, quick=False, seed=1)
    data = json.loads(json.dumps(as_data(report_of(begun, found, in_turns)), allow_nan=False))
    first = data["differences"][0]
    assert (first["low"], first["high"], first["answer"]) == (None, None, "unknown")
    assert first["words"] == "nginx/apache = 1.2, 1 pair in turns (workers 1)"


@pytest.mark.parametrize("has_n", [True, False])
def test_cells_that_were_not_full_in_turns_have_no_answer_of_it(tmp_path, has_n):
    source = StudySource("mine.yaml", TURNS)
    study = source.study(quick=False)
    [pair, _] = cell_pairs(study)
    row = MetricComparison(THROUGHPUT, 10.0, 10.0, 1.0, 0.99, 1.01, 12, ComparisonAnswer.SAME, 0.01)
    in_turns = [RatioOutcome(pair, ThroughputRatio(("a", "b"), row, NotFull((0, 1), 8)))]
    begun = journal.begin(tmp_path, source, quick=False, seed=1)
    found = measured(THREE_EACH if has_n else {})
    report = report_of(begun, found, in_turns)
    first = as_data(report)["differences"][0]
    assert (first["unit"], first["answer"]) == (
        ("pairs", "faster") if has_n else ("pairs in turns", "unknown")
    )
    [said] = [one.text for one in report.statements if "may not have been full" in one.text]
    assert said.startswith("nginx / apache (workers 1), in turns: apache and nginx served all 8")
    assert said.endswith("the ratio of N counts." if has_n else "the ratio has no answer.")


def test_a_study_on_lab_hosts_is_not_told_to_go_on_here(tmp_path):
    source = StudySource("mine.yaml", TURNS)
    in_turns = [RatioOutcome(pair, None) for pair in cell_pairs(source.study(quick=False))]
    begun = journal.begin(tmp_path, source, quick=False, seed=1)
    here = measured(THREE_EACH)
    away = [replace(one, result=on_host(one.result)) for one in here]
    said, said_here = (
        [one.text for one in report_of(begun, found, in_turns).statements] for found in (away, here)
    )
    assert any("2 of 2 ratios were not measured in turns; go on:" in one for one in said_here)
    assert FLEET in said
    assert not [one for one in said if "--resume" in one]


def test_a_study_of_a_fleet_goes_on_with_it_and_misses_no_ratios_in_turns(tmp_path):
    source = StudySource("mine.yaml", TURNS)
    in_turns = [RatioOutcome(pair, None) for pair in cell_pairs(source.study(quick=False))]
    begun = journal.begin(tmp_path, source, quick=False, seed=1)
    found = [replace(one, result=by_fleet(one.result)) for one in measured(THREE_EACH)]
    said = [one.text for one in report_of(begun, found, in_turns).statements]
    assert FLEET in said
    assert not [one for one in said if "--resume" in one]
    some = [*found[:-1], replace(found[-1], result=None)]
    [missing] = [
        one.text for one in report_of(begun, some, in_turns).statements if "missing" in one.text
    ]
    assert f"--resume {begun.study_id} --fleet local:2" in missing


def by_fleet(run):
    machine = (*run.environment.machine, ("fleet", "local:2"))
    return replace(run, environment=replace(run.environment, machine=machine))


def on_host(run):
    return replace(run, environment=replace(run.environment, target=((LAB_HOST, "far"),)))


def test_two_repeats_show_that_they_are_too_few_for_an_interval():
    cells = wording.cells(row(measured({("apache", "2"): [100.0, 220.0, None]}), "apache", "2"))
    assert "too few repeats" in cells
    assert cells[2] == "148"


def test_two_repeats_of_which_one_is_a_range_are_a_range_everywhere(tmp_path):
    found = measured({("apache", "2"): [7.0, 7.4, None]})
    (at,) = (i for i, one in enumerate(found) if one.result and one.turn.repeat == 1)
    run = found[at].result
    (search,) = run.measurements
    wide = replace(search.capacity, rate_rps=None, low_rps=6.1, high_rps=8.1)
    run = replace(run, measurements=(replace(search, capacity=wide),))
    found[at] = replace(found[at], result=run)
    begun = journal.begin(tmp_path, StudySource("mine.yaml", TWO_BY_TWO), quick=False, seed=1)
    report = report_of(begun, found)
    (cells,) = (line.cells for line in report.overview.rows if line.cells[:2] == ("apache", "2"))
    assert cells[2] == cells[3] == "6.1 to 8.2"
    (section,) = (one for one in report.sections if one.title == "web apache, workers 2")
    assert (section.answer.text, section.answer.value) == ("6.1 to 8.2", None)
    assert section.answer.sentence.startswith("web apache, workers 2: N 6.1 to 8.2 per s")
    assert [line.cells[1] for line in section.tables[0].rows] == ["6.1 to 8.1", "7.4", "\u2013"]
    data = as_data(report)
    assert [one["value"] for one in data["measurements"]] == [None] * 4
    [values] = (one["values"] for one in data["measurements"] if one["values"])
    assert values == [None, 7.4]
    first, second, *_ = (line for line in raw.render(begun, found).splitlines() if ",run-" in line)
    assert sorted(line.split(",")[-5] == "" for line in (first, second)) == [False, True]


def with_ranges(found):
    """Return the outcomes with searches that know N to within a factor of 1.2 only."""
    ranged = []
    for outcome in found:
        run = outcome.result
        if run is not None:
            (search,) = run.measurements
            n_rps = search.capacity.rate_rps
            wide = Capacity(None, n_rps / 1.2, n_rps * 1.2, 0.95)
            run = replace(run, measurements=(replace(search, capacity=wide),))
        ranged.append(replace(outcome, result=run))
    return ranged


def test_a_mean_of_ranges_is_no_narrower_than_they_are():
    found = with_ranges(measured({("apache", "1"): [10.0, 10.0, 10.0]}))
    estimate = row(found, "apache", "1").estimate
    # Three searches, each known to within log 1.2 on both sides: log 1.2 / sqrt(3).
    reach = 1.2 ** (1 / sqrt(3))
    assert estimate.low == pytest.approx(estimate.value / reach)
    assert estimate.high == pytest.approx(estimate.value * reach)


def test_a_ratio_of_ranges_is_no_narrower_than_they_are():
    cells = {("apache", "1"): [10.0, 10.1, None], ("nginx", "1"): [5.0, 5.0, None]}
    found = measured(cells)
    (one,) = differences(STUDY, found)
    (other,) = differences(STUDY, with_ranges(found))
    assert other.ratio.mean == pytest.approx(one.ratio.mean, rel=0.02)
    # Two pairs, each known to within log 1.2 on both sides: sqrt(2 * 2 log² 1.2) / 2 = log 1.2.
    assert other.ratio.low <= other.ratio.mean / 1.19
    assert other.ratio.high >= other.ratio.mean * 1.19


def test_a_common_ratio_of_ranges_is_no_narrower_than_they_are():
    text = TWO_BY_TWO.replace("workers: [1, 2]", "workers: [1, 2, 4]")
    study = StudySource("mine.yaml", text).study(quick=False)
    cells = {(web, workers): [10.0, None, None] for web in ("apache", "nginx") for workers in "124"}
    *_, over = differences(study, with_ranges(measured(cells, study)))
    assert over.unit == "configurations"
    assert over.answer is ComparisonAnswer.UNKNOWN
    # A pair is known to within log 1.2 * sqrt(2); three of them by sqrt(3) better.
    reach = 1.2 ** sqrt(2 / 3)
    assert (over.ratio.low, over.ratio.high) == pytest.approx((1 / reach, reach), rel=0.02)


def test_a_turn_that_failed_is_in_the_data_with_its_exit_code(tmp_path):
    found = [
        one if one.result else replace(one, exit_code=3)
        for one in measured({("apache", "2"): [7.0, 7.4, 7.1]})
    ]
    begun = journal.begin(tmp_path, StudySource("mine.yaml", TWO_BY_TWO), quick=False, seed=1)
    data = as_data(report_of(begun, found))
    assert data["exit_code"] == 3
    codes = {one["title"]: one["certainty"]["exit_code"] for one in data["measurements"]}
    assert codes.pop("web apache, workers 2") == 0
    assert set(codes.values()) == {3}
    result_schema.check(data)


def test_the_reference_is_no_cell_of_which_a_difference_is_told(tmp_path):
    source = read.find("isp-ras-2015")
    order = turns(source.study(quick=True), 1)
    rates = {True: 5127.0, False: 6.5}
    found = [
        TurnOutcome(turn, result_of(f"run-{turn.number}", rates[turn.cell.is_reference]))
        for turn in order
    ]
    begun = journal.begin(tmp_path, source, quick=True, seed=1)
    (first, second, *_) = report_of(begun, found).statements
    assert "show no difference here" in first.text
    assert "6.50 to 6.50 per s in 12 cells" in first.text
    assert "times N of the fastest other cell" in second.text


def test_two_repeats_have_a_mean_and_no_interval():
    found = measured({("apache", "2"): [10.0, 20.0, None]})
    shown = row(found, "apache", "2")
    assert shown.estimate.value == pytest.approx(200**0.5)
    assert (shown.estimate.low, shown.estimate.high) == (None, None)
    assert "Two repeats are too few for an interval; three give one." in notes_of(STUDY, found)


def test_as_a_page_it_has_the_table_a_chart_and_the_command_of_each_run(tmp_path):
    begun = journal.begin(tmp_path, StudySource("mine.yaml", TWO_BY_TWO), quick=False, seed=1)
    found = measured({("apache", "2"): [40.0, 41.0, 42.0], ("nginx", "1"): [20.0, 21.0, 22.0]})
    report = report_of(begun, found)
    text = html.render(report)
    table = text.partition('id="overview"')[2].partition("</table>")[0]
    cells = re.findall(r"<t[hd]\b[^>]*>(?:<a[^>]*>)?([^<]*)", table)
    assert cells[:7] == ["web", "workers", "N per s", "interval", "found", "published", "valid"]
    apache = cells[7 * 2 : 7 * 3]
    assert (apache[:2], apache[4:6]) == (["apache", "2"], ["3/3", "42 (x 0.98)"])
    assert apache[2] == "41"
    assert "seen elsewhere" in text
    # A chart has a row for each cell; those that were measured have a point and an interval.
    (chart,) = report.charts
    assert list(chart.rows) == [
        f"web {w}, workers {n}" for w in ("apache", "nginx") for n in (1, 2)
    ]
    series = {one.name: one for one in chart.series}
    assert [y for _, y in series["N"].data] == [3, 2]
    assert series["interval"].data[0][0] == pytest.approx(38.6, abs=0.1)
    assert "published" not in series  # its ratio is in the table
    assert text.count('<svg class="static"') == 1
    # Each row leads to its cell, each run names the command that shows it.
    for number in range(1, 5):
        assert f'<a href="#cell-{number}">' in text
        assert f'<section id="cell-{number}"' in text
    for outcome in found:
        if outcome.result:
            assert f"loadstone report {outcome.result.run_id} --store {tmp_path}" in text
    assert "apache is not installed" in text
    assert "6 of 12 measurements are missing" in text
