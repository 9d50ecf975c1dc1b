"""The simulator is the proof of the search, so it is proven first: on queues with known answers."""

import numpy as np
import pytest

from loadstone.analysis.model import State
from loadstone.plan.load import BandLoad, ClosedLoad, Load, OpenLoad
from loadstone.search.model import Ask
from loadstone.search.simulator.families import FAMILIES, ILL_POSED, draw
from loadstone.search.simulator.service import Bursts, Change, Crowding, Service, Stalls
from loadstone.search.simulator.simulator import Simulator

WIDE_BAND = BandLoad(low=60, high=100, fill_rps=100.0, ebb_rps=35.0, duration_s=600.0)


def measured(service: Service, load: Load, seed: int = 1) -> float:
    return Simulator(service, seed).measure(Ask(load, "test")).summary.throughput_rps


@pytest.mark.parametrize(
    "service",
    [
        Service(capacity_rps=50.0),
        Service(capacity_rps=50.0, workers=16, variation=0.5),
        Service(capacity_rps=50.0, stalls=Stalls(gap_s=5.0)),
    ],
)
def test_saturated_throughput_is_the_capacity(service: Service) -> None:
    assert measured(service, WIDE_BAND) == pytest.approx(50.0, rel=0.02)


def test_bursts_lower_the_long_run_capacity_by_their_share() -> None:
    service = Service(capacity_rps=50.0, bursts=Bursts(gap_s=60.0))
    simulator = Simulator(service, 1)
    load = BandLoad(60, 100, 100.0, 35.0, 10_000.0)
    found = simulator.measure(Ask(load, "test")).summary.throughput_rps
    assert found == pytest.approx(service.long_run_rps, rel=0.01)
    assert found == pytest.approx(simulator.session_rps, rel=0.01)


def test_crowding_lowers_the_capacity_in_saturation_only() -> None:
    service = Service(capacity_rps=50.0, crowding=Crowding(0.25))
    assert measured(service, WIDE_BAND) == pytest.approx(40.0, rel=0.03)


def test_mean_response_of_a_single_worker_is_that_of_the_textbook() -> None:
    # M/G/1 (Pollaczek-Khinchine): W = rho S (1 + cv^2) / (2 (1 - rho)) + S
    service = Service(workers=1, capacity_rps=50.0, variation=0.5, is_poisson=True)
    trial = Simulator(service, 1).measure(Ask(OpenLoad(35.0, 4000.0), "test"))
    expected_ms = 1000 * (0.7 * 0.02 * 1.25 / (2 * 0.3) + 0.02)
    assert trial.summary.latency.mean_ms == pytest.approx(expected_ms, rel=0.05)


def test_closed_loop_throughput_follows_the_response_time_law() -> None:
    # Fewer clients than workers: X = K / S.
    service = Service(workers=8, capacity_rps=80.0)
    assert measured(service, ClosedLoad(2, 200.0)) == pytest.approx(20.0, rel=0.02)


def test_a_full_queue_refuses_and_says_so() -> None:
    service = Service(workers=2, capacity_rps=20.0, queue_limit=10)
    trial = Simulator(service, 1).measure(Ask(OpenLoad(40.0, 20.0), "test"))
    assert trial.summary.errors[0][0] == "connection reset"
    assert trial.summary.throughput_rps == pytest.approx(20.0, rel=0.1)
    assert trial.ticks.in_flight.max() <= 12


def test_a_band_holds_the_number_in_flight() -> None:
    trial = Simulator(Service(capacity_rps=50.0), 1).measure(Ask(WIDE_BAND, "test"))
    settled = trial.ticks.in_flight[4:]
    assert settled.min() >= 55
    assert settled.max() <= 102


def test_a_change_takes_effect_at_its_instant() -> None:
    service = Service(capacity_rps=50.0, change=Change(at_s=100.0, slower=2.0))
    ok = Simulator(service, 1).measure(Ask(WIDE_BAND, "test")).ticks.ok
    assert ok[20:190].mean() * 2 == pytest.approx(50.0, rel=0.03)
    assert ok[210:].mean() * 2 == pytest.approx(25.0, rel=0.03)


def test_an_alarm_stops_a_hopeless_trial() -> None:
    simulator = Simulator(Service(capacity_rps=50.0), 1)
    trial = simulator.measure(Ask(OpenLoad(75.0, 60.0), "test", alarm_s=0.5))
    assert trial.verdict.state is State.DEGRADED
    assert len(trial.ticks.due) < 20


def test_the_same_seed_gives_the_same_trial() -> None:
    service = draw("mix", 3)
    first, second = (Simulator(service, 9).measure(Ask(WIDE_BAND, "x")) for _ in range(2))
    assert np.array_equal(first.ticks.ok, second.ticks.ok)


def test_every_family_can_be_drawn_and_measured() -> None:
    for family in FAMILIES | ILL_POSED:
        service = draw(family, 1)
        load = ClosedLoad(4, 5.0)
        assert Simulator(service, 1).measure(Ask(load, family)).summary.ok > 0
