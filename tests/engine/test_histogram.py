import pytest
from hypothesis import given
from hypothesis import strategies as st
from loopback import OK, Serve, answering

from loadstone.engine.histogram import Histogram
from loadstone.engine.local import run
from loadstone.plan.load import OpenLoad

VALUES = st.lists(st.integers(-5, 2**63), max_size=50)


@given(VALUES, VALUES)
def test_merged_histograms_are_that_of_all_values(some: list[int], others: list[int]) -> None:
    merged = Histogram.merged([Histogram.of(some), Histogram.of(others)])
    assert merged == Histogram.of([*some, *others])


def test_quantiles_of_a_known_distribution() -> None:
    histogram = Histogram.of(value * 1000 for value in range(1, 1001))
    assert histogram.quantile_ms(0.5) == pytest.approx(0.5, rel=0.035)
    assert histogram.quantile_ms(0.99) == pytest.approx(0.99, rel=0.035)
    assert histogram.quantile_ms(1.0) == 1.0


def test_without_values_there_is_no_lag() -> None:
    assert Histogram().quantile_ms(0.99) == 0.0


def test_the_engine_uses_the_same_buckets(serve: Serve) -> None:
    health = run(serve(answering(OK)).plan(OpenLoad(200, 0.5))).health
    assert health.lag.total == health.wait.total == 100
    for histogram in (health.lag, health.wait):
        ends = [end_ns for end_ns, _ in histogram.buckets]
        assert Histogram.of(ends).buckets == tuple((end_ns, 1) for end_ns in ends)
    assert health.lag.quantile_ms(0.5) == health.lag_p50_ms
    assert health.lag.quantile_ms(0.99) == health.lag_p99_ms
