import numpy as np
import pytest

from loadstone.analysis.performance import for_sla, show
from loadstone.engine.samples import Outcome, Samples


def table(*rows):
    """Rows of (iteration, action, due, sent, done in ms, outcome, status)."""
    iteration, action, due, sent, done, outcome, status = map(np.array, zip(*rows, strict=True))
    return Samples(
        due_ns=due * 10**6,
        sent_ns=np.where(sent < 0, -1, sent * 10**6),
        first_byte_ns=done * 10**6,
        done_ns=done * 10**6,
        iteration=iteration.astype(np.uint32),
        connection=np.zeros(len(due), np.uint16),
        status=status.astype(np.uint16),
        outcome=outcome.astype(np.uint8),
        action=action.astype(np.uint8),
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
ACTIONS = ("create", "use", "use")


def test_figures_are_of_what_ended_well_and_failures_stand_apart():
    showing = show(SAMPLES, ACTIONS)
    assert (showing.total.count, showing.total.ok, showing.cut_off) == (3, 1, 2)
    assert showing.total.success == pytest.approx(1 / 3)
    assert showing.total.median_s == pytest.approx(0.2)
    assert showing.service.median_s == pytest.approx(0.19)
    assert showing.load_s == pytest.approx(0.26)
    assert showing.throughput_rps == pytest.approx(1 / 0.26)


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
    rows = for_sla(SAMPLES, ACTIONS)
    assert rows.failed.tolist() == [False, True, True]
    assert rows.duration_s.tolist() == pytest.approx([0.2, 0.25, 0.01])
    assert rows.action_s["use"].tolist() == pytest.approx([0.09, 0.05, 0.0])
    assert rows.action_count["use"].tolist() == [2, 1, 0]


def test_nothing_that_ended_gives_no_figures():
    showing = show(table((0, 0, 0, -1, 10, NOT_SENT, 0)), ACTIONS)
    assert (showing.total.count, showing.cut_off, showing.load_s) == (0, 1, 0.0)
    assert np.isnan(showing.total.median_s)
