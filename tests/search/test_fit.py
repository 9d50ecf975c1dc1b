"""Whether the trials of a search fit one capacity, on simulated services."""

import math

import pytest
from binomial import most_failures
from simulator.families import draw
from simulator.paces import Collapse, Contention, Decline, Idle, Job, Pace
from simulator.service import Service
from simulator.simulator import Simulator
from simulator.truth import lasting_rps

from loadstone.analysis.model import Cause, Trial
from loadstone.plan.load import BandLoad
from loadstone.search.fit import blocks, contradictions, fit
from loadstone.search.model import Capacity, CapacityKind, TrialRequest
from loadstone.search.run import search
from loadstone.search.settings import SearchSettings
from loadstone.search.strategies import STRATEGIES

MISFIT = "these trials do not fit one capacity: "
FALSE_ALARMS = 0.01  # share of the services with one capacity


def found(
    service: Service, seed: int = 1, budget_s: float = 60.0
) -> tuple[Capacity, tuple[Trial, ...]]:
    settings = SearchSettings(budget_s=budget_s)
    return search(STRATEGIES["meter"](settings), Simulator(service, seed).measure)


def paced(pace: Pace, capacity_rps: float = 200.0) -> Service:
    return Service(capacity_rps=capacity_rps, pace=pace)


@pytest.mark.parametrize(
    "pace", [Decline(per_request=2e-5), Decline(per_s=0.008)], ids=["requests", "time"]
)
def test_a_capacity_that_declines_all_the_time_is_no_number(pace: Decline) -> None:
    capacity, trials = found(paced(pace, 400.0))
    assert (capacity.rate_rps, capacity.low_rps, capacity.high_rps) == (None, None, None)
    assert capacity.causes == (Cause.INCONSISTENT,)
    assert capacity.words[0].startswith(f"{MISFIT}the capacity declines all the time: ")
    one = fit(blocks(trials))
    assert one is not None
    assert one.trend is not None
    assert one.trend.share < 0


def test_the_loss_for_each_request_is_estimated() -> None:
    # Service times grow by 2 % for each 1,000 requests, so the rate loses 1.2 to 2 % of its mean.
    _, trials = found(paced(Decline(per_request=2e-5), 400.0))
    one = fit(blocks(trials))
    assert one is not None
    assert one.trend is not None
    thousands = (one.blocks[-1].requests - one.blocks[0].requests) / 1000
    assert 0.012 < -one.trend.share / thousands < 0.02


@pytest.mark.parametrize("sticks", [False, True])
def test_a_collapse_is_named_with_the_rate_that_is_left(sticks: bool) -> None:
    service = Service(workers=4, capacity_rps=400.0, pace=Collapse(40, 2.0, sticks))
    capacity, _ = found(service)
    assert capacity.kind is CapacityKind.COLLAPSE
    assert capacity.rate_rps == pytest.approx(200.0, rel=0.03)
    assert capacity.words[0].startswith("throughput collapses when a queue forms: ")
    assert not any("bucket" in word or "changed" in word for word in capacity.words)


def test_a_pause_in_which_a_queue_forms_is_no_collapse() -> None:
    index = 1_300_000  # for 3.6 s in every 30 s nothing completes
    service = draw("checkpoint", index, 20.0, 180.0)
    capacity, _ = found(service, index, budget_s=240.0)
    assert capacity.kind is not CapacityKind.COLLAPSE
    assert not any("collapses" in word for word in capacity.words)


def test_a_service_that_has_changed_with_time_does_not_collapse() -> None:
    index = 1_500_023  # another program takes a third of the machine for a while, again and again
    capacity, _ = found(draw("neighbour", index, 20.0, 180.0), index, budget_s=240.0)
    assert any("the capacity changed" in word for word in capacity.words)
    assert not any("collapses" in word for word in capacity.words)
    assert capacity.rate_rps is None


def test_a_service_that_is_slower_the_more_is_inside_has_no_number() -> None:
    capacity, _ = found(paced(Contention(0.005), 100.0))
    assert capacity.rate_rps is None
    assert "the more requests are inside, the slower it is" in capacity.words[0]
    assert capacity.causes == (Cause.INCONSISTENT,)


def test_a_service_that_begins_each_trial_slowly_has_no_number() -> None:
    capacity, _ = found(paced(Idle(after_s=0.05, requests=1500.0, gain=1.5)), budget_s=110.0)
    assert capacity.rate_rps is None
    assert capacity.causes == (Cause.INCONSISTENT,)


def test_the_interval_of_a_swinging_service_holds_its_mean_or_there_is_no_number() -> None:
    silent = 0
    for seed in range(6):
        service = draw("swing", 900_000 + seed)
        simulator = Simulator(service, seed)
        settings = SearchSettings(budget_s=60.0)
        capacity, _ = search(STRATEGIES["meter"](settings), simulator.measure)
        mean_rps, _ = lasting_rps(service, simulator)
        low, high = capacity.low_rps or 0.0, capacity.high_rps or math.inf
        silent += not low <= mean_rps <= high
    assert silent <= most_failures(6, 0.05)


def test_seconds_in_which_a_full_service_differs_contradict_each_other() -> None:
    simulator = Simulator(paced(Job(every_s=30.0, for_s=10.0, factor=2.0)), 1)
    band = BandLoad(low=60, high=100, fill_rps=400.0, ebb_rps=140.0, duration_s=20.0)
    trials = [simulator.measure(TrialRequest(band, "meter")) for _ in range(3)]
    one = fit(blocks(trials))
    assert one is not None
    assert one.spread is not None
    slow, fast = one.spread
    assert slow.rate_rps == pytest.approx(100.0, rel=0.1)
    assert fast.rate_rps == pytest.approx(200.0, rel=0.1)
    assert "although the service was full in both" in contradictions(one)[-1]


@pytest.mark.long
@pytest.mark.parametrize("family", ["deterministic", "bursts", "gc", "fsync"])
def test_services_with_one_capacity_get_a_number(family: str) -> None:
    capacities = [found(draw(family, 3000 + index), index)[0] for index in range(25)]
    flagged = [one for one in capacities if Cause.INCONSISTENT in one.causes]
    assert len(flagged) <= most_failures(25, FALSE_ALARMS)


def test_too_few_full_seconds_contradict_nothing() -> None:
    capacity, trials = found(Service(workers=2, capacity_rps=2.0), budget_s=20.0)
    assert fit(blocks(trials)) is None
    assert Cause.INCONSISTENT not in capacity.causes
