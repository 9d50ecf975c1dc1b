"""The trimmed mean of paired differences: SciPy's values, and what outliers do to it."""

import random
from math import exp, isnan, sqrt
from statistics import fmean, stdev

import pytest

from loadstone.compare import trimmed
from loadstone.compare.answer import ComparisonAnswer, Criteria, compare
from loadstone.compare.metrics import THROUGHPUT

SHIFT = 0.3  # of the second sample


@pytest.mark.parametrize("count", [8, 24, 40])
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


def test_of_fewer_than_eight_nothing_is_left_out() -> None:
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


def test_pauses_of_one_side_alone_are_no_noise() -> None:
    """B stands still for a fifth of one pair in ten: it is 2 % slower, and not the same."""
    draw = random.Random(5)
    logs = [draw.gauss(0.0, 0.004) for _ in range(40)]
    logs = [one - 0.2 if number % 10 == 3 else one for number, one in enumerate(logs)]
    pairs = {THROUGHPUT: [(100.0, 100.0 * exp(one)) for one in logs]}
    [row] = compare(pairs, Criteria(same_within=0.015))
    assert row.low == pytest.approx(exp(fmean(logs)))
    assert row.low < 0.985 < row.ratio
    assert (row.is_widened, row.answer) == (True, ComparisonAnswer.UNKNOWN)
    [row] = compare(pairs, Criteria())
    assert row.answer is ComparisonAnswer.SAME


def test_pairs_that_are_all_alike_have_no_pauses() -> None:
    [row] = compare({THROUGHPUT: [(100.0, 97.0)] * 9}, Criteria())
    assert (row.is_widened, row.answer) == (False, ComparisonAnswer.SLOWER)


def test_both_sides_are_shown_with_the_ratio_that_is_stated() -> None:
    pairs = [(100.0, 98.0)] * 9 + [(100.0, 50.0), (100.0, 98.0)]
    [row] = compare({THROUGHPUT: pairs}, Criteria())
    assert row.b / row.a == pytest.approx(row.ratio) == 0.98
