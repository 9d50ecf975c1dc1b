"""The paragraph that states the gain of a change."""

import math

import pytest

from loadstone.compare.answer import Criteria, compare
from loadstone.compare.metrics import REQUEST_TIME, THROUGHPUT
from loadstone.compare.proof import paragraph
from loadstone.compare.section import Compared
from loadstone.compare.turns import NotFull

pytestmark = pytest.mark.pure


def test_a_metric_that_became_worse_is_told_beside_the_gain() -> None:
    def pairs(ratio: float) -> list[tuple[float, float]]:
        return [(1.0, ratio * math.exp(0.001 * (-1) ** number)) for number in range(8)]

    criteria = Criteria(most_pairs=8)
    rows = compare({THROUGHPUT: pairs(1.2), REQUEST_TIME: pairs(1.5)}, criteria)
    found = Compared(("A", "B"), (), (("validate", rows),), criteria, is_paired=True)

    said = paragraph(found, ("workers=4",), (None, None), "loadstone prove").splitlines()

    assert said[0].startswith("With workers=4, throughput of validate is 1.200 times what it was")
    assert said[0].endswith("better. 1.00/s before, 1.20/s after.")
    assert said[1].startswith("Request time is 1.500 times what it was")
    assert "worse" in said[1]


def test_a_service_that_may_not_have_been_full_is_told_beside_the_gain() -> None:
    criteria = Criteria(most_pairs=8)
    rows = compare({THROUGHPUT: [(1.0, 2.0), (1.0, 2.01)]}, criteria)
    found = Compared(("A", "B"), (), (("validate", rows),), criteria, is_paired=True)
    said = paragraph(found, ("workers=4",), (None, None), "loadstone prove", NotFull((1,), 8))
    assert "The service after it served all 8 in flight at once, and may not have been full" in said
