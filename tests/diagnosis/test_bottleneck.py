"""Verdicts on targets whose limit is known by construction."""

from dataclasses import replace

import pytest

from loadstone.diagnosis.bottleneck import Case, name_bottleneck
from loadstone.diagnosis.demand import BottleneckKind, Observation, ResourceUse, Setup, observe
from loadstone.diagnosis.service import KEYCLOAK as KEYCLOAK_SERVICE
from loadstone.monitor.metrics import Reading, Recorder
from loadstone.monitor.roles import Role


def cpu(role, busy, capacity, demand_s=0.1):
    names = {"keystone": "Keystone's CPU", "machine": "the machine's CPU"}
    return ResourceUse(
        names.get(role, f"the {role}'s CPU"),
        BottleneckKind.CPU,
        role,
        busy,
        capacity,
        "cores",
        demand_s,
    )


def slots(busy, capacity):
    name = "Keystone's worker threads"
    return ResourceUse(name, BottleneckKind.WORKERS, Role.KEYSTONE, busy, capacity, "threads", 0.1)


def judged(*uses, setup=None, is_generator_valid=True, **figures):
    ranked = tuple(sorted(uses, key=lambda one: one.utilisation, reverse=True))
    seen = Observation(10.0, 100, ranked, tuple(figures.items()))
    return name_bottleneck(Case(seen, setup or Setup(), is_generator_valid))


def test_two_workers_on_two_cores_are_limited_by_cpu():
    verdict = judged(
        cpu("keystone", 1.96, 2, demand_s=0.274),
        cpu("database", 0.12, 2),
        cpu("machine", 1.99, 2),
        slots(2, 2),
        setup=Setup(workers=2, threads=1),
        worker_cpu=1.0,
        workers=2,
    )
    found = verdict.bottleneck
    assert (found.kind, found.role) == (BottleneckKind.CPU, "keystone")
    assert found.sentence == (
        "Keystone's CPU: 1.96 of 2 cores busy; a request costs 274 ms; next is the database's CPU "
        "at 6 %."
    )
    assert found.utilisation == pytest.approx(0.98)
    assert found.demand_s == pytest.approx(0.274)


def test_one_of_a_resource_is_singular():
    one_core = cpu("keystone", 0.96, 1), cpu("machine", 0.99, 1)
    [found, *_] = judged(*one_core, slots(1, 1), workers=1, worker_cpu=0.96).findings
    assert found.sentence.startswith("Keystone's CPU: 0.96 of 1 core busy")
    late = judged(cpu("generator", 0.97, 1), is_generator_valid=False).bottleneck
    assert "it used 0.97 of 1 core." in late.sentence
    waiting = judged(slots(1, 1), cpu("keystone", 0.2, 2), worker_cpu=0.2, workers=1).bottleneck
    assert "1.0 of 1 worker thread is busy, and wait" in waiting.sentence
    disk = ResourceUse("disk sda", BottleneckKind.DISK, "machine", 0.5, 1.0, "disks")
    assert "disk sda: 0.5 of 1 disk (50 %)" in judged(disk).bottleneck.sentence


def test_one_worker_on_an_idle_machine_is_limited_by_its_workers():
    verdict = judged(
        cpu("keystone", 0.97, 1),
        cpu("machine", 1.1, 4),
        slots(1, 1),
        setup=Setup(workers=1, threads=1),
        worker_cpu=0.98,
        workers=1,
    )
    assert verdict.bottleneck.kind is BottleneckKind.WORKERS
    assert "Add workers." in [one.advice for one in verdict.findings]


def test_cores_that_other_programs_take_are_named_before_keystones_cpu():
    verdict = judged(
        cpu("keystone", 0.33, 2),
        cpu("machine", 1.99, 2),
        slots(2, 2),
        setup=Setup(workers=2, threads=1),
        worker_cpu=0.16,
        worker_cpu_wait=0.74,
        others_cores=1.6,
        workers=2,
    )
    assert (verdict.bottleneck.kind, verdict.bottleneck.role) == (BottleneckKind.CPU, "machine")
    assert verdict.findings[0].id == "other-work"
    assert "1.6 of 2 cores" in verdict.bottleneck.sentence


def test_other_programs_beside_a_load_that_is_small_are_no_bottleneck():
    verdict = judged(
        cpu("keystone", 0.1, 2),
        cpu("machine", 2, 2),
        slots(0.3, 2),
        setup=Setup(workers=2, threads=1),
        worker_cpu=0.05,
        worker_cpu_wait=0.1,
        others_cores=1.8,
        workers=2,
    )
    assert verdict.bottleneck.kind is BottleneckKind.NONE
    assert verdict.bottleneck.sentence == (
        "This machine has no core left, which may limit what was measured: other programs took 1.8 "
        "of 2 cores, Keystone 0.10."
    )


@pytest.mark.parametrize(
    ("setup", "who"),
    [(Setup(), "the service and other programs"), (Setup(is_elsewhere=True), "other programs")],
)
def test_a_busy_machine_says_nothing_of_a_service_whose_processes_are_not_seen(setup, who):
    verdict = judged(cpu("machine", 2, 2), cpu("generator", 0.1, 2), setup=setup, others_cores=1.9)
    assert verdict.bottleneck.kind is BottleneckKind.NONE
    assert verdict.bottleneck.sentence == (
        f"This machine has no core left, which may limit what was measured: {who} took 1.9 of 2 "
        "cores, the load generator 0.10."
    )


def test_a_generator_that_other_programs_delayed_is_not_said_to_be_too_slow():
    verdict = judged(
        cpu("keystone", 0.1, 2),
        cpu("generator", 0.01, 2),
        cpu("machine", 1.98, 2),
        is_generator_valid=False,
        others_cores=1.87,
    )
    assert verdict.bottleneck.kind is BottleneckKind.GENERATOR
    assert verdict.bottleneck.sentence == (
        "The load generator sent late because this machine is busy, so that nothing is known of "
        "the service: other programs took 1.9 of 2 cores, the load generator 0.01."
    )
    assert verdict.findings[0].advice == "End the other programs, and measure again."


def test_workers_of_a_service_without_other_servers_do_not_wait_for_them():
    verdict = judged(
        cpu("keystone", 0.7, 2),
        cpu("machine", 2, 2),
        slots(2, 2),
        setup=Setup(workers=2, threads=1),
        worker_cpu=0.3,
        worker_cpu_wait=0.06,
        others_cores=1.3,
        workers=2,
    )
    assert verdict.findings[0].id == "keystone-workers-wait"
    assert verdict.bottleneck.sentence == (
        "Keystone's workers: 2.0 of 2 worker threads are busy, and wait 64 % of the time for a "
        "lock, a disk or a server that was not watched; meanwhile other programs took 1.3 of 2 "
        "cores."
    )


def test_many_threads_in_one_worker_are_limited_by_pythons_global_lock():
    verdict = judged(
        cpu("keystone", 1.02, 4),
        cpu("machine", 1.4, 4),
        slots(16, 16),
        setup=Setup(workers=1, threads=16, pool=55),
        worker_cpu=1.05,
        workers=1,
        transactions_open=9,
    )
    assert verdict.bottleneck.kind is BottleneckKind.LOCK
    assert verdict.findings[0].id == "keystone-gil"


def test_a_database_on_a_full_core_is_the_limit_though_keystone_waits():
    verdict = judged(
        cpu("database", 0.98, 1),
        cpu("keystone", 0.6, 2),
        cpu("machine", 1.6, 4),
        slots(4, 4),
        setup=Setup(workers=4, threads=1),
        worker_cpu=0.2,
        workers=4,
    )
    assert (verdict.bottleneck.kind, verdict.bottleneck.role) == (BottleneckKind.CPU, "database")
    # That all workers wait is its effect, and stands behind it.
    assert [one.id for one in verdict.findings] == ["database-cpu", "keystone-workers-wait"]


@pytest.mark.parametrize(
    ("waiting", "found"), [(1.6, "database-cpu"), (0.4, "keystone-workers-wait")]
)
def test_a_database_whose_threads_wait_for_a_core_is_short_of_cores(waiting, found):
    # The hypervisor, or another program, has the core for the rest of the time.
    verdict = judged(
        cpu("database", 0.84, 1),
        cpu("keystone", 0.5, 1),
        cpu("machine", 1.2, 2),
        slots(6, 6),
        setup=Setup(workers=6, threads=1),
        worker_cpu=0.1,
        workers=6,
        database_cpu_wait=waiting,
    )
    assert verdict.findings[0].id == found


def test_threads_that_share_one_connection_are_limited_by_the_pool():
    pool = ResourceUse(
        "pools", BottleneckKind.CONNECTIONS, Role.KEYSTONE, 0.96, 1, "connections", 0.1
    )
    verdict = judged(
        pool,
        cpu("keystone", 0.9, 2),
        cpu("machine", 1.1, 2),
        slots(8, 8),
        setup=Setup(workers=1, threads=8, pool=1),
        worker_cpu=0.9,
        workers=1,
    )
    assert (verdict.bottleneck.kind, verdict.bottleneck.role) == (
        BottleneckKind.CONNECTIONS,
        "keystone",
    )


def test_a_queue_before_servers_that_are_full_is_the_balancers_limit():
    sessions = ResourceUse(
        "sessions", BottleneckKind.BALANCER, Role.BALANCER, 2, 2, "sessions", 0.1
    )
    verdict = judged(
        sessions,
        slots(1.5, 4),
        setup=Setup(workers=4, threads=1),
        balancer_queue=37,
        worker_cpu=0.4,
        workers=4,
    )
    assert verdict.bottleneck.kind is BottleneckKind.BALANCER
    assert "2.0 of 2" in verdict.bottleneck.sentence


def test_commits_that_wait_for_the_disk_are_the_limit():
    verdict = judged(
        slots(4, 4),
        cpu("keystone", 0.3, 2),
        setup=Setup(workers=4, threads=1),
        committing=3.4,
        worker_cpu=0.1,
        workers=4,
    )
    assert (verdict.bottleneck.kind, verdict.bottleneck.role) == (BottleneckKind.DISK, "database")


def disk(busy, host=""):
    name = f"disk sda of {host}" if host else "disk sda"
    return ResourceUse(name, BottleneckKind.DISK, "machine", busy, 1.0, "disks")


def test_a_full_disk_is_the_limit_where_the_database_waits_for_it():
    uses = (slots(4, 4), cpu("keystone", 0.3, 2), cpu("database", 0.1, 2))
    setup = Setup(workers=4, threads=1)
    figures = {"worker_cpu": 0.1, "workers": 4}
    full = judged(*uses, disk(0.95), setup=setup, io_waiters=2.5, **figures)
    assert full.findings[0].id == "database-disk"
    assert full.bottleneck.sentence == (
        "The database's disk: 2.5 sessions wait for it on average (disk sda is busy 95 % of the "
        "time)."
    )
    rarely = judged(*uses, disk(0.95), setup=setup, io_waiters=0.05, **figures)
    assert rarely.findings[0].id == "keystone-workers-wait"
    elsewhere = judged(*uses, disk(0.95, "other"), setup=setup, io_waiters=2.5, **figures)
    assert elsewhere.findings[0].id == "keystone-workers-wait"


def test_a_busy_disk_is_no_limit_while_the_workers_run():
    verdict = judged(
        slots(2, 2),
        cpu("keystone", 1.94, 2),
        cpu("database", 0.1, 2),
        disk(0.95),
        setup=Setup(workers=2, threads=1),
        worker_cpu=0.97,
        workers=2,
        io_waiters=0.6,
    )
    assert verdict.findings[0].id == "keystone-cpu"


def test_commits_are_no_limit_while_workers_of_an_unknown_number_run():
    verdict = judged(cpu("keystone", 1.96, 2), committing=0.6, cores_wanted=0.98)
    assert "database-disk" not in [one.id for one in verdict.findings]


def test_sessions_that_wait_for_row_locks_are_the_limit():
    verdict = judged(slots(4, 4), lock_waiters=2.5, worker_cpu=0.1, workers=4)
    assert (verdict.bottleneck.kind, verdict.bottleneck.role) == (BottleneckKind.LOCK, "database")


def test_a_database_without_free_connections_is_the_limit():
    full = ResourceUse("c", BottleneckKind.CONNECTIONS, Role.DATABASE, 100, 100, "connections")
    verdict = judged(full, slots(4, 4), worker_cpu=0.1)
    assert (verdict.bottleneck.kind, verdict.bottleneck.role) == (
        BottleneckKind.CONNECTIONS,
        "database",
    )


def test_connections_that_were_refused_are_said_beside_how_many_are_open():
    few = ResourceUse("c", BottleneckKind.CONNECTIONS, Role.DATABASE, 5, 151, "connections")
    verdict = judged(few, slots(4, 4), worker_cpu=0.1, refused_connections_per_s=0.4)
    assert verdict.bottleneck.sentence == (
        "The database's connections: 5 of 151 are open; at times all were, and it refused 0.4 a "
        "second."
    )


def test_a_cache_that_is_off_is_named_before_the_cpu_that_it_costs():
    figures = {"worker_cpu": 1.0, "workers": 2.0, "statements_per_request": 44.0}
    uses = (cpu("keystone", 1.9, 2), slots(2, 2))
    off = judged(*uses, setup=Setup(workers=2, threads=1, cache="off"), **figures)
    on = judged(*uses, setup=Setup(workers=2, threads=1, cache="memcached"), **figures)
    assert off.bottleneck.kind is BottleneckKind.CACHE
    assert "44 SQL statements" in off.bottleneck.sentence
    assert on.bottleneck.kind is BottleneckKind.CPU
    assert [one.id for one in off.findings] == ["keystone-cache-off", "keystone-cpu"]


def test_a_generator_that_fell_behind_is_the_limit_whatever_else_is_busy():
    verdict = judged(cpu("keystone", 1.9, 2), is_generator_valid=False, worker_cpu=1.0)
    assert verdict.bottleneck.kind is BottleneckKind.GENERATOR


def test_swapping_is_named():
    assert judged(swap_bytes_per_s=8e6).bottleneck.kind is BottleneckKind.MEMORY


def test_the_machine_that_swaps_is_named():
    recorder = Recorder()
    for second in range(11):
        rows = [
            Reading(machine, metric, value)
            for machine, swapped in (("machine", 0), ("machine@db-1", 4 * 2**20))
            for metric, value in (
                ("swap_in_bytes_total", swapped * second),
                ("swap_out_bytes_total", swapped * second),
                ("memory_total_bytes", 8 * 2**30),
                ("memory_available_bytes", 2**30 if swapped else 0),
            )
        ]
        rows.append(Reading("machine@db-1/cpu0", "cpu_busy_seconds_total", 0.1 * second))
        recorder.add(1000.0 + second, rows)
    found = name_bottleneck(Case(observe(recorder.metrics(), 100), Setup())).bottleneck
    assert found.sentence == "The machine db-1 is short of memory: it swaps 8.0 MiB per second."
    assert found.utilisation == pytest.approx(7 / 8)


def test_a_full_listen_queue_is_named():
    assert judged(listen_overflows_per_s=12.0).bottleneck.kind is BottleneckKind.QUEUE


def test_the_machine_whose_listen_queue_is_full_is_named():
    recorder = Recorder()
    for second in range(11):
        for machine, overflows in (("machine", 0.6), ("machine@web-1", 0.6), ("machine@web-2", 3)):
            rows = (
                Reading(machine, "listen_overflows_total", overflows * second),
                Reading(f"{machine}/cpu0", "cpu_busy_seconds_total", 0.1 * second),
            )
            recorder.add(1000.0 + second, rows)
    found = name_bottleneck(Case(observe(recorder.metrics(), 100), Setup())).bottleneck
    assert found.sentence == (
        "The listen queue of web-2: 3.0 connections per second are dropped because it is full."
    )


def test_nothing_saturated_is_said_to_be_so_with_what_comes_nearest():
    verdict = judged(cpu("keystone", 0.6, 2), slots(0.7, 2), setup=Setup(workers=2), worker_cpu=0.3)
    assert verdict.bottleneck.kind is BottleneckKind.NONE
    (finding,) = verdict.findings
    assert finding.id == "no-bottleneck"
    assert "Keystone's worker threads: 0.7 of 2" in finding.sentence


@pytest.mark.parametrize(
    ("busy", "capacity", "figures"),
    [(0.3, 0.5, "0.3 of 0.5 cores"), (120, 1200, "120 of 1,200 cores")],
)
def test_what_comes_nearest_has_its_figures_whatever_their_size(busy, capacity, figures):
    (finding,) = judged(cpu("keystone", busy, capacity)).findings
    assert f"The busiest is Keystone's CPU: {figures} (" in finding.sentence


def test_a_service_on_another_machine_of_which_nothing_is_known_has_no_bottleneck():
    assert judged().bottleneck.kind is BottleneckKind.NONE


def test_a_finding_carries_its_figures():
    verdict = judged(cpu("keystone", 1.96, 2, 0.274), worker_cpu=1.0, workers=2)
    evidence = {one.name: one.value for one in verdict.findings[0].evidence}
    assert evidence["utilisation"] == "0.98"
    assert evidence["demand_ms"] == "274"
    assert evidence["bound_rps"] == "7.299"
    assert evidence["throughput_rps"] == "10"


def test_a_full_machine_of_an_unwatched_service_is_not_called_idle():
    machine = ResourceUse("the machine's CPU", BottleneckKind.CPU, "machine", 2.0, 2, "cores", 0.01)
    sentence = judged(machine, worker_cpu=0.1).bottleneck.sentence
    assert "Nothing that was watched is saturated" not in sentence
    assert "2 of 2 cores (100 %)" in sentence


def test_threads_that_wait_for_their_workers_one_connection_need_not_fill_it():
    pool = ResourceUse(
        "pools", BottleneckKind.CONNECTIONS, Role.KEYSTONE, 0.75, 1, "connections", 0.1
    )
    verdict = judged(
        pool,
        slots(8, 8),
        setup=Setup(workers=1, threads=8, pool=1),
        worker_cpu=0.6,
        workers=1,
    )
    assert verdict.findings[0].id == "keystone-pool"


def test_commits_are_counted_against_the_workers_where_the_web_server_does_not_tell():
    web = ResourceUse("Apache's threads", BottleneckKind.WORKERS, Role.WEB, 1, 1, "threads")
    few = judged(web, setup=Setup(workers=8, threads=1), committing=0.9, worker_cpu=0.1)
    assert few.findings[0].id == "web-threads"
    all_of_them = judged(web, setup=Setup(workers=1, threads=1), committing=0.9, worker_cpu=0.1)
    assert all_of_them.findings[0].id == "database-disk"


def test_commits_count_among_what_workers_wait_for_not_among_what_they_do():
    """Of 4 workers 1.6 run on average; of the other 2.4 most wait for a commit."""
    setup = Setup(workers=4, threads=1)
    most = judged(slots(4, 4), setup=setup, committing=1.7, worker_cpu=0.4)
    assert most.findings[0].id == "database-disk"
    few = judged(slots(4, 4), setup=setup, committing=0.9, worker_cpu=0.4)
    assert few.findings[0].id == "keystone-workers-wait"
    idle = judged(slots(1, 4), setup=setup, committing=0.9, worker_cpu=0.1)
    assert idle.findings[0].id == "no-bottleneck"


def test_what_busy_workers_wait_for_is_said_where_it_is_known():
    setup = Setup(workers=4, threads=1)
    database = judged(slots(4, 4), setup=setup, worker_cpu=0.2, transactions_open=3.1)
    assert "80 % of the time for the database" in database.bottleneck.sentence
    few = {"worker_cpu": 0.2, "transactions_open": 0.4}
    unknown = judged(slots(4, 4), cpu("cache", 0.1, 2), setup=setup, **few)
    assert "80 % of the time for other servers" in unknown.bottleneck.sentence


KEYCLOAK = Setup(pool=1, service=KEYCLOAK_SERVICE)


def connections(busy, capacity):
    name = "Keycloak's pool of database connections"
    kind = BottleneckKind.CONNECTIONS
    return ResourceUse(name, kind, Role.KEYSTONE, busy, capacity, "connections", 0.1)


def test_a_jvm_that_frees_memory_much_of_the_time_is_limited_by_its_heap():
    heap = ResourceUse("Keycloak's heap", BottleneckKind.MEMORY, Role.KEYSTONE, 0.12, 0.125, "GiB")
    uses = (heap, cpu("keystone", 1.9, 2), cpu("machine", 2, 2))
    found = judged(*uses, setup=KEYCLOAK, gc_pause_share=0.4, cores_wanted=1.2).bottleneck
    assert (found.kind, found.role) == (BottleneckKind.MEMORY, "keystone")
    assert found.sentence == (
        "Keycloak's heap: garbage collection stops it 40 % of the time; 123 of 128 MiB are in use."
    )
    # A usual share of pauses is none.
    found = judged(*uses, setup=KEYCLOAK, gc_pause_share=0.03, cores_wanted=1.2).bottleneck
    assert found.kind is BottleneckKind.CPU


def test_requests_that_wait_for_the_pool_while_cores_are_free_are_limited_by_it():
    uses = (connections(1, 1), cpu("keystone", 0.9, 2), cpu("machine", 1.2, 2))
    figures = {"pool_waiting": 6.5, "cores_wanted": 0.5, "cores_waited_for": 0.1}
    verdict = judged(*uses, setup=KEYCLOAK, **figures)
    assert verdict.findings[0].id == "connection-pool"
    assert verdict.bottleneck.sentence == (
        "Keycloak's pool of database connections: 1.0 of 1 are in use, and 6.5 requests wait for "
        "one on average."
    )


def test_threads_without_cores_hold_their_connections_for_longer():
    uses = (connections(20, 20), cpu("keystone", 1.9, 2), cpu("machine", 2, 2))
    figures = {"pool_waiting": 6.5, "cores_wanted": 3.0, "cores_waited_for": 4.1}
    verdict = judged(*uses, setup=KEYCLOAK, **figures)
    assert verdict.bottleneck.kind is BottleneckKind.CPU


def test_a_service_whose_threads_are_not_counted_is_limited_by_a_quota_of_cpu():
    uses = (cpu("keystone", 0.48, 0.5), cpu("machine", 0.8, 2))
    verdict = judged(*uses, setup=KEYCLOAK, cores_wanted=1.0, cores_waited_for=0.02)
    assert verdict.findings[0].id == "service-cpu"
    assert "0.48 of 0.5 cores busy" in verdict.bottleneck.sentence


def test_other_programs_are_named_before_a_service_whose_threads_are_not_counted():
    uses = (cpu("keystone", 0.9, 2), cpu("machine", 2, 2))
    verdict = judged(
        *uses, setup=KEYCLOAK, others_cores=1.0, cores_wanted=1.9, cores_waited_for=2.9
    )
    assert verdict.findings[0].id == "other-work"


@pytest.mark.parametrize(
    ("used_cores", "machine_cores"),
    [
        pytest.param(0.48, 1.9, id="the quota is used up"),
        pytest.param(0.38, 1.3, id="a part of it, and cores are idle"),
    ],
)
def test_other_programs_do_not_hide_a_quota_of_cpu(used_cores, machine_cores):
    uses = (cpu("keystone", used_cores, 0.5), cpu("machine", machine_cores, 2))
    verdict = judged(
        *uses, setup=KEYCLOAK, others_cores=0.8, cores_wanted=6.8, cores_waited_for=3.0
    )
    assert verdict.findings[0].id == "service-cpu"


def test_workers_that_share_a_quota_are_limited_by_it():
    verdict = judged(
        cpu("keystone", 0.4, 0.5),
        cpu("machine", 1.3, 2),
        slots(2, 2),
        setup=Setup(workers=2, threads=1),
        worker_cpu=0.2,
        worker_cpu_wait=0.7,
        others_cores=0.8,
        workers=2,
    )
    assert verdict.findings[0].id == "keystone-cpu"


def test_programs_on_a_services_own_core_are_named_while_another_core_is_idle():
    uses = (cpu("keystone", 0.5, 1), cpu("machine", 1.1, 2))
    verdict = judged(
        *uses, setup=KEYCLOAK, others_cores=0.5, cores_wanted=3.0, cores_waited_for=2.5
    )
    assert verdict.findings[0].id == "other-work"


def remote(role, busy, capacity):
    where = " of host" if role == "machine" else " on host"
    return replace(cpu(role, busy, capacity), name=f"{cpu(role, busy, capacity).name}{where}")


def test_cores_of_another_machine_are_not_those_that_are_left():
    """The service fills its two cores; 20 of another machine are idle."""
    found = judged(
        cpu("keystone", 1.95, 2),
        cpu("machine", 1.98, 2),
        remote("machine", 12.0, 32),
        setup=Setup(workers=2, threads=1),
        workers=2.0,
        worker_cpu=0.98,
    )
    assert found.bottleneck.kind is BottleneckKind.CPU
    assert "are left" not in found.bottleneck.sentence


def test_a_full_machine_of_the_service_is_not_this_machine():
    found = judged(
        cpu("machine", 0.8, 8),
        cpu("generator", 0.5, 1),
        remote("machine", 3.96, 4),
        others_cores=0.3,
    )
    assert "This machine has no core left" not in found.bottleneck.sentence
    late = judged(
        cpu("machine", 0.8, 8),
        cpu("generator", 0.5, 1),
        remote("machine", 3.96, 4),
        is_generator_valid=False,
        others_cores=0.3,
    )
    assert "this machine is busy" not in late.bottleneck.sentence


def test_whether_workers_wait_is_not_said_where_it_is_not_known():
    found = judged(slots(15.9, 16), setup=Setup(workers=16, threads=1))
    assert "15.9 of 16 worker threads are busy" in found.bottleneck.sentence
    assert "was not watched" in found.bottleneck.sentence
    assert "% of the time" not in found.bottleneck.sentence
    some = judged(slots(15.9, 16), remote("keystone", 8.0, 16), setup=Setup(workers=16, threads=1))
    assert "wait 50 % of the time" in some.bottleneck.sentence


def on_hosts(busy, capacity, names, demand_s=0.1):
    """Keystone and its machine, alike on each host."""
    for name in names:
        use = cpu("keystone", busy, capacity, demand_s)
        yield replace(use, name=f"Keystone's CPU on {name}")
        yield replace(cpu("machine", busy + 0.1, capacity), name=f"the machine's CPU of {name}")


@pytest.mark.parametrize("names", [("n0",), ("n0", "n1"), ("n0", "n1", "n2")])
def test_full_workers_of_several_nodes_do_not_wait(names):
    verdict = judged(
        *on_hosts(3.8, 8, names),
        slots(4 * len(names), 4 * len(names)),
        setup=Setup(is_elsewhere=True),
        workers=4.0 * len(names),
    )
    assert [one.id for one in verdict.findings] == ["keystone-workers"]
    assert f"{4 * len(names)} workers are full" in verdict.bottleneck.sentence
    assert f"using {3.8 * len(names):.2f} cores" in verdict.bottleneck.sentence


def test_a_request_costs_what_it_takes_on_all_nodes():
    verdict = judged(*on_hosts(7.6, 8, ("n0", "n1", "n2"), 0.253), setup=Setup(is_elsewhere=True))
    assert "on n0: 7.60 of 8 cores busy; a request costs 759 ms" in verdict.bottleneck.sentence


def test_cores_that_a_quota_forbids_are_not_left_for_more_workers():
    verdict = judged(
        cpu("keystone", 0.97, 1),
        cpu("machine", 1.1, 4),
        slots(1, 1),
        setup=Setup(workers=1, threads=1),
        worker_cpu=0.97,
        workers=1,
        cores_allowed=1.0,
    )
    assert verdict.bottleneck.kind is BottleneckKind.CPU
    assert "cores are left" not in " ".join(one.sentence for one in verdict.findings)
