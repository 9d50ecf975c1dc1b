import numpy as np
import pytest

from loadstone.analysis.stats import compute_stats, ended, iterations_of
from loadstone.engine.callables.model import ITERATION, PAUSE, WAIT
from loadstone.engine.samples import Outcome, Samples


def table(*rows):
    """Rows of (iteration, action, due, sent, done in ms, outcome, status)."""
    iteration, action, due, sent, done, outcome, status = map(np.array, zip(*rows, strict=True))
    return Samples(
        due_ns=due * 10**6,
        sent_ns=np.where(sent < 0, -1, sent * 10**6),
        done_ns=done * 10**6,
        first_byte_us=((done - due) * 10**3).astype(np.uint32),
        iteration=iteration.astype(np.uint32),
        connection=np.zeros(len(due), np.uint32),
        status=status.astype(np.uint16),
        outcome=outcome.astype(np.uint8),
        action=action.astype(np.uint8),
        retried=np.zeros(len(due), np.uint8),
        generator=np.zeros(len(due), np.uint16),
    )


OK, STATUS, REFUSED, NOT_SENT = (
    Outcome.OK,
    Outcome.HTTP_STATUS,
    Outcome.REFUSED,
    Outcome.NOT_SENT,
)
SAMPLES = table(
    (0, 0, 0, 10, 110, OK, 201),
    (1, 0, 0, 0, 200, OK, 201),
    (1, 1, 200, 200, 250, STATUS, 503),
    (0, 1, 110, 110, 160, OK, 200),
    (0, 2, 160, 160, 200, OK, 200),
    (2, 0, 250, -1, 260, REFUSED, 0),
    (3, 0, 260, -1, 270, NOT_SENT, 0),
    (4, 0, 270, 270, 280, OK, 201),
    (4, 1, 280, -1, 280, NOT_SENT, 0),
)
ACTIONS = ("create", "use", "use#2")


def show(samples, actions):
    return compute_stats(samples, actions).stats


def test_figures_are_of_what_ended_well_and_failures_stand_apart():
    stats = show(SAMPLES, ACTIONS)
    assert (stats.total.count, stats.total.ok, stats.cut_off) == (3, 1, 2)
    assert stats.total.success == pytest.approx(1 / 3)
    assert stats.total.median_s == pytest.approx(0.2)
    assert stats.service.median_s == pytest.approx(0.19)
    # The load lasted until the last iteration was cut off.
    assert stats.load_s == pytest.approx(0.28)
    assert stats.throughput_rps == pytest.approx(1 / 0.28)


def test_what_is_done_twice_in_an_iteration_counts_once_with_the_sum_of_its_times():
    create, use = show(SAMPLES, ACTIONS).actions
    assert (create.name, create.count, create.ok) == ("create", 3, 2)
    assert create.max_s == pytest.approx(0.2)
    assert (use.name, use.count, use.ok, use.repeats) == ("use", 2, 1, 2)
    assert use.median_s == pytest.approx(0.09)


def test_failures_are_grouped_by_cause_with_one_message_each():
    failures = show(SAMPLES, ACTIONS).failures
    assert {(failure.cause, failure.count, failure.iteration) for failure in failures} == {
        ("use: 503 Service Unavailable", 1, 2),
        ("create: connection refused", 1, 3),
    }
    assert all(failure.message.startswith(failure.cause) for failure in failures)


def test_rules_judge_iterations_in_the_order_of_their_ends():
    rows = iterations_of(SAMPLES, ACTIONS)
    assert rows.failed.tolist() == [False, True, True]
    assert rows.duration_s.tolist() == pytest.approx([0.2, 0.25, 0.01])
    assert rows.action_s["use"].tolist() == pytest.approx([0.09, 0.05, 0.0])
    assert rows.action_count["use"].tolist() == [2, 1, 0]


def test_nothing_that_ended_gives_no_figures():
    stats = show(table((0, 0, 0, -1, 10, NOT_SENT, 0)), ACTIONS)
    assert (stats.total.count, stats.cut_off, stats.load_s) == (0, 1, 0.01)
    assert np.isnan(stats.total.median_s)


def test_what_lies_inside_an_action_counts_in_it_too():
    stats = show(
        table(
            (0, 0, 0, 0, 10, OK, 201),
            (0, 1, 10, 10, 40, OK, 201),
            (0, 2, 40, 40, 50, OK, 204),
        ),
        ("project", "users/user", "users/user/role"),
    )
    assert [(row.name, row.median_s) for row in stats.actions] == [
        ("project", pytest.approx(0.01)),
        ("users", pytest.approx(0.04)),
        ("users/user", pytest.approx(0.04)),
        ("users/user/role", pytest.approx(0.01)),
    ]


def test_where_the_whole_iteration_has_a_row_an_action_covers_its_inside_itself():
    stats = show(
        table(
            (0, 0, 0, 0, 1, OK, 0),
            (0, 2, 5, 5, 15, OK, 0),
            (0, 1, 1, 1, 21, OK, 0),
            (0, 3, 0, 0, 100, OK, 0),
        ),
        (WAIT, "outer", "outer/inner", ITERATION),
    )
    assert stats.total.median_s == pytest.approx(0.1)
    assert [row.median_s for row in stats.actions] == pytest.approx([0.02, 0.01])


def test_a_sign_of_repeats_in_the_name_of_a_functions_action_is_part_of_the_name():
    rows = table(
        (0, 0, 0, 0, 1, OK, 0),
        (0, 1, 1, 1, 11, OK, 0),
        (0, 2, 11, 11, 31, OK, 0),
        (0, 3, 0, 0, 40, OK, 0),
    )
    actions = (WAIT, "boot #1", "boot #2", ITERATION)
    found = [(row.name, row.median_s) for row in show(rows, actions).actions]
    assert found == [("boot #1", pytest.approx(0.01)), ("boot #2", pytest.approx(0.02))]
    assert set(iterations_of(rows, actions).action_s) == {"boot #1", "boot #2"}


def test_a_pause_is_in_no_duration():
    stats = show(
        table((0, 0, 0, 0, 10, OK, 200), (0, 1, 10, 10, 60, OK, 0), (0, 2, 60, 60, 75, OK, 200)),
        ("boot", PAUSE, "delete"),
    )
    assert stats.total.median_s == pytest.approx(0.025)
    assert stats.idle is not None
    assert stats.idle.median_s == pytest.approx(0.05)
    assert stats.load_s == pytest.approx(0.075)
    assert [row.name for row in stats.actions] == ["boot", "delete"]


def test_a_pause_that_did_not_begin_takes_no_time():
    """The iteration's time was over when its first answer came."""
    samples = table((0, 0, 5000, 5000, 5100, OK, 200), (0, 1, 5100, -1, 5100, Outcome.TIMED_OUT, 0))
    rows = ended(samples, ("boot", PAUSE))
    assert rows.idle_s.tolist() == [0.0]
    assert rows.duration_s.tolist() == pytest.approx([0.1])
