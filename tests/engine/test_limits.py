from dataclasses import replace

import pytest

from loadstone.engine.health import Health
from loadstone.engine.histogram import Histogram
from loadstone.engine.limits import judged, lag_bound_ms, merged
from loadstone.plan.load import BandLoad, ClosedLoad, Load, OpenLoad

GOOD = Health(0.02, 0.3, 2.0, cpu_s=1.0, wall_s=10.0, runqueue_wait_s=0.1, threads=1)


@pytest.mark.parametrize(
    ("load", "bound_ms"),
    [
        (OpenLoad(4, 60), 500 / 4),
        (OpenLoad(50, 60), 20.0),  # half the gap would be 10 ms
        (BandLoad(5, 9, 10, 1, 60), 100.0),
        (BandLoad(1, 9, 100, 1, 60), 20.0),
        (ClosedLoad(4, 60), 20.0),
    ],
)
def test_lag_is_believed_up_to_20_ms_or_half_the_gap_or_a_fifth_of_the_band(
    load: Load, bound_ms: float
) -> None:
    assert lag_bound_ms(load) == pytest.approx(bound_ms)
    assert judged(replace(GOOD, lag_p99_ms=bound_ms), load).is_valid
    assert not judged(replace(GOOD, lag_p99_ms=bound_ms * 1.01), load).is_valid


def test_lag_of_a_closed_loop_is_believed_up_to_a_fiftieth_of_its_workers_cycle() -> None:
    # 8 iterations of 4 workers in 10 s: each takes 5 s, of which 100 ms are a fiftieth.
    slow = replace(GOOD, lag=Histogram.of([1_000_000] * 8))
    load = ClosedLoad(4, 60)
    assert judged(replace(slow, lag_p99_ms=100.0), load).is_valid
    (limit,) = judged(replace(slow, lag_p99_ms=101.0), load).limits
    assert "the limit is 100.0 ms" in limit


def test_a_generator_with_its_core_to_itself_is_valid() -> None:
    assert judged(GOOD, OpenLoad(100, 10)).limits == ()


def test_more_than_70_percent_of_its_cores_is_a_limit() -> None:
    assert judged(replace(GOOD, cpu_s=7.0), OpenLoad(100, 10)).is_valid
    (limit,) = judged(replace(GOOD, cpu_s=7.2), OpenLoad(100, 10)).limits
    assert limit == "the load generator used 72 % of its core (the limit is 70 %)"
    assert judged(replace(GOOD, cpu_s=7.2, threads=2), OpenLoad(100, 10)).is_valid


def test_a_busy_machine_is_named_as_the_reason_of_the_lag() -> None:
    late = replace(GOOD, lag_p99_ms=40.0, runqueue_wait_s=3.0)
    (limit,) = judged(late, OpenLoad(100, 10)).limits
    assert limit == (
        "1 % of the requests were sent more than 40.0 ms late (the limit is 20.0 ms); "
        "the generator waited for a core during 30 % of the run: this machine is busy"
    )


def test_a_request_without_a_local_port_is_a_limit() -> None:
    (limit,) = judged(replace(GOOD, without_port=3), OpenLoad(100, 10)).limits
    assert limit.startswith("3 requests found no free local port on this machine")


def test_a_request_without_an_open_file_is_a_limit() -> None:
    (limit,) = judged(replace(GOOD, without_file=3), OpenLoad(100, 10)).limits
    assert limit.startswith("3 requests found no file left to open on this machine")


def test_a_part_that_had_nothing_to_send_does_not_make_the_load_invalid() -> None:
    load, begun = OpenLoad(1, 1), Histogram.of([1_000])
    idle = judged(replace(GOOD, cpu_s=0.0004, wall_s=0.0005), load)
    sent = judged(replace(idle, lag=begun), load)
    good = replace(GOOD, lag=begun)
    assert merged([good, idle], load).limits == ()
    (limit,) = merged([good, sent], load).limits
    assert limit.startswith("part 1: the load generator used 80 % of its core")


def test_the_counts_of_engines_that_sent_one_load_are_added() -> None:
    first = replace(GOOD, retries=1, connections=10, waited=100, without_port=3, throttled=5)
    second = replace(
        GOOD, wall_s=12.0, retries=2, connections=20, waited=200, without_file=4, is_cut_short=True
    )
    whole = merged([first, second], OpenLoad(100, 10))
    assert (whole.retries, whole.connections, whole.waited) == (3, 30, 300)
    assert (whole.without_port, whole.without_file) == (3, 4)
    assert (whole.throttled, whole.threads) == (5, 2)
    assert (whole.cpu_s, whole.wall_s, whole.is_cut_short) == (2.0, 12.0, True)
