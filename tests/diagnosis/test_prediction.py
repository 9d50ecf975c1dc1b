"""Predicted capacity beside services whose capacity is known."""

import math
import random

import pytest

from loadstone.diagnosis.demand import BottleneckKind, Observation, ResourceUse
from loadstone.diagnosis.prediction import LowLoadFigures, is_upper_bound, predict, throughput
from loadstone.monitor.roles import Role

AT_RPS, SECONDS = 1.2, 30.0
REQUESTS = int(AT_RPS * SECONDS)


def cpu(role, name, demand_s, cores):
    kind = BottleneckKind.CPU
    return ResourceUse(name, kind, role, demand_s * AT_RPS, cores, "cores", demand_s)


def observed(*uses, others=0.0, cores=2.0, **figures):
    """What low load shows of a service on one machine."""
    used = sum(one.busy for one in uses if one.kind is BottleneckKind.CPU) + others
    machine = ResourceUse(
        "the machine's CPU", BottleneckKind.CPU, "machine", used, cores, "cores", used / AT_RPS
    )
    return Observation(SECONDS, REQUESTS, (machine, *uses), tuple(figures.items()))


def keystone(demand_s, cores=2.0):
    return cpu(Role.KEYSTONE, "Keystone's CPU", demand_s, cores)


def simulated(workers, cores, cpu_s, delay_s, requests=60_000):
    """Saturated throughput of workers that use CPU and wait, simulated event by event."""
    draw = random.Random(16)
    at_cpu, now_s, done = workers, 0.0, 0
    while done < requests:
        ends = min(at_cpu, cores) / cpu_s
        returns = (workers - at_cpu) / delay_s if delay_s else 0.0
        now_s += draw.expovariate(ends + returns)
        if draw.random() * (ends + returns) < ends:
            done += 1
            at_cpu -= 1 if delay_s else 0
        else:
            at_cpu += 1
    return done / now_s


@pytest.mark.parametrize(
    ("workers", "cores", "cpu_s", "delay_s"),
    [
        (1, 2, 0.25, 0.05),
        (2, 2, 0.25, 0.05),
        (4, 2, 0.1, 0.1),
        (8, 2, 0.02, 0.1),
        (16, 8, 0.1, 0.3),
    ],
)
def test_the_prediction_is_what_a_simulated_service_completes(workers, cores, cpu_s, delay_s):
    truth_rps = simulated(workers, cores, cpu_s, delay_s)
    found = predict(
        observed(keystone(cpu_s, cores), cores=cores, workers=workers),
        LowLoadFigures(response_s=cpu_s + delay_s, spread_s=0.0),
    )
    assert found.rate_rps == pytest.approx(truth_rps, rel=0.03)
    assert found.low_rps <= truth_rps <= found.high_rps


def test_one_worker_does_one_request_after_the_other():
    assert throughput(1, [(0.2, 2.0)], 0.3) == pytest.approx(1 / 0.3)


def test_more_workers_than_any_machine_has_meet_the_bound_of_the_cores():
    assert throughput(100_000, [(0.2, 4.0)], 0.3) == pytest.approx(20.0, rel=1e-3)


def test_a_database_on_a_core_of_its_own_gives_way_before_keystone():
    database = cpu(Role.DATABASE, "the database's CPU", 0.1, 1.0)
    seen = observed(keystone(0.05, 8.0), database, cores=8.0, workers=8)
    found = predict(seen, LowLoadFigures(0.16, 0.0))
    assert found.limit == "the database's CPU"
    assert found.rate_rps == pytest.approx(10.0)


def test_workers_that_mostly_wait_give_way_before_the_cores():
    found = predict(observed(keystone(0.01), workers=2), LowLoadFigures(0.1, 0.0))
    assert found.limit == "Keystone's worker threads"
    assert found.rate_rps == pytest.approx(20.0, rel=0.01)


@pytest.mark.parametrize(
    ("workers", "response_s", "is_bound"), [(0, 0.1, True), (0, 0.02, False), (2, 0.1, False)]
)
def test_requests_that_wait_in_unknown_workers_give_an_upper_bound(workers, response_s, is_bound):
    known = {"workers": workers} if workers else {}
    seen = observed(keystone(0.005), **known)
    assert is_upper_bound(seen, LowLoadFigures(response_s, 0.0)) is is_bound


def test_the_sessions_that_a_balancer_lets_through_bound_the_rate():
    name = "the balancer's sessions to its servers"
    sessions = ResourceUse(name, BottleneckKind.BALANCER, Role.BALANCER, 0.1, 2, "sessions", 0.1)
    found = predict(
        observed(keystone(0.02, 8.0), sessions, cores=8.0, workers=8), LowLoadFigures(0.1, 0)
    )
    assert found.limit == name
    assert found.rate_rps == pytest.approx(20.0, rel=0.01)


def test_cores_that_other_programs_take_widen_the_interval_downwards():
    alone = predict(observed(keystone(0.25), workers=2), LowLoadFigures(0.26, 0.0))
    beside = predict(observed(keystone(0.25), others=1.0, workers=2), LowLoadFigures(0.26, 0.0))
    assert beside.low_rps < 0.7 * alone.low_rps
    assert beside.high_rps == pytest.approx(alone.high_rps)


def test_threads_that_may_share_pythons_lock_widen_the_interval_downwards():
    seen = observed(keystone(0.1, 4.0), cores=4.0, workers=1, threads_per_worker=8)
    found = predict(seen, LowLoadFigures(0.1, 0.0))
    assert found.rate_rps > 30
    assert found.low_rps <= 10.0


def test_requests_that_differ_widen_the_interval():
    alike = predict(observed(keystone(0.25), workers=2), LowLoadFigures(0.26, 0.0))
    unlike = predict(observed(keystone(0.25), workers=2), LowLoadFigures(0.26, 0.3))
    assert unlike.high_rps - unlike.low_rps > 1.3 * (alike.high_rps - alike.low_rps)


def test_what_no_worker_count_is_known_of_has_the_bound_of_its_cores():
    found = predict(observed(keystone(0.25)), LowLoadFigures(0.26, 0.0))
    assert found.rate_rps == pytest.approx(8.0)


def test_nothing_is_predicted_where_only_the_generator_was_seen():
    generator = cpu(Role.GENERATOR, "the load generator's CPU", 0.01, 2.0)
    assert predict(observed(generator), LowLoadFigures(0.1, 0.0)) is None


def test_another_machine_whose_processes_are_not_told_apart_counts_as_a_whole():
    far = ResourceUse(
        "the machine's CPU of ctrl1", BottleneckKind.CPU, "machine", 0.3, 4, "cores", 0.25
    )
    found = predict(Observation(SECONDS, REQUESTS, (far,)), LowLoadFigures(0.3, 0.0))
    assert found.rate_rps == pytest.approx(16.0)
    assert math.isfinite(found.high_rps)


def test_what_the_load_generator_uses_beside_the_requests_is_no_cost_of_theirs():
    generator = cpu(Role.GENERATOR, "the load generator's CPU", 0.02, 2.0)
    alone = predict(observed(keystone(0.25), workers=2), LowLoadFigures(0.26, 0.0))
    beside = predict(observed(keystone(0.25), generator, workers=2), LowLoadFigures(0.26, 0.0))
    assert beside.rate_rps == alone.rate_rps
    assert beside.low_rps == pytest.approx(alone.low_rps, rel=0.05)


def test_a_request_that_costs_more_alone_waits_no_longer_for_it():
    # Alone each took 120 ms of CPU and 5 ms beside it; in bursts 100 ms of CPU.
    found = predict(observed(keystone(0.1), workers=2), LowLoadFigures(0.125, 0.0, cpu_s=0.12))
    assert found.rate_rps == pytest.approx(2 / 0.105)
