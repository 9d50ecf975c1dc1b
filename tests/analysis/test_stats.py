import numpy as np
import pytest

from loadstone.analysis.model import TICK_S, Durations
from loadstone.analysis.stats import BucketTimes, ExactTimes, Line, compute_stats, growth
from loadstone.engine.samples import Outcome, Samples

MS = 1_000_000


def paced(latencies_ms: list[float], rate_rps: float, wait_ms: float = 0.0) -> Samples:
    n = len(latencies_ms)
    due = (np.arange(n) / rate_rps * 1e9).astype(np.int64)
    done = due + (np.array(latencies_ms) * MS).astype(np.int64)
    return Samples(
        due_ns=due,
        sent_ns=due + int(wait_ms * MS),
        done_ns=done,
        first_byte_us=((done - due) // 1000).astype(np.uint32),
        iteration=np.arange(n, dtype=np.uint32),
        connection=np.zeros(n, dtype=np.uint32),
        status=np.full(n, 200, dtype=np.uint16),
        outcome=np.zeros(n, dtype=np.uint8),
        action=np.zeros(n, dtype=np.uint8),
        retried=np.zeros(n, dtype=np.uint8),
        generator=np.zeros(n, dtype=np.uint16),
    )


def durations(times: ExactTimes | BucketTimes, values: np.ndarray) -> Durations:
    times.add(values)
    return Line(times, len(values)).durations("total")


def test_percentiles_of_one_to_a_hundred() -> None:
    found = durations(ExactTimes(), np.arange(1.0, 101.0))
    assert found.mean_s == 50.5
    assert found.median_s == 50.5
    assert found.p99_s == pytest.approx(99.01)
    assert (found.min_s, found.max_s) == (1.0, 100.0)


def test_percentiles_in_buckets_are_within_a_two_thousandth() -> None:
    values = np.random.default_rng(1).lognormal(-3, 1, 100_000)
    exact, counted = durations(ExactTimes(), values.copy()), durations(BucketTimes(), values)
    for name in ("min_s", "mean_s", "max_s"):
        assert getattr(counted, name) == pytest.approx(getattr(exact, name), abs=1e-9)
    for name in ("median_s", "p90_s", "p95_s", "p99_s"):
        assert getattr(counted, name) == pytest.approx(getattr(exact, name), rel=0.0006)


@pytest.mark.parametrize("times", [ExactTimes, BucketTimes])
def test_percentiles_of_nothing_are_nan(times: type) -> None:
    assert np.isnan(durations(times(), np.zeros(0)).p99_s)


def test_a_late_start_counts_as_latency_and_not_as_service_time() -> None:
    samples = paced([150.0] * 20, rate_rps=10.0, wait_ms=100.0)
    stats = compute_stats(samples, ("",), (), 10.0, 2.0).stats
    assert stats.total.median_s == pytest.approx(0.150)
    assert stats.service.median_s == pytest.approx(0.050)


def test_throughput_is_counted_while_load_was_offered() -> None:
    samples = paced([10.0] * 40, rate_rps=10.0)
    assert compute_stats(samples, ("",), (), 10.0, 4.0).stats.throughput_rps == 10.0


def test_errors_are_named_and_the_most_frequent_comes_first() -> None:
    samples = paced([10.0] * 10, rate_rps=10.0)
    samples.outcome[:3] = Outcome.HTTP_STATUS
    samples.status[:3] = 503
    samples.outcome[3] = Outcome.REFUSED
    samples.status[4] = 299  # expected by the step, so no error
    stats = compute_stats(samples, ("",), (), 10.0, 1.0).stats
    assert stats.errors == (("503 Service Unavailable", 3), ("connection refused", 1))
    assert stats.failed == 4
    assert stats.ok == 6


def test_an_answer_with_a_status_is_not_said_to_be_no_http() -> None:
    samples = paced([10.0] * 3, rate_rps=10.0)
    samples.outcome[:] = Outcome.BAD_HTTP
    samples.status[2] = 0  # nothing of the answer was understood
    assert compute_stats(samples, ("",)).stats.errors == (
        ("answer 200 is not valid HTTP, or lacks an expected value", 2),
        ("answer is not HTTP", 1),
    )


def test_backlog_of_a_service_a_fifth_too_slow_grows_by_a_fifth_of_a_second_per_second() -> None:
    # 10/s offered, 8/s completed: iteration i is done at i / 8.
    n = 400
    due = np.arange(n) / 10
    latencies = ((np.arange(n) / 8 - due) * 1000 + 50).tolist()
    samples = paced(latencies, rate_rps=10.0)
    stats = compute_stats(samples, ("",), (), 10.0, 40.0).stats
    assert stats.backlog_growth == pytest.approx(0.2, abs=0.01)


def test_growth_is_not_fooled_by_a_burst() -> None:
    backlog = np.full(240, 0.2)
    backlog[100:130] = 3.0
    assert growth(backlog) == 0.0


def test_growth_per_second_does_not_depend_on_the_length() -> None:
    for n in (40, 2000):
        assert growth(np.arange(n) * TICK_S * 0.05) == pytest.approx(0.05)
