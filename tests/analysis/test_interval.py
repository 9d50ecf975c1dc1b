"""Intervals of ratios."""

from dataclasses import dataclass
from math import exp, hypot, log

import pytest

from loadstone.analysis.interval import of_ratio


@dataclass(frozen=True)
class Found:
    value: float
    low: float | None
    high: float | None


def test_a_ratio_has_the_errors_of_both_as_independent() -> None:
    found = of_ratio(Found(90.0, 81.0, 100.0), Found(100.0, 90.0, 111.0))
    assert found.mean == pytest.approx(0.9)
    assert found.low == pytest.approx(0.9 * exp(-hypot(log(90 / 81), log(1.11))))
    assert found.high == pytest.approx(0.9 * exp(hypot(log(10 / 9), log(10 / 9))))


def test_a_wide_side_of_one_interval_widens_one_side_of_the_ratio() -> None:
    """A may be 80, too: then B, at 84, is not slower."""
    found = of_ratio(Found(84.0, 83.0, 85.0), Found(100.0, 80.0, 102.0))
    assert found.low == pytest.approx(0.8217, abs=1e-3)
    assert found.high == pytest.approx(1.051, abs=1e-3)


def test_a_ratio_to_a_lower_bound_has_no_interval() -> None:
    found = of_ratio(Found(90.0, 81.0, None), Found(100.0, 90.0, 111.0))
    assert (found.mean, found.low, found.high) == (0.9, None, None)
