"""The trimmed mean of paired differences: SciPy's values, and what outliers do to it."""

import random
from math import exp, isnan, sqrt
from statistics import fmean, stdev

import pytest

from loadstone.compare import trimmed
from loadstone.compare.answer import ComparisonAnswer, Criteria, compare
from loadstone.compare.metrics import THROUGHPUT

SHIFT = 0.3  # of the second sample


@pytest.mark.parametrize("count", [10, 24, 40])
def test_mean_and_error_are_those_of_yuen(count: int) -> None:
    from scipy import stats

    draw = random.Random(count)
    a = [draw.gauss(0.0, 1.0) for _ in range(count)]
    b = [one + SHIFT for one in a]
    # Both samples have the same error, so that of their difference is the root of two times it.
    expected = stats.ttest_ind(b, a, equal_var=False, trim=trimmed.TRIMMED)
    error = trimmed.deviation(a) / sqrt(count)
    assert trimmed.mean(a) == pytest.approx(stats.trim_mean(a, trimmed.TRIMMED))
    assert sqrt(2) * error == pytest.approx(SHIFT / expected.statistic)
    assert trimmed.degrees(count) == pytest.approx(expected.df / 2)


def test_of_fewer_than_ten_nothing_is_left_out() -> None:
    values = [0.1, 0.2, -0.4, 0.0, 9.0]
    assert trimmed.mean(values) == pytest.approx(fmean(values))
    assert trimmed.deviation(values) == pytest.approx(stdev(values))
    assert isnan(trimmed.deviation(values[:1]))


def test_pauses_of_either_side_do_not_hide_that_both_are_the_same() -> None:
    draw = random.Random(3)
    logs = [draw.gauss(0.0, 0.015) for _ in range(32)]
    for number, pause in ((7, -0.11), (15, 0.10), (23, -0.12)):
        logs[number] += pause
    [row] = compare({THROUGHPUT: [(100.0, 100.0 * exp(one)) for one in logs]}, Criteria())
    assert row.answer is ComparisonAnswer.SAME
    assert stdev(logs) > 1.8 * row.deviation


def test_both_sides_are_shown_with_the_ratio_that_is_stated() -> None:
    pairs = [(100.0, 98.0)] * 9 + [(100.0, 50.0), (100.0, 98.0)]
    [row] = compare({THROUGHPUT: pairs}, Criteria())
    assert row.b / row.a == pytest.approx(row.ratio) == 0.98
