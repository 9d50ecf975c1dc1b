"""The user's limits hold for every strategy, and none of them is taken for the service's."""

import re
from dataclasses import replace

import pytest
from simulator.service import Service
from simulator.simulator import Simulator

from loadstone.analysis.model import Cause, Trial, TrialState
from loadstone.errors import InvalidInput
from loadstone.plan.load import ClosedLoad, OpenLoad
from loadstone.search.bracket import Bracket
from loadstone.search.depth import Depths
from loadstone.search.model import Capacity, CapacityKind, TrialRequest
from loadstone.search.ramp import Knee
from loadstone.search.run import search
from loadstone.search.session import Session
from loadstone.search.settings import SearchSettings
from loadstone.search.statement import state
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


def test_a_curve_of_slow_answers_does_not_contradict_n() -> None:
    capacity, _ = found(FARTHER, 200.0, curve_s=10.0)
    assert capacity.rate_rps == pytest.approx(FARTHER.capacity_rps, rel=0.03)


@pytest.mark.parametrize("connections", [1, 2, 3])
def test_no_load_has_more_workers_than_connections_are_allowed(connections: int) -> None:
    service = Service(workers=6, capacity_rps=20.0)
    settings = SearchSettings(budget_s=60.0, max_connections=connections)
    asked: list[TrialRequest] = []

    def measure(request: TrialRequest) -> Trial:
        asked.append(request)
        return simulator.measure(request)

    simulator = Simulator(service, 1)
    search(STRATEGIES["meter"](settings), measure)
    closed = [one.load.workers for one in asked if isinstance(one.load, ClosedLoad)]
    assert max(closed, default=0) <= connections


def test_a_full_service_is_not_said_to_need_more_connections() -> None:
    capacity, _ = found(Service(workers=8, capacity_rps=160.0), 240.0, max_connections=16)
    assert capacity.kind is CapacityKind.SATURATION
    assert capacity.rate_rps == pytest.approx(160.0, rel=0.05)


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


# Responses take 2 s and 6 s, however few there are.
CROWDED = Service(workers=300, capacity_rps=150.0, variation=0.0)
SIX = Service(workers=6, capacity_rps=1.0, variation=0.0)
TIMEOUT_S = 30.0


@pytest.mark.parametrize("service", [CROWDED, SIX, SLOW, FAR, FARTHER])
@pytest.mark.parametrize("budget_s", [20.0, 30.0, 60.0, 240.0])
def test_the_budget_holds_for_load_and_answers(service: Service, budget_s: float) -> None:
    _, trials = found(service, budget_s)
    assert sum(trial.stats.load_s for trial in trials) <= 1.1 * budget_s


@pytest.mark.parametrize("service", [CROWDED, SIX])
@pytest.mark.parametrize("budget_s", [20.0, 30.0, 60.0, 240.0])
def test_a_search_causes_no_time_outs(service: Service, budget_s: float) -> None:
    _, trials = found(service, budget_s)
    assert max(trial.stats.service.max_s for trial in trials if trial.stats.ok) < TIMEOUT_S


def test_load_stops_growing_when_completions_have_stopped_rising() -> None:
    _, trials = found(CROWDED, 240.0)
    assert max(int(trial.timeline.in_flight.max()) for trial in trials) < 2000


@pytest.mark.parametrize("service", [CROWDED, SIX])
def test_a_budget_that_is_too_short_leaves_an_estimate(service: Service) -> None:
    capacity, _ = found(service, 30.0)
    assert (capacity.rate_rps, capacity.low_rps, capacity.high_rps) == (None, None, None)
    assert capacity.words[0].startswith("N is about ")


@pytest.mark.parametrize("budget_s", [240.0, 3000.0])
def test_a_service_too_slow_for_the_time_out_is_not_said_to_need_a_longer_budget(
    budget_s: float,
) -> None:
    slow = Simulator(Service(workers=1, capacity_rps=0.3, variation=0.2), 0)
    capacity, trials = search(STRATEGIES["meter"](SearchSettings(budget_s=budget_s)), slow.measure)
    assert (capacity.rate_rps, capacity.low_rps, capacity.high_rps) == (None, None, None)
    assert capacity.causes == (Cause.GENERATOR,)  # for which no longer budget is recommended
    assert re.fullmatch(
        r"N is about 0\.\d+/s or more: this is the throughput with 4 requests in flight",
        capacity.words[0],
    )  # one step shows no rise
    assert capacity.words[1:] == (
        "more requests at once may take longer than 20 s, and the time-out of a request is 30 s",
    )
    assert sum(trial.stats.failed for trial in trials) == 0


@pytest.mark.parametrize("workers", [1, 8])
def test_a_closed_loop_at_the_ceiling_states_what_completed(workers: int) -> None:
    limited = Limited(Simulator(Service(workers=workers, capacity_rps=26.0), 1))
    settings = SearchSettings(budget_s=240.0, ceiling_rps=30.0)
    capacity, trials = search(STRATEGIES["closed-loop-peak"](settings), limited.measure)
    completed = max(trial.stats.throughput_rps for trial in trials)
    assert capacity.rate_rps == pytest.approx(completed)
    assert capacity.low_rps == pytest.approx(completed)


class Limited:
    """A service whose load generator reports that the limit on the load set the rate."""

    def __init__(self, simulator: Simulator) -> None:
        self._simulator = simulator

    def measure(self, ask: TrialRequest) -> Trial:
        trial = self._simulator.measure(ask)
        assert trial.health is not None
        return replace(trial, health=replace(trial.health, ceiling="30/s is the most allowed"))


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
        InvalidInput,
        match=r"less than one trial of isp-ras-2015-text .360 s.* up to 10; try --budget 50m",
    ):
        strategy("isp-ras-2015-text", SearchSettings(budget_s=240.0))


@pytest.mark.parametrize("method", ["meter", "bisect"])
@pytest.mark.parametrize("ceiling_rps", [0.5, 1.0, 2.0, 2.5])
def test_a_low_ceiling_that_holds_is_a_lower_bound(method: str, ceiling_rps: float) -> None:
    service = Service(capacity_rps=200.0)
    capacity, trials = found(service, 240.0, method, ceiling_rps=ceiling_rps)
    assert (capacity.low_rps, capacity.high_rps) == (ceiling_rps, None)
    assert capacity.kind is CapacityKind.CEILING
    assert capacity.words[0].startswith(f"at least {ceiling_rps:g}/s, the ceiling")
    assert trials[-1].verdict.state is TrialState.SUSTAINED


@pytest.mark.parametrize("method", ["meter", "bisect"])
def test_a_ceiling_too_low_to_be_judged_within_the_budget_bounds_nothing(method: str) -> None:
    capacity, _ = found(Service(capacity_rps=200.0), 60.0, method, ceiling_rps=0.1)
    assert (capacity.rate_rps, capacity.low_rps, capacity.high_rps) == (None, None, None)
    assert capacity.confidence == 0.0
    assert "ended before N was found" in capacity.words[0]


def test_without_a_rate_that_failed_there_is_no_upper_bound() -> None:
    session = Session(SearchSettings())
    depths = Depths(Knee(14.2, 0.01, 100.0, is_saturated=True), 14.2, 100.0)
    bracket = Bracket(session, depths)
    bracket.low = 8.9
    capacity = state(depths, bracket)
    assert (capacity.rate_rps, capacity.low_rps, capacity.high_rps) == (8.9, 8.9, None)
    assert capacity.confidence == 0.0
    assert capacity.words[0] == "at least 8.9/s, which was sustained"


def test_the_budget_holds_at_a_rate_whose_schedule_is_longer_than_its_answers() -> None:
    for ceiling_rps in (0.1, 0.5):
        _, trials = found(Service(capacity_rps=200.0), 60.0, ceiling_rps=ceiling_rps)
        assert sum(trial.spent_s for trial in trials) <= 62.0
        assert len(trials) < 20
