"""Change points: false alarms at the rate that is stated, known changes where they are."""

import numpy as np
import pytest

from loadstone.analysis.change_points import ALPHA, change_points


def series(random: np.random.Generator, *levels: tuple[float, int]) -> list[float]:
    """Return values that scatter by 2 % about levels, each held for a number of runs."""
    exact = np.repeat([level for level, _ in levels], [count for _, count in levels])
    return list(exact * np.exp(random.normal(0.0, 0.02, len(exact))))


@pytest.mark.long
def test_series_without_a_change_have_one_no_more_often_than_stated() -> None:
    random = np.random.default_rng(1)
    count = 40
    alarms = sum(bool(change_points(series(random, (100.0, 15)))) for _ in range(count))
    # Three standard deviations of `count` draws above.
    assert alarms / count <= ALPHA + 3 * (ALPHA * (1 - ALPHA) / count) ** 0.5


@pytest.mark.long
def test_a_change_is_found_at_its_place_with_its_size() -> None:
    random = np.random.default_rng(2)
    at_the_place = covered = 0
    for _ in range(8):
        found = change_points(series(random, (100.0, 12), (90.0, 8)))
        near = [one for one in found if abs(one.index - 12) <= 1]
        at_the_place += len(found) == len(near) == 1
        covered += any(one.low <= 0.9 <= one.high for one in near)
    assert at_the_place >= 6  # a second, false one in 5 % of the stretches
    assert covered >= 6


def test_a_level_that_comes_back_is_two_changes() -> None:
    random = np.random.default_rng(3)
    found = change_points(series(random, (100.0, 10), (110.0, 5), (100.0, 10)))
    assert [one.index for one in found] == pytest.approx([10, 15], abs=1)
    assert found[0].ratio == pytest.approx(1.10, abs=0.03)
    assert found[1].ratio == pytest.approx(1 / 1.10, abs=0.03)


def test_one_outlier_and_a_short_series_are_no_change() -> None:
    values = [100.0, 101.0, 99.0, 100.5, 100.0, 60.0, 99.5, 101.0, 100.0, 99.0]
    assert change_points(values) == ()
    assert change_points([100.0, 100.0, 100.0, 50.0, 50.0, 50.0]) == ()
    assert change_points([100.0] * 20) == ()
    assert change_points([]) == ()


def test_exact_levels_have_their_exact_ratio() -> None:
    [found] = change_points([100.0] * 6 + [125.0] * 6)
    assert (found.index, found.low, found.high) == (6, found.ratio, found.ratio)
    assert found.ratio == pytest.approx(1.25)


def test_values_that_are_not_positive_are_refused() -> None:
    with pytest.raises(ValueError, match="positive"):
        change_points([1.0, 0.0])


def test_the_interval_of_a_ratio_is_that_of_welch() -> None:
    from scipy import stats

    values = series(np.random.default_rng(4), (100.0, 9), (130.0, 6))
    [found] = change_points(values)
    logs = np.log(values)
    before, after = logs[: found.index], logs[found.index :]
    expected = stats.ttest_ind(after, before, equal_var=False).confidence_interval()
    assert (found.low, found.high) == pytest.approx((np.exp(expected.low), np.exp(expected.high)))
