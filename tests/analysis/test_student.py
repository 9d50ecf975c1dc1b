"""Student's t, beside SciPy's."""

from math import inf

import pytest

from loadstone.analysis import student

DEGREES = (1, 1.5, 2, 3, 4.7, 10, 29, 100, 1234.5, 1e6, inf)


@pytest.mark.parametrize("degrees", DEGREES)
@pytest.mark.parametrize("probability", [0.5, 0.6, 0.8, 0.9, 0.95, 0.975, 0.995, 0.99995, 0.025])
def test_quantiles_are_those_of_scipy(probability, degrees):
    from scipy import stats

    expected = stats.t.ppf(probability, degrees)
    assert student.quantile(probability, degrees) == pytest.approx(expected, rel=1e-8, abs=1e-12)


@pytest.mark.parametrize("degrees", DEGREES)
@pytest.mark.parametrize("t", [0.0, 1e-9, 0.3, -1.0, 2.0, 5.0, -12.0, 300.0])
def test_p_values_are_those_of_scipy(t, degrees):
    from scipy import stats

    expected = 2 * stats.t.sf(abs(t), degrees)
    assert student.two_sided_p(t, degrees) == pytest.approx(expected, rel=1e-8, abs=1e-300)


def test_an_infinite_t_has_no_chance():
    assert student.two_sided_p(inf, 3) == 0.0
