"""Operational analysis of figures that are known by construction."""

import pytest

from loadstone.diagnosis.demand import BottleneckKind, Setup, observe
from loadstone.monitor.metrics import Reading, Recorder

SECONDS = 10


def observed(requests=100, setup=None, **series):
    """Observe 10 s in which counters grew evenly and gauges stayed.

    Names are source__metric; @, / and - are written as _at_, _in_ and _.
    """
    recorder = Recorder()
    for second in range(SECONDS + 1):
        rows = []
        for name, value in series.items():
            source, metric = name.split("__")
            source = source.replace("_at_", "@").replace("_in_", "/").replace("_", "-")
            grown = value * second / SECONDS if metric.endswith("_total") else value
            rows.append(Reading(source, metric, grown))
        recorder.add(1000.0 + second, rows)
    return observe(recorder.metrics(), requests, setup or Setup())


def test_demand_is_busy_time_per_request_and_bounds_the_rate():
    # 100 requests cost 8 s of Keystone's CPU on two cores: 80 ms each, so at most 25 per second.
    seen = observed(keystone__cpu_seconds_total=8.0, keystone__cores_allowed=2)
    use = seen.use(BottleneckKind.CPU, "keystone")
    assert use.demand_s == pytest.approx(0.08)
    assert use.utilisation == pytest.approx(0.4)
    assert use.bound_rps == pytest.approx(25.0)
    assert seen.throughput_rps == pytest.approx(10.0)


def test_a_worker_with_one_thread_uses_one_core_at_most():
    series = {"keystone__cpu_seconds_total": 8.0, "keystone__cores_allowed": 4}
    assert observed(setup=Setup(workers=1, threads=1), **series).uses[0].capacity == 1
    assert observed(setup=Setup(workers=3, threads=1), **series).uses[0].capacity == 3
    assert observed(setup=Setup(workers=8, threads=1), **series).uses[0].capacity == 4


def test_a_database_that_is_pinned_to_one_core_is_full_at_one_core():
    seen = observed(
        machine_in_cpu0__cpu_busy_seconds_total=9.5,
        machine_in_cpu1__cpu_busy_seconds_total=1.0,
        database__cpu_seconds_total=9.5,
        database__cores_allowed=1,
    )
    assert seen.use(BottleneckKind.CPU, "database").utilisation == pytest.approx(0.95)
    assert seen.use(BottleneckKind.CPU, "machine").utilisation == pytest.approx(1.05 / 2)


def test_what_neither_service_nor_generator_used_is_other_work():
    seen = observed(
        machine_in_cpu0__cpu_busy_seconds_total=9.0,
        keystone__cpu_seconds_total=4.0,
        generator__cpu_seconds_total=1.0,
        generator__cores_allowed=1,
    )
    assert seen.figure("others_cores") == pytest.approx(0.4)
    # It is no cost of a request: 100 of them took 5 s of CPU, whatever else ran.
    assert seen.use(BottleneckKind.CPU, "machine").demand_s == pytest.approx(0.05)


def test_the_other_side_of_a_comparison_in_turns_is_no_other_work():
    seen = observed(
        machine_in_cpu0__cpu_busy_seconds_total=9.0,
        keystone__cpu_seconds_total=4.0,
        other_side__cpu_seconds_total=4.5,
        generator__cpu_seconds_total=0.5,
    )
    assert seen.figure("others_cores") == pytest.approx(0.0)
    assert seen.use(BottleneckKind.CPU, "machine").demand_s == pytest.approx(0.045)


def test_statements_per_request_come_from_the_databases_own_counters():
    seen = observed(mariadb__statements_total=1400, mariadb__commits_total=100)
    assert seen.figure("statements_per_request") == pytest.approx(14.0)
    assert seen.figure("commits_per_request") == pytest.approx(1.0)


def test_workers_that_were_started_again_are_told_per_second():
    assert observed(uwsgi__respawns_total=5).figure("respawns_per_s") == pytest.approx(0.5)


def test_the_cache_hit_ratio_is_that_of_the_phase():
    seen = observed(memcached__gets_total=300, memcached__hits_total=270)
    assert seen.figure("cache_hit_ratio") == pytest.approx(0.9)
    assert seen.figure("cache_gets_per_request") == pytest.approx(3.0)


def test_slots_in_use_are_exact_from_the_time_of_ended_requests():
    # The gauge is a look once a second and sees none of these; 5 s of work in 10 s is half a slot.
    seen = observed(uwsgi__slots=2, uwsgi__slots_busy=0, uwsgi__running_seconds_total=5.0)
    use = seen.use(BottleneckKind.WORKERS, "keystone")
    assert use.busy == pytest.approx(0.5)
    assert use.demand_s == pytest.approx(0.05)  # Little's law: residence time


def test_the_pool_is_that_of_all_workers():
    setup = Setup(workers=2, threads=8, pool=3)
    use = observed(setup=setup, postgres__transactions_open=5.4).use(
        BottleneckKind.CONNECTIONS, "keystone"
    )
    assert use.capacity == 6
    assert use.utilisation == pytest.approx(0.9)


def test_other_machines_are_resources_of_their_own():
    seen = observed(
        machine_at_db1_in_cpu0__cpu_busy_seconds_total=9.0,
        machine_at_web1_in_cpu0__cpu_busy_seconds_total=1.0,
        database_at_db1__cpu_seconds_total=9.0,
    )
    names = [one.name for one in seen.uses]
    assert names[:2] == ["the machine's CPU of db1", "the database's CPU on db1"]
    assert seen.use(BottleneckKind.CPU, "database").utilisation == pytest.approx(0.9)


def test_a_gauge_is_that_of_the_load_not_of_the_moments_before_and_after_it():
    recorder = Recorder()
    for second, sessions in enumerate((0, 2, 2, 2, 0)):
        rows = [Reading("haproxy/nodes/node-1", "sessions", sessions)]
        recorder.add(second, [*rows, Reading("haproxy/nodes/node-1", "sessions_limit", 2)])
    (use,) = observe(recorder.metrics(), 10).uses
    assert use.utilisation == 1


def test_a_full_backend_of_the_balancer_is_not_hidden_by_an_idle_one():
    rows = {
        "haproxy/keystone/node-1": {"sessions": 8, "sessions_limit": 8, "queue": 0},
        "haproxy/keystone/backend": {"sessions": 8, "sessions_limit": 200, "queue": 30},
        "haproxy/glance/node-1": {"sessions": 1, "sessions_limit": 100, "queue": 0},
        "haproxy/glance/backend": {"sessions": 1, "sessions_limit": 200, "queue": 5},
        "haproxy/web/frontend": {"sessions": 50, "sessions_limit": 2000},
    }
    readings = [Reading(source, *one) for source, row in rows.items() for one in row.items()]
    recorder = Recorder()
    for second in range(5):
        recorder.add(second, readings)
    seen = observe(recorder.metrics(), 100)
    use = seen.use(BottleneckKind.BALANCER, "balancer")
    assert (use.busy, use.capacity) == (8, 8)
    assert seen.figure("balancer_queue") == 30


def test_nothing_measured_is_nothing_known():
    seen = observe(Recorder().metrics(), 10)
    assert seen.uses == ()
    assert seen.throughput_rps == 0.0


def test_two_requests_do_not_tell_what_one_costs():
    seen = observed(requests=2, keystone__cpu_seconds_total=1.0, keystone__cores_allowed=1)
    assert seen.uses[0].utilisation == pytest.approx(0.1)
    assert seen.uses[0].demand_s is None


def test_a_machine_with_unknown_work_tells_no_demand():
    seen = observed(machine_in_cpu0__cpu_busy_seconds_total=9.9)
    assert seen.use(BottleneckKind.CPU, "machine").bound_rps is None


def test_without_requests_there_is_no_demand():
    (use,) = observed(requests=0, keystone__cpu_seconds_total=1.0, keystone__cores_allowed=1).uses
    assert use.demand_s is None
    assert use.bound_rps is None


def test_other_work_is_counted_on_this_machine_only():
    """On another machine, the "other programs" may be the service itself."""
    seen = observed(
        machine_in_cpu0__cpu_busy_seconds_total=2.0,
        generator__cpu_seconds_total=1.0,
        machine_at_host_in_cpu0__cpu_busy_seconds_total=9.9,
    )
    assert seen.figure("others_cores") == pytest.approx(0.1)
    assert seen.machine().busy == pytest.approx(0.2)
    assert seen.machine("host").busy == pytest.approx(0.99)
    assert seen.machine("host").demand_s == pytest.approx(0.099)  # its processes are not watched


def test_counters_that_are_read_seldom_are_divided_by_their_own_time():
    recorder = Recorder()
    for second in range(21):
        rows = [Reading("machine/cpu0", "cpu_busy_seconds_total", 0.1 * second)]
        if second % 5 == 4:  # 4, 9, 14 and 19 s: one core is always busy
            rows.append(Reading("machine@host/cpu0", "cpu_busy_seconds_total", float(second)))
        recorder.add(1000.0 + second, rows)
    seen = observe(recorder.metrics(), 100, Setup())
    assert seen.machine("host").utilisation == pytest.approx(1.0)
    assert seen.machine().utilisation == pytest.approx(0.1)


def test_counters_that_could_not_be_read_to_the_end_tell_the_cost_of_a_request():
    recorder = Recorder()
    for second in range(SECONDS + 1):
        read = [Reading("keystone", "cpu_seconds_total", 0.5 * second)]
        if second <= SECONDS / 2:  # then the server was restarted
            read.append(Reading("mariadb", "selects_total", 40.0 * second))
        recorder.add(1000.0 + second, read)
    seen = observe(recorder.metrics(), 100)
    assert seen.figure("selects_per_request") == pytest.approx(4.0)


def test_a_process_that_lived_for_a_part_of_the_load_used_cores_for_that_part():
    recorder = Recorder()
    for second in range(SECONDS + 1):
        read = [Reading("keystone", "cpu_seconds_total", 0.5 * second)]
        if second <= SECONDS / 2:
            read.append(Reading("keystone/7", "cpu_seconds_total", 1.0 * second))
        recorder.add(1000.0 + second, read)
    seen = observe(recorder.metrics(), 100, Setup(workers=1))
    assert seen.figure("worker_cpu") == pytest.approx(0.5)


def test_readings_of_another_machine_do_not_dilute_those_of_this_one():
    recorder = Recorder()
    for second in range(6):
        rows = [
            Reading("machine/cpu0", "cpu_busy_seconds_total", 0.95 * second),
            Reading("database", "cpu_seconds_total", 0.9 * second),
        ]
        recorder.add(1000.0 + second, rows)
        other = Reading("machine@db-1/cpu0", "cpu_busy_seconds_total", 0.5 * second)
        recorder.add(1000.5 + second, [other])
    seen = observe(recorder.metrics().between(1002.0, 1004.6), 100)
    busy = {one.name: pytest.approx(one.busy) for one in seen.uses}
    assert busy == {
        "the machine's CPU": 0.95,
        "the database's CPU": 0.9,
        "the machine's CPU of db-1": 0.5,
    }


def test_waiting_for_disks_may_fall_and_is_no_reset():
    recorder = Recorder()
    for second, value in enumerate((1000.0, 1000.5, 999.5, 1000.0)):
        recorder.add(second, [Reading("machine/cpu0", "cpu_iowait_seconds_total", value)])
    assert recorder.metrics().increase("machine/cpu0", "cpu_iowait_seconds_total") == 1.0


def test_workers_that_are_replaced_are_as_busy_as_those_that_live_on():
    recorder = Recorder()
    for second in range(31):
        rows = [
            Reading("keystone", "cpu_seconds_total", 1.9 * second),
            Reading("keystone", "cores_allowed", 4.0),
            Reading("uwsgi", "workers", 2.0),
        ]
        for worker in ("1", "2"):
            began = second - second % 5
            source = f"keystone/{worker}{began}"
            rows.append(Reading(source, "cpu_seconds_total", 0.95 * (second - began)))
        recorder.add(1000.0 + second, rows)
    seen = observe(recorder.metrics(), 300, Setup(workers=2, threads=1))
    assert seen.figure("worker_cpu") == pytest.approx(0.95)
