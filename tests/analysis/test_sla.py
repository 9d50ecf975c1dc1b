"""SLA rules, with their traps."""

import numpy as np
import pytest
from judged_iterations import judged

from loadstone.analysis import criteria as model
from loadstone.analysis.sla import first_failure
from loadstone.analysis.sums import WorkloadIterations


def iterations(*durations, failed=(), actions=None):
    """Make iterations in the order of their ends; `failed` names rows."""
    count = len(durations)
    flags = np.zeros(count, bool)
    flags[list(failed)] = True
    sums = {name: np.array(values, float) for name, values in (actions or {}).items()}
    return WorkloadIterations(
        np.array(durations, float),
        flags,
        sums,
        {name: np.ones(count) for name in sums},
    )


def holds(rule, rows, load_s=10.0):
    (check,) = judged([rule], rows, load_s)
    return check.success


def test_details_are_in_rallys_words():
    rows = iterations(1, 2, 6, failed=[2], actions={"a": [0.5, 1.5, 9]})
    rules = (
        model.FailureRate(0, 10),
        model.MaxSecondsPerIteration(4),
        model.MaxAvgDuration(2),
        model.MaxAvgDurationPerAtomic({"a": 1, "b": 2}),
        model.Outliers(1),
        model.PerformanceDegradation(50),
    )
    assert [(one.criterion, one.success, one.detail) for one in judged(rules, rows)] == [
        ("failure_rate", False, "Failure rate criteria 0.00% <= 33.33% <= 10.00% - Failed"),
        (
            "max_seconds_per_iteration",
            False,
            "Maximum seconds per iteration 6.00s <= 4.00s - Failed",
        ),
        ("max_avg_duration", True, "Average duration of one iteration 1.50s <= 2.00s - Passed"),
        (
            "max_avg_duration_per_atomic",
            True,
            "Average duration of one iteration for atomic actions:\n"
            "Action: 'a'. 1.00s <= 1.00s\nAction: 'b'. 0.00s <= 2.00s\nStatus: Passed",
        ),
        ("outliers", True, "Maximum number of outliers 0 <= 1 - Passed"),
        ("performance_degradation", False, "Current degradation: 100.0% - Failed"),
    ]


def test_failures_count_for_the_longest_iteration_and_not_for_the_mean():
    rows = iterations(1, 9, failed=[1])
    assert not holds(model.MaxSecondsPerIteration(5), rows)
    assert holds(model.MaxAvgDuration(1), rows)


def test_a_failure_rate_can_be_asked_for():
    rows = iterations(1, 1, 1, 1, failed=[0])
    assert holds(model.FailureRate(20, 30), rows)
    assert not holds(model.FailureRate(30, 100), rows)


@pytest.mark.parametrize(
    "rule",
    [
        model.MaxAvgDuration(0.1),
        model.MaxAvgDurationPerAtomic({"a": 0.1}),
        model.Outliers(),
        model.PerformanceDegradation(0),
    ],
)
def test_rallys_trap_a_mean_of_nothing_holds(rule):
    assert holds(rule, iterations(5, 5, failed=[0, 1], actions={"a": [5, 5]}))


@pytest.mark.parametrize(
    "rule", [model.MaxPercentiles({99: 100}), model.MinThroughput(0.1), model.MinIterations(1)]
)
def test_our_own_rules_do_not_hold_when_nothing_succeeded(rule):
    assert not holds(rule, iterations(5, 5, failed=[0, 1]))


def test_an_outlier_is_judged_by_what_came_before_it():
    steady = [1.0, 1.1, 0.9, 1.0, 1.1]
    assert holds(model.Outliers(), iterations(9.0, *steady))
    late = iterations(*steady, 9.0)
    assert not holds(model.Outliers(), late)
    assert holds(model.Outliers(max_count=1), late)
    assert holds(model.Outliers(min_iterations=7), late)
    assert first_failure([model.Outliers()], late) == 5


def test_percentiles_throughput_and_minimum():
    rows = iterations(*np.linspace(0, 1, 101))
    assert holds(model.MaxPercentiles({50: 0.5, 99: 0.99}), rows)
    assert not holds(model.MaxPercentiles({50: 0.5, 99: 0.98}), rows)
    assert holds(model.MinThroughput(5), rows, 20.2)
    assert not holds(model.MinThroughput(5.1), rows, 20.2)
    assert holds(model.MinIterations(101), rows)
    assert not holds(model.MinIterations(102), rows)


@pytest.mark.parametrize(
    ("rule", "time_s", "detail"),
    [
        (model.Objective("p95", 0.2), 0.15, "p95 was 150 ms, wanted p95<200ms"),
        (model.Objective("p95", 0.2), 0.1996, "p95 was 199.6 ms, wanted p95<200ms"),
        (model.Objective("p95", 0.1995), 0.1996, "p95 was 199.6 ms, wanted p95<199.5ms"),
        (model.Objective("p95", 0.0003), 0.0002998, "p95 was 0.2998 ms, wanted p95<0.3ms"),
        (model.MaxPercentiles({95: 0.1996}), 0.1996, "p95 0.200s <= 0.200s - Passed"),
        (model.MaxPercentiles({95: 0.1995}), 0.1996, "p95 0.1996s <= 0.1995s - Failed"),
    ],
)
def test_a_figure_has_the_digits_that_show_on_which_side_of_its_limit_it_is(rule, time_s, detail):
    (check,) = judged([rule], iterations(*[time_s] * 100))
    assert check.detail == detail


def test_a_throughput_just_below_its_limit_is_not_shown_as_equal():
    (check,) = judged([model.MinThroughput(10)], iterations(*[0.1] * 100), load_s=10.003)
    assert check.detail == "Successful iterations per second 9.997 >= 10.000 - Failed"


def test_one_early_failure_aborts_as_in_rally():
    rows = iterations(1, 1, 1, 1, failed=[1])
    assert holds(model.FailureRate(0, 30), rows)
    assert first_failure([model.FailureRate(0, 30)], rows) == 1
    assert first_failure([model.FailureRate(0, 50)], rows) is None


@pytest.mark.parametrize(
    ("rule", "row"),
    [
        (model.MaxSecondsPerIteration(3), 2),
        (model.MaxAvgDuration(2), 2),
        (model.MaxAvgDurationPerAtomic({"a": 2, "none": 0}), 2),
        (model.PerformanceDegradation(300), 3),
        (model.MinIterations(100), None),
    ],
)
def test_the_first_iteration_at_which_a_rule_fails_is_found(rule, row):
    rows = iterations(1, 2, 4, 8, actions={"a": [1, 2, 4, 8]})
    assert first_failure([rule], rows) == row


def test_without_iterations_rallys_rules_hold():
    rules = (model.FailureRate(50, 100), model.MaxSecondsPerIteration(1), model.MaxAvgDuration(1))
    assert all(one.success for one in judged(rules, iterations()))
    assert first_failure(rules, iterations()) is None
