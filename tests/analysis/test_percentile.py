"""Percentiles, beside NumPy's."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadstone.analysis.stats import percentile

PERCENTS = [0, 50, 90, 95, 99, 100]


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=300))
def test_percentiles_are_those_of_numpy(values):
    found = percentile(np.array(values), PERCENTS)
    assert found == pytest.approx(np.percentile(values, PERCENTS).tolist())
