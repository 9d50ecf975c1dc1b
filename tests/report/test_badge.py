"""The badge of a run: its words, its colour, and that it is one picture without links."""

from dataclasses import replace
from xml.etree import ElementTree

import made_runs
import pytest

from loadstone.report import badge
from loadstone.report.sections.run import report_of

RUNS = made_runs.runs()


def words(run, code: int | None = None) -> str:
    picture = ElementTree.fromstring(badge.render(_report(run, code)))
    return picture.attrib["aria-label"]


def _report(run, code: int | None = None):
    report = report_of(run)
    return report if code is None else replace(report, exit_code=code)


def only(run, number=0):
    return replace(RUNS[run], measurements=(RUNS[run].measurements[number],))


def test_a_search_shows_n_and_its_interval():
    label = words(only("search"), 0)
    assert label.startswith(f"{RUNS['search'].measurements[0].title}: N ")
    assert "/s (" in label


def test_several_measurements_are_named_one_by_one():
    run = replace(RUNS["search"], measurements=RUNS["search"].measurements[:2])
    label = words(run, 0)
    assert label.startswith("loadstone: ")
    assert all(one.title in label for one in run.measurements)


def test_a_search_without_an_answer_says_so():
    label = words(only("no capacity"), 4)
    assert "N not found" in label
    assert label.endswith(", not decided")


def test_a_fault_shows_its_downtime():
    assert ": downtime " in words(only("fault"), 0)


@pytest.mark.parametrize(
    ("code", "word", "colour"),
    [(0, "held", badge.GREEN), (1, "fell short", badge.RED), (4, "not decided", badge.GREY)],
)
def test_many_workloads_are_one_verdict(code, word, colour):
    many = replace(RUNS["task"], measurements=RUNS["task"].measurements * 4)
    picture = badge.render(_report(many, code))
    assert f"loadstone: {word}" in picture
    assert f'fill="{colour}"' in picture


def test_characters_of_a_title_cannot_break_the_picture():
    [one] = only("search").measurements
    run = replace(RUNS["search"], measurements=(replace(one, title='<script>"&'),))
    assert words(run, 0).startswith("<script>")
