from itertools import islice

import pytest

from loadstone.plan.arrivals import due_s
from loadstone.plan.load import OpenLoad, Stage, StagedLoad


def test_iteration_i_of_an_open_load_is_due_at_i_by_the_rate() -> None:
    assert list(due_s(OpenLoad(4.0, 1.0))) == [0.0, 0.25, 0.5, 0.75]
    assert list(due_s(OpenLoad(4.0, 60.0, iterations=3))) == [0.0, 0.25, 0.5]


def test_on_a_ramp_they_are_due_when_the_integral_of_the_rate_reaches_their_number() -> None:
    # From 0 to 8/s within 4 s: 2 t^2 / 2 are due by t.
    ramp = StagedLoad((Stage(4.0, 0.0, 8.0),))
    assert list(islice(due_s(ramp), 5)) == pytest.approx([0.0, 1.0, 2**0.5, 3**0.5, 2.0])
    assert len(list(due_s(ramp))) == 16
