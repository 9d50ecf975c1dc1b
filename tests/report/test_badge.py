"""The badge of a run: its words, its colour, and that it is one picture without links."""

from dataclasses import replace
from xml.etree import ElementTree

import made_runs
import pytest

from loadstone.report import badge

RUNS = made_runs.runs()


def words(run: str, code: int) -> str:
    picture = ElementTree.fromstring(badge.render(RUNS[run], code))
    return picture.attrib["aria-label"]


def test_a_search_shows_n_and_its_interval():
    [first, *_] = RUNS["search"].searches
    run = replace(RUNS["search"], measurements=(first,))
    label = ElementTree.fromstring(badge.render(run, 0)).attrib["aria-label"]
    assert label.startswith(f"{first.title}: N ")
    assert "/s (" in label


def test_several_searches_are_named_one_by_one():
    label = words("search", 0)
    assert label.startswith("loadstone: ")
    assert all(one.title in label for one in RUNS["search"].searches if one.policy == "search")


def test_a_search_without_an_answer_says_so():
    label = words("no capacity", 4)
    assert "token issue not found" in label
    assert "token issue 5.0 to 7.0/s," in label


@pytest.mark.parametrize(
    ("code", "word", "colour"),
    [(0, "held", badge.GREEN), (1, "fell short", badge.RED), (4, "not decided", badge.GREY)],
)
def test_a_task_shows_whether_its_sla_held(code, word, colour):
    picture = badge.render(RUNS["task"], code)
    assert word in picture
    assert f'fill="{colour}"' in picture


def test_characters_of_a_title_cannot_break_the_picture():
    run = replace(RUNS["task"], title='<script>"&')
    assert ElementTree.fromstring(badge.render(run, 0)).attrib["aria-label"].startswith("<script>")
