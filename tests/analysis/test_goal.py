import pytest

from loadstone.analysis import criteria
from loadstone.analysis.goal import Goal, Objective, goal, with_rules
from loadstone.errors import InvalidInput


def test_rules_of_an_sla_become_objectives_where_a_trial_shows_their_figure():
    rules = (
        criteria.FailureRate(max_percent=2.5),
        criteria.MaxAvgDuration(0.3),
        criteria.MaxSecondsPerIteration(5.0),
        criteria.MaxPercentiles({95.0: 1.0, 99.0: 2.0}),
    )
    found, left_out = with_rules(rules)
    assert left_out == ()
    assert found.error_share == 0.025
    assert set(found.objectives) == {
        Objective("mean", 0.3),
        Objective("max", 5.0),
        Objective("p95", 1.0),
        Objective("p99", 2.0),
    }


def test_rules_that_no_trial_shows_are_named():
    rules = (
        criteria.FailureRate(min_percent=1.0),
        criteria.MaxPercentiles({99.9: 1.0}),
        criteria.Outliers(),
        criteria.PerformanceDegradation(50.0),
        criteria.MaxAvgDurationPerAtomic({"a": 1.0}),
        criteria.MinThroughput(5.0),
        criteria.MinIterations(10),
    )
    found, left_out = with_rules(rules)
    assert found == Goal(error_share=1.0)
    assert left_out == (
        "failure_rate.min",
        "max_percentiles.99.9",
        "outliers",
        "performance_degradation",
        "max_avg_duration_per_atomic",
        "min_throughput",
        "min_iterations",
    )


def test_objectives_of_the_command_line_go_before_the_sla():
    found, _ = with_rules((criteria.FailureRate(max_percent=0.0), criteria.MaxAvgDuration(1.0)))
    assert str(found) == "errors<=0%, mean<1000ms"
    both = goal(("errors<0.5%", "p99<2s"), found)
    assert str(both) == "errors<=0.5%, mean<1000ms, p99<2000ms"


def test_a_task_whose_errors_show_no_n_needs_an_objective() -> None:
    found, _ = with_rules((criteria.FailureRate(max_percent=75.0),))
    with pytest.raises(InvalidInput, match=r"lets 75 % of its iterations fail, .* at most 50 %"):
        goal(("p99<1s",), found)
    assert goal(("errors<1%",), found).error_share == 0.01
