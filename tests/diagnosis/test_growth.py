"""Drift, overload and growth on loads whose course is known by construction."""

import numpy as np
import pytest

from loadstone.diagnosis.demand import Setup
from loadstone.diagnosis.growth import LoadCourse, growth
from loadstone.monitor.metrics import Reading, Recorder

START_S, SECONDS, RATE = 1000.0, 90, 10


def course(slope=0.0, cause=None, seconds=SECONDS, response_s=0.05):
    ok = np.full(2 * seconds, RATE // 2)
    return LoadCourse(START_S, 0.5, ok, response_s, slope, cause == "overload", cause == "drift")


def readings(database_ms=(2.0, 2.0), memory_mib=(300, 300), rows=0, evictions=0, selects=5.0):
    """Once a second; what grows does so evenly, from the first value to the second."""
    recorder = Recorder()
    cpu_s = 0.0
    for second in range(SECONDS + 1):
        share = second / SECONDS
        cpu_s += RATE * np.interp(share, (0, 1), database_ms) / 1000
        grown = [
            Reading("database", "cpu_seconds_total", cpu_s),
            Reading("database", "cores_allowed", 2),
            Reading("keystone", "cpu_seconds_total", 0.02 * RATE * second),
            Reading("keystone", "cores_allowed", 2),
            Reading(
                "keystone", "memory_bytes", float(np.interp(share, (0, 1), memory_mib)) * 2**20
            ),
            Reading("mariadb", "selects_total", selects * RATE * second),
            Reading("mariadb", "inserts_total", rows * share),
            Reading("mariadb", "deletes_total", 0),
            Reading("memcached", "evictions_total", evictions * second),
        ]
        recorder.add(START_S + second, grown)
    return recorder.metrics()


def found(metrics, load):
    return {one.id: one for one in growth(metrics, load, Setup())}


def test_a_steady_load_has_nothing_that_grows():
    assert found(readings(), course()) == {}


def test_costs_that_rise_explain_a_service_that_becomes_slower():
    drift = found(readings(database_ms=(2, 10), rows=10_000), course(slope=0.008 / SECONDS + 3e-4))
    assert set(drift) == {"drift"}
    said = drift["drift"].sentence
    assert "the database's CPU from" in said
    assert "Keystone's CPU from" not in said
    assert "10,000 rows were added meanwhile" in said
    assert "ms a request for each 1,000" in said


def test_large_figures_are_written_without_an_exponent():
    load = course(slope=1.5 / SECONDS, response_s=2.0)
    drift = found(readings(database_ms=(900, 4000), selects=1500.0, evictions=2500), load)
    said = drift["drift"].sentence
    assert "at the end a request takes 1,500 ms longer" in said
    assert "the database's CPU from 1,4" in said
    assert "2,500 entries a second" in drift["cache-evictions"].sentence
    (evicted,) = drift["cache-evictions"].evidence
    assert evicted.value == "2500"


def test_costs_that_rise_without_a_slower_answer_are_no_finding():
    assert found(readings(database_ms=(2, 10)), course()) == {}


def test_overload_is_told_from_drift_by_costs_that_stay():
    overload = found(readings(), course(slope=0.1, cause="overload"))
    assert set(overload) == {"overload"}
    assert overload["overload"].sentence == (
        "Answers take longer and longer because more is asked than is completed, not because a "
        "request costs clearly more: from the first third of the load to the last, Keystone's CPU "
        "from 20 to 20 ms."
    )


def test_overload_says_nothing_of_a_cost_that_was_not_measured():
    recorder = Recorder()
    for second in range(SECONDS + 1):
        busy = Reading("machine/0", "cpu_busy_seconds_total", 0.5 * second)
        recorder.add(START_S + second, [busy])
    overload = found(recorder.metrics(), course(slope=0.1, cause="overload"))
    assert overload["overload"].sentence == (
        "Answers take longer and longer because more is asked than is completed."
    )


def test_a_drift_that_nothing_explains_says_so():
    assert set(found(readings(), course(slope=0.01, cause="drift"))) == {"drift-unexplained"}


def test_workers_that_swell_are_told_with_their_pace():
    grows = found(readings(memory_mib=(300, 600)), course())
    assert set(grows) == {"memory-growth"}
    evidence = {one.name: float(one.value) for one in grows["memory-growth"].evidence}
    assert evidence["memory_before_mib"] == pytest.approx(350, rel=0.02)
    assert "200 MiB a minute" in grows["memory-growth"].sentence


def test_a_cache_that_is_full_is_told():
    assert set(found(readings(evictions=7), course())) == {"cache-evictions"}


def test_a_short_load_tells_nothing_of_growth():
    assert found(readings(database_ms=(2, 10)), course(slope=0.1, seconds=20)) == {}
