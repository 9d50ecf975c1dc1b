"""The simulator is the proof of the search, so it is proven first: on queues with known answers."""

import numpy as np
import pytest
from simulator.families import CHANGING, FAMILIES, ILL_POSED, LIMITED, draw
from simulator.service import Bursts, Change, Crowding, Limiter, Service, Stalls
from simulator.simulator import Simulator

from loadstone.analysis.model import TrialState
from loadstone.plan.load import BandLoad, ClosedLoad, Load, OpenLoad
from loadstone.search.model import TrialRequest

WIDE_BAND = BandLoad(low=60, high=100, fill_rps=100.0, ebb_rps=35.0, duration_s=600.0)


def measured(service: Service, load: Load, seed: int = 1) -> float:
    return Simulator(service, seed).measure(TrialRequest(load, "test")).stats.throughput_rps


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


@pytest.mark.long
def test_bursts_lower_the_long_run_capacity_by_their_share() -> None:
    service = Service(capacity_rps=50.0, bursts=Bursts(gap_s=60.0))
    simulator = Simulator(service, 1)
    load = BandLoad(60, 100, 100.0, 35.0, 10_000.0)
    found = simulator.measure(TrialRequest(load, "test")).stats.throughput_rps
    assert found == pytest.approx(service.long_run_rps, rel=0.01)
    assert found == pytest.approx(simulator.session_rps, rel=0.01)


def test_crowding_lowers_the_capacity_in_saturation_only() -> None:
    service = Service(capacity_rps=50.0, crowding=Crowding(0.25))
    assert measured(service, WIDE_BAND) == pytest.approx(40.0, rel=0.03)


@pytest.mark.long
def test_mean_response_of_a_single_worker_is_that_of_the_textbook() -> None:
    # M/G/1 (Pollaczek-Khinchine): W = rho S (1 + cv^2) / (2 (1 - rho)) + S
    service = Service(workers=1, capacity_rps=50.0, variation=0.5, is_poisson=True)
    trial = Simulator(service, 1).measure(TrialRequest(OpenLoad(35.0, 4000.0), "test"))
    expected_ms = 1000 * (0.7 * 0.02 * 1.25 / (2 * 0.3) + 0.02)
    assert trial.stats.total.mean_s * 1000 == pytest.approx(expected_ms, rel=0.05)


def test_closed_loop_throughput_follows_the_response_time_law() -> None:
    # Fewer clients than workers: X = K / S.
    service = Service(workers=8, capacity_rps=80.0)
    assert measured(service, ClosedLoad(2, 200.0)) == pytest.approx(20.0, rel=0.02)


def test_a_full_queue_refuses_and_says_so() -> None:
    service = Service(workers=2, capacity_rps=20.0, queue_limit=10)
    trial = Simulator(service, 1).measure(TrialRequest(OpenLoad(40.0, 20.0), "test"))
    assert trial.stats.errors[0][0] == "connection reset"
    assert trial.stats.throughput_rps == pytest.approx(20.0, rel=0.1)
    assert trial.timeline.in_flight.max() <= 12


def test_a_band_holds_the_number_in_flight() -> None:
    trial = Simulator(Service(capacity_rps=50.0), 1).measure(TrialRequest(WIDE_BAND, "test"))
    settled = trial.timeline.in_flight[4:]
    assert settled.min() >= 55
    assert settled.max() <= 102


def test_a_change_takes_effect_at_its_instant() -> None:
    service = Service(capacity_rps=50.0, change=Change(at_s=100.0, slower=2.0))
    ok = Simulator(service, 1).measure(TrialRequest(WIDE_BAND, "test")).timeline.ok
    assert ok[20:190].mean() * 2 == pytest.approx(50.0, rel=0.03)
    assert ok[210:].mean() * 2 == pytest.approx(25.0, rel=0.03)


def test_an_alarm_stops_a_hopeless_trial() -> None:
    simulator = Simulator(Service(capacity_rps=50.0), 1)
    trial = simulator.measure(TrialRequest(OpenLoad(75.0, 60.0), "test", alarm_s=0.5))
    assert trial.verdict.state is TrialState.DEGRADED
    assert len(trial.timeline.due) < 20


def test_the_same_seed_gives_the_same_trial() -> None:
    service = draw("mix", 3)
    first, second = (Simulator(service, 9).measure(TrialRequest(WIDE_BAND, "x")) for _ in range(2))
    assert np.array_equal(first.timeline.ok, second.timeline.ok)


def test_every_family_can_be_drawn_and_measured() -> None:
    for family in FAMILIES | ILL_POSED | LIMITED | CHANGING:
        service = draw(family, 1)
        load = ClosedLoad(4, 5.0)
        assert Simulator(service, 1).measure(TrialRequest(load, family)).stats.ok > 0


def test_a_limiter_lets_its_rate_through_and_refuses_the_rest() -> None:
    service = Service(workers=8, capacity_rps=400.0, limiter=Limiter(50.0, 1.0))
    ask = TrialRequest(OpenLoad(100.0, 60.0), "test", tolerates_errors=True)
    trial = Simulator(service, 1).measure(ask)
    assert trial.stats.ok == pytest.approx(50.0 * 61, rel=0.01)


def test_a_free_worker_takes_a_request_though_nobody_may_wait() -> None:
    service = Service(workers=4, capacity_rps=40.0, variation=0.05, queue_limit=0)
    trial = Simulator(service, 1).measure(TrialRequest(OpenLoad(20.0, 20.0), "test"))
    assert trial.stats.failed == 0


def test_who_waits_too_long_is_refused() -> None:
    service = Service(workers=2, capacity_rps=20.0, queue_timeout_s=0.5)
    trial = Simulator(service, 1).measure(TrialRequest(OpenLoad(40.0, 20.0), "test"))
    assert trial.stats.failed > 0
    assert trial.stats.service.max_s < 1.5


@pytest.mark.parametrize("seed", range(1, 6))
def test_a_trial_too_short_to_show_overload_is_undecided(seed: int) -> None:
    # 6.5/s offered, 2.5/s done: in 4.2 s the backlog cannot gain the 2 s that are growth.
    service = Service(workers=2, capacity_rps=2.5)
    ask = TrialRequest(OpenLoad(6.52, 4.2), "test", alarm_s=3.0, rise_s=2.0)
    trial = Simulator(service, seed).measure(ask)
    assert trial.verdict.state is TrialState.UNDECIDED
    assert "are too short: overload of 30 % could pass unnoticed" in trial.verdict.reasons[0]
