"""Comparisons of services that are too slow for a complete pair of turns."""

import numpy as np
import pytest

from loadstone.compare.answer import ComparisonAnswer, Criteria, MetricComparison
from loadstone.compare.bisect import StepAnswer, step_of
from loadstone.compare.metrics import REQUEST_TIME, THROUGHPUT
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


def singles(ratio: float, start: int | None) -> list[Duet]:
    """Return eight pairs whose request times differ by a ratio, all of one start."""
    both = [(0.1, 0.1 * ratio * (1 + 0.001 * (-1) ** number)) for number in range(8)]
    return [Duet(1, (NONE, NONE), {REQUEST_TIME: times}, start) for times in both]


def test_a_small_difference_of_one_start_may_be_that_of_the_start() -> None:
    known = of_turns(singles(1.02, 1), Criteria())
    assert known.metrics[0].answer is ComparisonAnswer.UNKNOWN
    assert "Keystone was started anew once, on both sides at the same time." in known.statements


def test_where_nothing_is_started_anew_a_small_difference_comes_with_a_warning() -> None:
    small, large = (of_turns(singles(ratio, None), Criteria()) for ratio in (1.03, 1.2))
    assert [one.metrics[0].answer for one in (small, large)] == [ComparisonAnswer.SLOWER] * 2
    [said] = small.statements
    assert said.startswith("Both services went on as they were. Two starts of one deployment")
    assert "by up to 6 % in request time" in said
    assert large.statements == ()
