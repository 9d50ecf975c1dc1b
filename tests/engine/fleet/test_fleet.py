"""A load from several processes is one load."""

import time
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from known_service import ISSUE, Known, known_service, seen_by
from measured import searched
from skewed_clock import SkewedClock

from loadstone.engine import local
from loadstone.engine.fleet import connect
from loadstone.engine.fleet import fleet as fleets
from loadstone.engine.fleet.address import LocalFleet
from loadstone.engine.fleet.clock import ClockReading
from loadstone.engine.fleet.fleet import Fleet, lead_ns
from loadstone.errors import InvalidInput
from loadstone.plan.load import BandLoad, ClosedLoad, Load, OpenLoad, Stage, StagedLoad
from loadstone.plan.model import Limits, Origin, Plan

pytestmark = pytest.mark.timeout(900)

# High enough that it holds back no two arrivals of a Poisson process.
LIMITS = Limits(max_rate_rps=1e6, load_s=60.0)


def plan_of(known: Known, load: Load) -> Plan:
    return Plan(Origin("http", "127.0.0.1", known.port), (ISSUE,), load, limits=LIMITS)


@pytest.mark.parametrize(
    "load",
    [
        OpenLoad(200.0, 1.5),
        OpenLoad(200.0, 1.5, "poisson", seed=7),
        StagedLoad((Stage(1.0, 50, 250), Stage(0.5, 250, 50)), "constant", 0, None),
        ClosedLoad(6, iterations=120),
    ],
)
def test_all_parts_together_are_the_load_of_one_engine(fleet: Fleet, load: Load) -> None:
    with known_service(8, 0.01) as known:
        whole = local.run(plan_of(known, load)).samples
        alone = seen_by(known)["worked"]
        found = fleet.run(plan_of(known, load))
        seen = seen_by(known)["worked"] - alone
    assert len(found.samples) == len(whole) == alone == seen
    assert sorted(found.samples.iteration.tolist()) == sorted(whole.iteration.tolist())
    if not isinstance(load, ClosedLoad):  # whose iterations are due when the one before has ended
        due = [dict(zip(one.iteration.tolist(), one.due_ns.tolist(), strict=True))
               for one in (found.samples, whole)]  # fmt: skip
        assert due[0] == due[1]
    assert np.all(np.diff(found.samples.done_ns) >= 0)
    assert len(found.health.parts) == 3


def test_the_hosts_progress_adds_up_to_that_of_the_load(fleet: Fleet) -> None:
    seen = []
    with known_service(8, 0.01) as known:
        fleet.run(plan_of(known, OpenLoad(200.0, 1.5)), lambda one: bool(seen.append(one)) or True)
    last = seen[-1]
    assert len({host.name for host in last.hosts}) == 3
    for one in seen:
        assert sum(host.due for host in one.hosts) == one.due
        assert sum(host.ok for host in one.hosts) == one.ok
        assert one.lag_p99_ms == max(host.lag_p99_ms or 0.0 for host in one.hosts)
    assert all(host.cpu_s > 0 and host.lag_p99_ms for host in last.hosts)


def test_a_band_is_kept_by_one_host(fleet: Fleet) -> None:
    with known_service(4, 0.01) as known:
        found = fleet.run(plan_of(known, BandLoad(4, 12, 400.0, 100.0, 1.0)))
    assert len(found.health.parts) == 1
    assert len(found.samples) > 0


def test_rows_are_shown_while_the_load_goes_on_and_the_file_has_all_of_them(
    fleet: Fleet, tmp_path
) -> None:
    shown: Counter[int] = Counter()
    looks: list[int] = []
    with known_service(8, 0.01) as known:
        found = fleet.run_to_file(
            plan_of(known, OpenLoad(200.0, 2.0)),
            tmp_path / "samples.parquet",
            lambda progress: bool(looks.append(progress.ok)) or True,
            lambda rows: shown.update(rows.iteration.tolist()),
        )
    assert found.file.rows == 400
    assert set(shown.values()) <= {1}
    assert len(shown) > 100
    assert looks == sorted(looks)
    assert looks[0] < looks[-1]


def test_a_watch_stops_all_parts(fleet: Fleet) -> None:
    with known_service(8, 0.01) as known:
        found = fleet.run(plan_of(known, OpenLoad(200.0, 30.0)), lambda progress: progress.ok < 50)
        assert 50 <= len(found.samples) < 2000
        assert seen_by(known)["worked"] == len(found.samples)


def test_the_ceiling_is_that_of_all_parts_together(fleet: Fleet) -> None:
    with known_service(8, 0.001) as known:
        plan = plan_of(known, ClosedLoad(6, duration_s=2.0))
        found = fleet.run(replace(plan, limits=replace(LIMITS, max_rate_rps=60.0)))
    assert 60 <= len(found.samples) <= 60 * 2.2
    assert found.health.throttled > 0


def test_the_connections_are_those_of_all_parts_together(fleet: Fleet) -> None:
    with known_service(100, 0.1) as known:
        plan = plan_of(known, OpenLoad(60.0, 1.0))
        found = fleet.run(replace(plan, limits=replace(LIMITS, max_connections=4))).samples
    begun, ended = np.sort(found.sent_ns), np.sort(found.done_ns)
    inside = np.arange(1, len(begun) + 1) - np.searchsorted(ended, begun, side="right")
    assert np.max(inside) <= 4


def test_clocks_that_differ_and_drift_change_neither_schedule_nor_latency() -> None:
    now_ns = time.time_ns()
    clocks = (
        SkewedClock(2_000_000_000, 50e-6, now_ns),
        SkewedClock(-2_000_000_000, -50e-6, now_ns),
    )
    with known_service(8, 0.01) as known, connect.opened(LocalFleet(2), clocks) as skewed:
        found = skewed.run(plan_of(known, OpenLoad(100.0, 2.0)))
    offsets = [round(part.clock_offset_ms / 1000) for part in found.health.parts]
    assert sorted(offsets) == [-2, 2]
    assert not [limit for limit in found.health.limits if "clock" in limit]
    assert sorted(found.samples.iteration.tolist()) == list(range(200))
    # A second's error in an instant of the start would stand in the order of completion.
    order = found.samples.iteration.astype(np.int64)
    assert np.max(np.abs(order - np.arange(200))) < 100


@pytest.mark.verify
def test_clocks_that_differ_and_drift_change_neither_n_nor_latency() -> None:
    now_ns = time.time_ns()
    offsets_s, drifts = (2.0, -2.0, 1.0, 0.0), (50e-6, -50e-6, -50e-6, 50e-6)
    clocks = [
        SkewedClock(round(offset_s * 1e9), drift, now_ns)
        for offset_s, drift in zip(offsets_s, drifts, strict=True)
    ]
    service_s = 0.02
    with (
        known_service(2, service_s) as known,
        connect.opened(LocalFleet(len(clocks)), clocks) as skewed,
    ):
        found, trials = searched(known.port, 30.0, engine=skewed)
    assert found.rate_rps == pytest.approx(known.capacity_rps, rel=0.05)
    assert found.low_rps is not None
    assert found.high_rps is not None
    assert found.low_rps <= known.capacity_rps <= found.high_rps
    # A clock that is 2 s wrong would make latencies of seconds, or none.
    fastest_s = min(trial.stats.service.mean_s for trial in trials if trial.stats.ok)
    assert service_s <= fastest_s < service_s + 0.1


def test_a_clock_that_is_set_under_load_makes_the_trial_invalid() -> None:
    racing = (SkewedClock(0, 0.5, time.time_ns()),)
    with known_service(8, 0.01) as known, connect.opened(LocalFleet(1), racing) as skewed:
        found = skewed.run(plan_of(known, OpenLoad(50.0, 1.0)))
    assert any("the clock of" in limit and "was set by" in limit for limit in found.health.limits)


def test_a_jump_is_told_from_drift_and_from_the_errors_of_two_readings() -> None:
    before = ClockReading(0, 1_000_000, 400_000)
    an_hour_ns = 3600 * 10**9
    assert before.jump_ns(ClockReading(10**9, 1_500_000, 400_000)) == 0
    assert before.jump_ns(ClockReading(an_hour_ns, 1_000_000 + 50_000 * 3600, 400_000)) == 0
    assert before.jump_ns(ClockReading(10**9, 5_001_000_000, 400_000)) == 5_000_000_000


def test_the_start_leaves_time_to_reach_the_farthest_host() -> None:
    near, far = ClockReading(0, 0, 400_000), ClockReading(0, 0, 200_000_000)
    assert lead_ns([near, far]) == round(fleets.LEAD_S * 1e9) + 400_000_000


def test_loopback_of_another_machine_is_refused(fleet: Fleet, tmp_path: Path) -> None:
    elsewhere = replace(fleet.hosts[0].facts, network="another/1")
    other = Fleet((replace(fleet.hosts[0], facts=elsewhere, name="far"),))
    with pytest.raises(InvalidInput, match=r"127\.0\.0\.1 is this machine's loopback"):
        other.require_reach("127.0.0.1", 5000)
    other.require_reach("198.51.100.7", 5000)
    plan = Plan(Origin("http", "127.0.0.1", 5000), (ISSUE,), ClosedLoad(1, iterations=1))
    with pytest.raises(InvalidInput, match="far has its own"):
        other.run_to_file(plan, tmp_path / "samples.parquet")
    assert list(tmp_path.iterdir()) == []
