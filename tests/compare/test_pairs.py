"""Comparisons of services that are too slow for a complete pair of turns."""

import numpy as np
import pytest

from loadstone.compare.answer import ComparisonAnswer, Criteria, MetricComparison
from loadstone.compare.bisect import StepAnswer, step_of
from loadstone.compare.metrics import THROUGHPUT
from loadstone.compare.pairs import is_answered, of_turns
from loadstone.compare.turns import Duet, Turns

pytestmark = pytest.mark.pure
NONE = Turns(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64))


@pytest.mark.parametrize("most_slower", [None, 0.05])
def test_without_a_complete_pair_of_turns_there_is_no_answer(most_slower: float | None) -> None:
    found = of_turns([Duet(16, (NONE, NONE), {})] * 6, Criteria())
    assert found.pairs == 6
    assert not is_answered(found, most_slower)


def test_a_version_of_which_nothing_was_measured_is_undecided() -> None:
    whole = MetricComparison(THROUGHPUT, 10, 5, 0.5, 0.4, 0.6, 8, ComparisonAnswer.SLOWER, 0.01)
    step = step_of(3, (), whole)
    assert (step.answer, step.row) == (StepAnswer.UNDECIDED, None)
    assert step.failure == "no complete pair was measured"
