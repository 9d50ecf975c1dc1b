"""The sequential comparison of pairs keeps its error rate and finds known differences."""

from dataclasses import replace
from math import inf

import numpy as np
import pytest
from numpy.typing import NDArray

from loadstone.compare import trimmed
from loadstone.compare.answer import ComparisonAnswer, Criteria, Metric, answer_of, compare
from loadstone.compare.sequential import (
    FEWEST_PAIRS,
    RepeatedInterval,
    critical_value,
    interval,
    pairs_needed,
)
from verification.comparison.simulated import NOISES, Noise, answer

RATE = Metric("rate", "/s", is_higher_better=True)
LATENCY = Metric("p95", "s", is_higher_better=False)


def after(differences: NDArray[np.float64], most_pairs: int) -> RepeatedInterval:
    mean, deviation = trimmed.mean(differences), trimmed.deviation(differences)
    return interval(mean, deviation, len(differences), most_pairs, 0.05)


def test_a_single_test_is_student_s_t() -> None:
    from scipy import stats

    expected = stats.t.ppf(0.975, FEWEST_PAIRS - 1)
    assert critical_value(FEWEST_PAIRS, FEWEST_PAIRS, 0.05) == pytest.approx(expected, rel=0.02)


def test_intervals_of_all_looks_hold_the_truth_together() -> None:
    random = np.random.default_rng(3)
    most, missed = 20, 0
    for _ in range(1000):
        differences = random.normal(0.5, 1.0, most)
        looks = (after(differences[:n], most) for n in range(FEWEST_PAIRS, most + 1))
        missed += any(not look.low <= 0.5 <= look.high for look in looks)
    # 5 % of 1,000 and three standard deviations.
    assert missed <= 71


def test_too_few_pairs_say_nothing() -> None:
    found = after(np.array([0.1, 0.1, 0.1]), 20)
    assert (found.low, found.high) == (-inf, inf)


@pytest.mark.long
@pytest.mark.parametrize("noise", NOISES, ids=lambda noise: noise.title)
def test_equal_services_are_seldom_called_different(noise: Noise) -> None:
    random = np.random.default_rng(7)
    found = [answer(1.0, noise, Criteria(), random)[0] for _ in range(400)]
    wrong = sum(one in (ComparisonAnswer.FASTER, ComparisonAnswer.SLOWER) for one in found)
    assert wrong / len(found) <= 0.05
    assert found.count(ComparisonAnswer.SAME) / len(found) >= 0.9


@pytest.mark.parametrize("ratio", [0.95, 1.05])
def test_a_difference_of_5_percent_is_found_with_the_right_sign(ratio: float) -> None:
    random = np.random.default_rng(11)
    found = [answer(ratio, NOISES[1], Criteria(), random)[0] for _ in range(100)]
    right = ComparisonAnswer.FASTER if ratio > 1 else ComparisonAnswer.SLOWER
    assert found.count(right) >= 98


def test_services_that_differ_by_the_margin_are_seldom_called_the_same() -> None:
    random = np.random.default_rng(13)
    found = [answer(1.03, NOISES[0], Criteria(), random)[0] for _ in range(200)]
    assert found.count(ComparisonAnswer.SAME) / len(found) <= 0.05


def test_pairs_needed_gives_the_promised_power() -> None:
    from scipy import stats

    count = pairs_needed(deviation=0.04, difference=0.02, alpha=0.05)
    random = np.random.default_rng(17)
    drawn = random.normal(0.02, 0.04, (4000, count))
    _, p_values = stats.ttest_1samp(drawn, 0.0, axis=1)
    assert (p_values < 0.05).mean() == pytest.approx(0.8, abs=0.03)


@pytest.mark.parametrize(("effect", "pairs"), [(0.2, 199), (0.3, 90), (0.5, 34), (0.8, 15)])
def test_pairs_needed_are_those_of_published_tables(effect: float, pairs: int) -> None:
    """G*Power 3.1 (Faul et al. 2009): paired t-test, two tails, error 5 %, power 80 %."""
    assert pairs_needed(deviation=1.0, difference=effect, alpha=0.05) == pairs


@pytest.mark.long
def test_more_metrics_do_not_raise_the_error_rate() -> None:
    random = np.random.default_rng(19)
    metrics = [Metric(f"m{n}", "", is_higher_better=True, is_leading=n < 2) for n in range(6)]
    wrong = 0
    for _ in range(300):
        values = np.exp(random.normal(0.0, 0.03, (len(metrics), 20, 2)))
        found = compare(
            {
                metric: [(a, b) for a, b in one.tolist()]
                for metric, one in zip(metrics, values, strict=True)
            },
            Criteria(most_pairs=20),
        )
        wrong += any(
            one.answer in (ComparisonAnswer.FASTER, ComparisonAnswer.SLOWER) for one in found
        )
    assert wrong / 300 <= 0.06


def test_metrics_that_answer_have_most_of_the_error_rate() -> None:
    random = np.random.default_rng(23)
    values = [(1.0, float(ratio)) for ratio in np.exp(random.normal(0.0, 0.03, 20))]
    leads = Metric("throughput", "/s", is_higher_better=True, is_leading=True)
    criteria = Criteria(most_pairs=20)
    rows = compare({RATE: values, leads: values, LATENCY: values}, criteria)
    [alone] = compare({leads: values}, replace(criteria, alpha=0.8 * criteria.alpha))
    [other] = compare({RATE: values}, replace(criteria, alpha=0.1 * criteria.alpha))
    intervals = [(row.low, row.high) for row in rows]
    assert intervals == [
        (other.low, other.high),
        (alone.low, alone.high),
        (other.low, other.high),
    ]


def test_a_difference_that_is_found_leaves_its_error_rate_to_the_others() -> None:
    random = np.random.default_rng(29)
    values = [(1.0, float(ratio)) for ratio in np.exp(random.normal(0.0, 0.03, 20))]
    faster = [(a, 2 * b) for a, b in values]
    leads = Metric("throughput", "/s", is_higher_better=True, is_leading=True)
    criteria = Criteria(most_pairs=20)
    _, other = compare({leads: faster, LATENCY: values}, criteria)
    [alone] = compare({LATENCY: values}, criteria)
    assert (other.low, other.high) == (alone.low, alone.high)


@pytest.mark.parametrize(
    ("metric", "low", "high", "expected"),
    [
        (RATE, 1.01, 1.10, ComparisonAnswer.FASTER),
        (LATENCY, 1.01, 1.10, ComparisonAnswer.SLOWER),
        (RATE, 0.80, 0.95, ComparisonAnswer.SLOWER),
        (LATENCY, 0.80, 0.95, ComparisonAnswer.FASTER),
        (RATE, 0.98, 1.02, ComparisonAnswer.SAME),
        (RATE, 1.005, 1.02, ComparisonAnswer.SAME),
        (RATE, 0.90, 1.10, ComparisonAnswer.UNKNOWN),
    ],
)
def test_the_answer_follows_from_the_interval(
    metric: Metric, low: float, high: float, expected: ComparisonAnswer
) -> None:
    assert answer_of(metric, low, high, 0.03) is expected


def test_identical_figures_are_the_same() -> None:
    [found] = compare({RATE: [(100.0, 100.0)] * 5}, Criteria())
    assert (found.ratio, found.answer) == (1.0, ComparisonAnswer.SAME)


@pytest.mark.parametrize("count", [1, 2, 3])
def test_of_so_few_pairs_no_number_of_pairs_is_computed(count: int) -> None:
    pairs = [(1.0, 1.0 + 0.01 * number) for number in range(count)]
    [row] = compare({RATE: pairs}, Criteria())
    assert (row.low, row.high, row.answer) == (0.0, inf, ComparisonAnswer.UNKNOWN)
    assert row.pairs_to_find(0.02) is None
    assert row.pairs_to_decide(0.05) is None
