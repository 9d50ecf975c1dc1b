"""Charts that hooks and iterations print, drawn as they are."""

import math
import sys

import pytest

from loadstone.engine.callables.charts import charts
from loadstone.report.html import svg
from loadstone.report.section import Chart, Table, Transcript
from loadstone.report.sections.printed import Printed, drawn

HUGE = 10**400


def shown(plugin: str, data: object) -> Printed:
    return drawn("a", "title", {"title": "title", "chart_plugin": plugin, "data": data})


def test_every_line_is_drawn_and_what_is_below_zero_stays_there() -> None:
    lines = [[f"line {number}", [[0, -5], [1, -2]]] for number in range(9)]
    found = shown("Lines", lines)
    assert isinstance(found, Chart)
    assert len(found.series) == 9
    assert not found.from_zero_y
    above = shown("Lines", [["a", [[0, 1]]]])
    assert isinstance(above, Chart)
    assert above.from_zero_y


@pytest.mark.parametrize(
    ("plugin", "data"),
    [
        ("Table", {"cols": ["a"], "rows": [[1, 2]]}),
        ("Lines", [["a", [[0, HUGE]]]]),
        ("Lines", [["a", [[0, sys.float_info.max]]]]),
        ("Lines", [["a", [[0, 5e-324], [1, 0]]]]),
        ("Pie", [["a", HUGE]]),
    ],
)
def test_data_that_fits_no_chart_is_shown_as_text(plugin: str, data: object) -> None:
    assert isinstance(shown(plugin, data), Transcript)


def test_large_and_small_numbers_are_drawn_as_they_are() -> None:
    for data in ([[0, 9e299], [1, -9e299]], [[0, 2e-300], [1, 0]], [[0, 0]]):
        found = shown("Lines", [["a", data]])
        assert isinstance(found, Chart)
        assert svg.draw(found).startswith("<svg")


def test_a_row_may_be_shorter_than_its_table() -> None:
    assert isinstance(shown("Table", {"cols": ["a", "b"], "rows": [[1]]}), Table)


@pytest.mark.parametrize("value", [math.nan, math.inf, HUGE])
def test_numbers_that_json_cannot_hold_make_no_chart(value: float) -> None:
    chart = {"title": "t", "chart_plugin": "Lines", "data": [["a", [[0, value]]]]}
    assert charts({"complete": [chart]}) is None
    assert charts({"complete": [{**chart, "data": [["a", [[0, 1.0]]]]}]}) is not None
