import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadstone.analysis.model import TICK_S, Ticks
from loadstone.search.change import change
from loadstone.search.pool import Pool, estimate, saturated


def pool(*rates: float, seconds: float = 15.0, noise: float = 0.0, seed: int = 1) -> Pool:
    random = np.random.default_rng(seed)
    ticks = round(seconds / TICK_S)
    return Pool(tuple(rate * TICK_S + noise * TICK_S * random.normal(size=ticks) for rate in rates))


def test_only_ticks_that_began_and_ended_saturated_count() -> None:
    in_flight = np.array([0, 9, 9, 9, 9, 9, 9, 9, 9, 2, 9, 9])
    ok = np.full(12, 5)
    zero = np.zeros(12, dtype=np.int64)
    found = saturated(Ticks(ok, ok, zero, in_flight), least_in_flight=4)
    assert [len(stretch) for stretch in found.stretches] == [7]


def test_errors_are_left_out_on_demand() -> None:
    n = np.full(20, 5)
    found = saturated(Ticks(n * 2, n, n, np.full(20, 9)), 4, only_ok=True)
    assert found.count == 5 * len(found.stretches[0])


def test_a_constant_rate_is_found_and_its_interval_is_narrow_but_not_nothing() -> None:
    found = estimate(pool(40.0, 40.0))
    assert found is not None
    assert found.rate_rps == pytest.approx(40.0)
    assert 0 < found.half_width_rps < 0.2


def test_too_little_gives_no_estimate() -> None:
    assert estimate(pool(40.0, seconds=4.0)) is None
    assert estimate(Pool()) is None


def test_the_interval_covers_the_rate_as_often_as_it_says() -> None:
    covered = 0
    for seed in range(400):
        found = estimate(pool(40.0, 40.0, 40.0, noise=8.0, seed=seed))
        assert found is not None
        covered += abs(found.rate_rps - 40.0) <= found.half_width_rps
    assert covered >= 0.93 * 400


def test_slow_noise_widens_the_interval() -> None:
    quiet = estimate(pool(40.0, 40.0, noise=1.0))
    shifting = estimate(pool(42.0, 38.0, noise=1.0))
    assert quiet is not None
    assert shifting is not None
    assert shifting.half_width_rps > 2 * quiet.half_width_rps


def test_dispersion_is_that_of_the_counts() -> None:
    random = np.random.default_rng(3)
    found = estimate(Pool((random.poisson(20.0, 2000).astype(float),)))
    assert found is not None
    assert found.dispersion == pytest.approx(1.0, abs=0.35)


@given(st.floats(5, 500), st.integers(1, 6))
def test_the_rate_lies_between_the_least_and_the_most(rate: float, stretches: int) -> None:
    found = estimate(pool(*[rate] * stretches, noise=rate / 10))
    assert found is not None
    assert 0.8 * rate < found.rate_rps < 1.2 * rate


@pytest.mark.parametrize(("after_rps", "is_change"), [(25.0, True), (0.0, False)])
def test_a_service_that_stops_has_no_new_level(after_rps: float, is_change: bool) -> None:
    stretches = (*pool(50.0, seconds=40.0).stretches, *pool(after_rps, seconds=40.0).stretches)
    found = change([(1, Pool((np.concatenate(stretches),)))])
    assert (found is not None) == is_change
