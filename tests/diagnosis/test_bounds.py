"""Upper bounds of throughput, with one more core or worker."""

import pytest

from loadstone.diagnosis.bounds import ServiceChange, upper_bound
from loadstone.diagnosis.demand import BottleneckKind, Observation, ResourceUse
from loadstone.monitor.roles import Role

CPU = BottleneckKind.CPU


def seen(*uses, cores=2.0, machine_s=0.1, **figures):
    machine = ResourceUse("the machine's CPU", CPU, "machine", 1.9, cores, "cores", machine_s)
    return Observation(10.0, 200, (machine, *uses), tuple(figures.items()))


def keystone(demand_s, cores):
    return ResourceUse("Keystone's CPU", CPU, Role.KEYSTONE, 1.8, cores, "cores", demand_s)


def workers(count, held_s):
    name = "Keystone's worker threads"
    return ResourceUse(name, BottleneckKind.WORKERS, Role.KEYSTONE, count, count, "threads", held_s)


def test_cores_that_are_short_bound_the_rate_and_another_worker_does_not_help():
    # Four workers on two cores: each request waits 80 ms for a core.
    found = seen(
        keystone(0.09, 2.0), workers(4, 0.18), workers=4, threads_per_worker=1, worker_cpu_wait=0.4
    )
    now = upper_bound(found)
    assert (now.rate_rps, now.limit) == (pytest.approx(20.0), "the machine's CPU")
    assert upper_bound(found, ServiceChange(more_workers=1)) == now
    more = upper_bound(found, ServiceChange(more_cores=1))
    assert more.rate_rps == pytest.approx(30.0)


def test_one_worker_bounds_the_rate_and_another_core_does_not_help():
    found = seen(keystone(0.09, 1.0), workers(1, 0.1), workers=1, threads_per_worker=1)
    now = upper_bound(found)
    assert (now.rate_rps, now.limit) == (pytest.approx(10.0), "Keystone's worker threads")
    assert upper_bound(found, ServiceChange(more_cores=1)) == now
    assert upper_bound(found, ServiceChange(more_workers=1)).rate_rps == pytest.approx(20.0)


def test_two_cores_that_two_workers_fill_take_one_more_of_both():
    found = seen(keystone(0.1, 2.0), workers(2, 0.102), workers=2, threads_per_worker=1)
    assert upper_bound(found, ServiceChange(more_workers=1)).rate_rps == pytest.approx(
        20.0, rel=0.05
    )
    assert upper_bound(found, ServiceChange(more_cores=1)).rate_rps == pytest.approx(20.0, rel=0.05)
    assert upper_bound(
        found, ServiceChange(more_cores=1, more_workers=1)
    ).rate_rps == pytest.approx(30, rel=0.05)


def test_a_request_that_costs_half_allows_twice_as_many():
    found = seen(keystone(0.1, 2.0), machine_s=0.1, workers=4, threads_per_worker=1)
    assert upper_bound(found, ServiceChange(cpu_saved_s=0.05)).rate_rps == pytest.approx(40.0)


def test_a_database_that_is_bound_to_a_core_keeps_it():
    database = ResourceUse("the database's CPU", CPU, Role.DATABASE, 0.9, 1.0, "cores", 0.2)
    found = seen(keystone(0.01, 2.0), database, workers=4, threads_per_worker=1)
    assert upper_bound(found).limit == "the database's CPU"
    assert upper_bound(found, ServiceChange(more_cores=1)).rate_rps == pytest.approx(5.0)


def test_a_service_on_several_machines_has_no_such_bound():
    far = ResourceUse("the machine's CPU of ctrl1", CPU, "machine", 0.3, 4, "cores", 0.25)
    assert upper_bound(seen(keystone(0.1, 2.0), far, workers=2)) is None


def test_a_quota_bounds_more_workers_and_stays_when_the_machine_grows():
    found = seen(keystone(0.1, 1.0), cores=4.0, workers=1, cores_allowed=1.0)
    now = upper_bound(found)
    assert upper_bound(found, ServiceChange(more_workers=1)) == now
    assert upper_bound(found, ServiceChange(more_cores=1)) == now
