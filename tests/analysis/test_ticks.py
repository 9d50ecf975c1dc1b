import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from loadstone.analysis.iterations import iterations
from loadstone.analysis.model import TICK_S, Ticks
from loadstone.analysis.stats import compute_stats
from loadstone.engine.samples import Outcome, Samples

SECOND = 1_000_000_000


def ticks(samples: Samples, load_s: float) -> Ticks:
    return compute_stats(samples, ("first", "second", "third"), offered_s=load_s).timeline


def samples(rows: list[tuple[int, int, float, float, Outcome]]) -> Samples:
    """(iteration, action, due s, done s, outcome) in order of completion."""
    ordered = sorted(rows, key=lambda row: row[3])
    due = np.array([int(row[2] * SECOND) for row in ordered], dtype=np.int64)
    done = np.array([int(row[3] * SECOND) for row in ordered], dtype=np.int64)
    return Samples(
        due_ns=due,
        sent_ns=due,
        done_ns=done,
        first_byte_us=((done - due) // 1000).astype(np.uint32),
        iteration=np.array([row[0] for row in ordered], dtype=np.uint32),
        connection=np.zeros(len(rows), dtype=np.uint32),
        status=np.array([200 if row[4] is Outcome.OK else 0 for row in ordered], dtype=np.uint16),
        outcome=np.array([row[4] for row in ordered], dtype=np.uint8),
        action=np.array([row[1] for row in ordered], dtype=np.uint8),
        retried=np.zeros(len(rows), dtype=np.uint8),
        generator=np.zeros(len(rows), dtype=np.uint16),
    )


def test_an_iteration_ends_with_its_last_step() -> None:
    rows = [(0, 0, 0.1, 0.4, Outcome.OK), (0, 1, 0.4, 1.2, Outcome.OK)]
    counts = ticks(samples(rows), load_s=2.0)
    assert counts.due.tolist() == [1, 0, 0, 0]
    assert counts.ok.tolist() == [0, 0, 1, 0]
    assert counts.in_flight.tolist() == [1, 1, 0, 0]


def test_an_iteration_ends_with_its_first_failed_step() -> None:
    counts = ticks(samples([(0, 0, 0.1, 0.7, Outcome.RESET)]), load_s=1.0)
    assert counts.failed.tolist() == [0, 1]
    assert counts.in_flight.tolist() == [1, 0]


def test_what_was_due_and_not_sent_stays_in_the_backlog() -> None:
    rows = [(0, 0, 0.1, 0.3, Outcome.OK), (1, 0, 0.2, 0.9, Outcome.NOT_SENT)]
    counts = ticks(samples(rows), load_s=1.0)
    assert counts.in_flight.tolist() == [1, 1]
    assert counts.failed.sum() == 0


def test_an_iteration_cut_off_between_two_steps_has_not_ended() -> None:
    rows = [(7, 0, 0.1, 0.3, Outcome.OK), (7, 1, 0.3, 0.4, Outcome.NOT_SENT)]
    assert not iterations(samples(rows)).has_ended.any()


def test_an_iteration_that_left_out_its_last_step_has_ended_well() -> None:
    rows = [
        (7, 0, 0.1, 0.3, Outcome.OK),
        (8, 0, 0.1, 0.4, Outcome.OK),
        (8, 1, 0.4, 0.5, Outcome.OK),
    ]
    assert iterations(samples(rows)).is_ok.tolist() == [True, True]


def test_a_failed_iteration_stays_failed_when_it_cleans_up_well() -> None:
    rows = [
        (3, 0, 0.1, 0.3, Outcome.OK),
        (3, 1, 0.3, 0.5, Outcome.RESET),
        (3, 2, 0.5, 0.9, Outcome.OK),
        (4, 0, 0.5, 0.8, Outcome.OK),
    ]
    ended = iterations(samples(rows))
    assert ended.is_failed.tolist() == [True, False]
    assert ended.outcome.tolist() == [Outcome.RESET, Outcome.OK]
    assert ended.done_ns.tolist() == [int(0.9 * SECOND), int(0.8 * SECOND)]


def test_latency_of_an_iteration_runs_from_its_first_due_instant() -> None:
    rows = iterations(samples([(0, 0, 0.1, 0.4, Outcome.OK), (0, 1, 0.4, 1.1, Outcome.OK)]))
    assert (rows.done_ns - rows.due_ns).tolist() == [SECOND]


def test_no_samples_give_empty_ticks() -> None:
    assert ticks(samples([]), load_s=1.0).due.tolist() == [0, 0]


@given(
    st.lists(
        st.tuples(st.floats(0, 9.9), st.floats(0, 5), st.sampled_from(list(Outcome))), max_size=60
    )
)
def test_every_iteration_is_counted_once(
    drawn: list[tuple[float, float, Outcome]],
) -> None:
    rows = [(i, 0, due, due + lasts, out) for i, (due, lasts, out) in enumerate(drawn)]
    counts = ticks(samples(rows), load_s=20.0)
    unsent = sum(row[4] is Outcome.NOT_SENT for row in rows)
    assert counts.due.sum() == len(rows)
    assert counts.ok.sum() + counts.failed.sum() == len(rows) - unsent
    assert (counts.in_flight >= 0).all()
    assert len(counts.due) == 20 / TICK_S
    assert (counts.in_flight[-1] if rows else 0) == unsent
