from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typing_extensions import TypeAliasType

from loadstone.analysis.model import Durations, TrialState, Verdict
from loadstone.monitor.usage import Usage
from loadstone.result.model import Environment
from loadstone.search.model import Capacity
from loadstone.store import codec

EVERY = [Durations, Verdict, Usage, Environment, Capacity]
values = st.sampled_from(EVERY).flatmap(st.from_type)


@pytest.mark.long
@given(values)
def test_every_value_comes_back_exactly(value):
    again = codec.loads(type(value), codec.dumps(value))
    assert repr(again) == repr(value)  # NaN is no equal of itself


def test_a_float_that_is_no_number_is_written_as_strict_json():
    written = codec.dumps(Durations("total", 1, 1, *[float("nan")] * 6, float("inf")))
    assert '"min_s":"NaN"' in written
    assert '"mean_s":"Infinity"' in written


def test_a_value_of_an_older_version_takes_the_defaults():
    assert codec.loads(Capacity, '{"rate_rps":7,"low_rps":null,"high_rps":8,"confidence":0.5}') == (
        Capacity(7.0, None, 8.0, 0.5)
    )


def test_fields_that_a_newer_version_added_are_left_out():
    assert codec.loads(Verdict, '{"state":"invalid","reasons":["late"],"mood":"bad"}') == (
        Verdict(TrialState.INVALID, ("late",))
    )


@pytest.mark.parametrize(
    "text",
    ['{"state":"invalid"}', "[1]", '{"state":"excellent","reasons":[]}', '{"state":1,"reasons":3}'],
)
def test_what_does_not_fit_is_refused(text):
    with pytest.raises(ValueError, match=r"Verdict|State|list"):
        codec.loads(Verdict, text)


def test_columns_come_back_as_whole_numbers():
    @dataclass(frozen=True)
    class Counts:
        n: np.ndarray[tuple[int], np.dtype[np.int64]]

    again = codec.from_plain(Counts, {"n": [1, 2**40]})
    assert again.n.dtype == np.int64
    assert again.n.tolist() == [1, 2**40]


def test_an_array_is_read_whose_type_is_an_alias() -> None:
    """NumPy's NDArray is one (PEP 695) from Python 3.12 on."""
    scalar = TypeVar("scalar", bound=np.generic)
    shape = tuple[Any, ...]
    array = TypeAliasType("array", np.ndarray[shape, np.dtype[scalar]], type_params=(scalar,))
    counts = codec.from_plain(array[np.int64], [1, 2])
    assert isinstance(counts, np.ndarray)
    assert counts.tolist() == [1, 2]
