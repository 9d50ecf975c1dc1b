"""Pairs of trials of several starts: how well their mean is known."""

import random
from math import isnan, sqrt

import pytest

from loadstone.compare import trimmed
from loadstone.compare.answer import Criteria, compare
from loadstone.compare.metrics import THROUGHPUT
from loadstone.compare.starts import BETWEEN_STARTS, PAIRS_OF_A_START, most_starts, scatter

RATIOS = [0.01, -0.02, 0.03, 0.0, 0.01, -0.01, 0.02, -0.03]


def test_pairs_of_unknown_starts_scatter_as_they_do() -> None:
    assert scatter(RATIOS, ()) == pytest.approx(trimmed.deviation(RATIOS))
    assert isnan(scatter(RATIOS[:1], (1,)))


def test_pairs_that_each_have_a_start_hold_all_of_its_scatter() -> None:
    assert scatter(RATIOS, range(8)) == pytest.approx(trimmed.deviation(RATIOS))


def test_the_error_of_one_start_stays_however_many_its_pairs_are() -> None:
    error = scatter(RATIOS, [1] * 8) / sqrt(8)
    assert error**2 == pytest.approx(trimmed.deviation(RATIOS) ** 2 / 8 + BETWEEN_STARTS**2)


def test_so_many_pairs_have_so_many_starts() -> None:
    counts = [most_starts(pairs) for pairs in (1, PAIRS_OF_A_START, PAIRS_OF_A_START + 1, 48)]
    assert counts == [1, 1, 2, 6]


@pytest.mark.parametrize("pairs", [8, 24, 48])
def test_intervals_hold_the_ratio_of_two_deployments_beyond_their_starts(pairs: int) -> None:
    """Of 1,000 comparisons, at most as many miss it as an interval of 95 % allows."""
    draw, missed, missed_without = random.Random(5), 0, 0
    criteria = Criteria(most_pairs=pairs)
    starts = [1 + number // PAIRS_OF_A_START for number in range(pairs)]
    for _ in range(1000):
        of_start = [draw.gauss(0.0, BETWEEN_STARTS) for _ in range(pairs)]
        logs = [of_start[start] + draw.gauss(0.0, 0.01) for start in starts]
        both = {THROUGHPUT: [(100.0, 100.0 * 2.718281828**one) for one in logs]}
        [row] = compare(both, criteria, {THROUGHPUT: starts})
        missed += not row.low < 1.0 < row.high
        [row] = compare(both, criteria)
        missed_without += not row.low < 1.0 < row.high
    assert missed <= 60
    assert missed_without > 1.5 * missed


def test_starts_that_differ_by_more_than_is_assumed_widen_the_interval() -> None:
    """Three starts whose ratios are 5 % apart, with pairs that hardly scatter."""
    pairs = [one + of_start for of_start in (-0.05, 0.0, 0.05) for one in RATIOS[:4]]
    starts = [1] * 4 + [2] * 4 + [3] * 4
    error = scatter(pairs, starts) / sqrt(len(pairs))
    assert error == pytest.approx(0.05 / sqrt(3), rel=0.1)
    assert scatter(RATIOS * 2, [1] * 8 + [2] * 8) == pytest.approx(
        sqrt(trimmed.deviation(RATIOS * 2) ** 2 + BETWEEN_STARTS**2 * (8 - 8 / 15))
    )
