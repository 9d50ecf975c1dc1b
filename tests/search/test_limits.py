"""The user's limits hold for every strategy, and none of them is taken for the service's."""

import pytest
from simulator.service import Service
from simulator.simulator import Simulator

from loadstone.analysis.model import Cause, Trial, TrialState
from loadstone.errors import InvalidInput
from loadstone.plan.load import OpenLoad
from loadstone.search.model import Capacity, CapacityKind, TrialRequest
from loadstone.search.run import search
from loadstone.search.settings import SearchSettings
from loadstone.search.strategies import STRATEGIES, strategy

FAR = Service(workers=4, capacity_rps=500.0, delay_s=1.0)
FARTHER = Service(workers=4, capacity_rps=60.0, delay_s=6.0)
SLOW = Service(workers=2, capacity_rps=2.0)


def found(
    service: Service, budget_s: float, method: str = "meter", **more: float
) -> tuple[Capacity, tuple[Trial, ...]]:
    settings = SearchSettings(budget_s=budget_s, **more)  # type: ignore[arg-type]
    return search(STRATEGIES[method](settings), Simulator(service, 1).measure)


@pytest.mark.parametrize(("service", "budget_s"), [(FAR, 60.0), (FARTHER, 200.0)])
def test_slow_answers_need_many_connections_and_do_not_change_n(
    service: Service, budget_s: float
) -> None:
    capacity, trials = found(service, budget_s)
    assert capacity.rate_rps == pytest.approx(service.capacity_rps, rel=0.03)
    assert capacity.kind is CapacityKind.SATURATION
    assert all(trial.verdict.cause is not Cause.OVERLOAD for trial in trials if not trial.rate_rps)


@pytest.mark.parametrize("method", ["meter", "bisect", "closed-loop-peak"])
def test_a_limit_on_connections_is_said_and_not_taken_for_the_services(method: str) -> None:
    capacity, _ = found(FAR, 300.0, method, max_connections=256)
    assert capacity.kind is CapacityKind.CEILING
    assert capacity.high_rps is None
    assert capacity.rate_rps == pytest.approx(256.0, rel=0.06)
    assert any("connections" in word or "still rising" in word for word in capacity.words)


def test_a_constant_rate_that_waits_for_connections_is_no_overload() -> None:
    ask = TrialRequest(OpenLoad(400.0, 20.0), "test", settle_s=2.2, max_connections=256)
    trial = Simulator(FAR, 1).measure(ask)
    assert (trial.verdict.state, trial.verdict.cause) == (TrialState.INVALID, Cause.CONNECTIONS)
    assert "all 256 connections were in use" in trial.verdict.reasons[0]


def test_a_saturated_service_with_all_connections_in_use_is_overload() -> None:
    service = Service(workers=4, capacity_rps=500.0)
    ask = TrialRequest(OpenLoad(700.0, 10.0), "test", max_connections=256)
    trial = Simulator(service, 1).measure(ask)
    assert (trial.verdict.state, trial.verdict.cause) == (TrialState.DEGRADED, Cause.OVERLOAD)


@pytest.mark.parametrize("method", STRATEGIES)
@pytest.mark.parametrize("service", [Service(), SLOW, FAR, FARTHER])
def test_the_budget_holds_but_for_answers_that_are_waited_for(
    method: str, service: Service
) -> None:
    asked: list[TrialRequest] = []
    simulator = Simulator(service, 1)

    def measure(ask: TrialRequest) -> Trial:
        asked.append(ask)
        return simulator.measure(ask)

    _, trials = search(STRATEGIES[method](SearchSettings(budget_s=20.0)), measure)
    spent_s = sum(trial.stats.load_s for trial in trials[:-1])
    assert spent_s < 20.0 or not asked
    assert spent_s + (asked[-1].load.duration_s or 0.0 if asked else 0.0) <= 20.0 + 1e-6


def test_a_method_whose_trials_do_not_fit_into_the_budget_is_refused() -> None:
    with pytest.raises(
        InvalidInput, match=r"less than one trial of isp-ras-2015-text .360 s.* --budget 78m"
    ):
        strategy("isp-ras-2015-text", SearchSettings(budget_s=240.0))
