from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from realistic import ISSUE, served

from loadstone.analysis import series
from loadstone.engine.callables.model import PAUSE
from loadstone.engine.samples import Outcome, Samples


def of(due_s, latency_s, outcome=None) -> Samples:
    n = len(due_s)
    due_ns = (np.array(due_s, dtype=float) * 1e9).astype(np.int64)
    done_ns = due_ns + (np.array(latency_s, dtype=float) * 1e9).astype(np.int64)
    return Samples(
        due_ns=due_ns,
        sent_ns=due_ns,
        done_ns=done_ns,
        first_byte_us=((done_ns - due_ns) // 1000).astype(np.uint32),
        iteration=np.arange(n, dtype=np.uint32),
        connection=np.zeros(n, np.uint32),
        status=np.full(n, 200, np.uint16),
        outcome=np.array(outcome if outcome is not None else [Outcome.OK] * n, np.uint8),
        action=np.zeros(n, np.uint8),
        retried=np.zeros(n, np.uint8),
        generator=np.zeros(n, np.uint16),
    )


def points_of(samples: Samples) -> series.Points:
    return series.points(samples, ("issue",))


def test_the_points_are_each_request_in_the_order_in_which_it_was_due():
    points = points_of(served(ISSUE[2], 0.278, seed=1))
    assert len(points) == 414
    assert (np.diff(points.due_s) >= 0).all()
    assert points.latency_ms.min() > 200


def test_a_request_that_was_never_sent_is_no_point():
    points = points_of(of([0, 1, 2], [0.1, 0.2, 0.3], [Outcome.OK, Outcome.NOT_SENT, 9]))
    assert points.due_s.tolist() == [0, 2]
    assert points.is_ok.tolist() == [True, False]


def test_a_pause_is_in_no_latency():
    asked = of([0, 0.1, 60.1, 1, 1.2, 61.2], [0.1, 60, 0.3, 0.2, 60, 0.1])
    asked = replace(
        asked,
        iteration=np.array([0, 0, 0, 1, 1, 1], np.uint32),
        action=np.array([0, 1, 2] * 2, np.uint8),
        status=np.array([201, 0, 404] * 2, np.uint16),
    )
    points = series.points(asked, ("revoke", PAUSE, "validate"))
    assert points.due_s.tolist() == [0, 1]
    assert points.latency_ms == pytest.approx([400, 300])


@given(st.integers(20, 3000), st.integers(20, 400))
def test_thinned_points_keep_the_slowest_and_both_ends(count, most):
    random = np.random.default_rng(count)
    every = points_of(of(np.arange(count) / 10, random.exponential(1, count)))
    few = series.thinned(every, most)
    assert len(few) <= max(most, 1)
    assert few.latency_ms.max() == every.latency_ms.max()
    assert (few.due_s[0], few.due_s[-1]) == (every.due_s[0], every.due_s[-1])
    assert (np.diff(few.due_s) >= 0).all()


def test_bins_of_a_level_service_are_level():
    bins = series.bins(points_of(of(np.arange(0, 60, 0.1), [0.05] * 600)), 80)
    assert bins.middle_s.tolist() == [second + 0.5 for second in range(60)]
    assert bins.p50_ms == pytest.approx(50)


def test_a_slow_service_gets_wide_bins():
    bins = series.bins(points_of(of(np.arange(0, 60, 2), [0.05] * 30)), 80)
    assert bins.middle_s.tolist() == [10.0, 30.0, 50.0]


@pytest.mark.parametrize("count", [0, 1])
def test_a_trial_of_hardly_a_request_has_no_bins(count):
    samples = of(np.arange(count), [0.1] * count)
    points = points_of(samples)
    assert len(points) == count
    assert len(series.bins(points, 80).middle_s) == 0
    assert len(series.thinned(points, 5)) == count


def test_shares_say_how_many_were_answered_within_which_time():
    points = points_of(of(np.arange(1000) / 10, np.arange(1, 1001) / 1000))
    within_ms, percent = series.shares(points)
    assert within_ms[percent == 50] == pytest.approx(500.5)
    assert (within_ms[0], within_ms[-1]) == (pytest.approx(1), pytest.approx(1000))
    assert len(series.shares(points_of(of([], [])))[0]) == 0
