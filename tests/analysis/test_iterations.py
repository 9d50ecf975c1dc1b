import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from loadstone.analysis.iterations import iterations
from loadstone.engine.samples import Outcome, Samples


def table(numbers: list[int]) -> Samples:
    """One row per number, completed in this order; the outcome tells the rows apart."""
    done = np.arange(len(numbers), dtype=np.int64) * 100
    return Samples(
        due_ns=done - 50,
        sent_ns=done - 40,
        done_ns=done,
        first_byte_us=np.zeros(len(numbers), np.uint32),
        iteration=np.array(numbers, np.uint32),
        connection=np.zeros(len(numbers), np.uint32),
        status=np.arange(len(numbers), dtype=np.uint16) + 100,
        outcome=np.full(len(numbers), Outcome.OK, np.uint8),
        action=np.zeros(len(numbers), np.uint8),
        retried=np.zeros(len(numbers), np.uint8),
        generator=np.zeros(len(numbers), np.uint16),
    )


@given(st.permutations(range(7, 19)))
def test_iterations_of_one_row_are_put_in_their_order(numbers: list[int]) -> None:
    rows = iterations(table(numbers))
    assert rows.status.tolist() == [numbers.index(number) + 100 for number in range(7, 19)]
    assert (rows.done_ns - rows.due_ns == 50).all()


@given(st.lists(st.integers(0, 6), max_size=12))
def test_iterations_of_any_number_of_rows_begin_with_the_first_and_end_with_the_last(
    numbers: list[int],
) -> None:
    rows = iterations(table(numbers))
    known = sorted(set(numbers))
    last = [len(numbers) - 1 - numbers[::-1].index(number) for number in known]
    assert rows.due_ns.tolist() == [numbers.index(number) * 100 - 50 for number in known]
    assert rows.done_ns.tolist() == [row * 100 for row in last]
