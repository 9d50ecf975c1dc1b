"""Errors that come at any load, on simulated services."""

import re
from dataclasses import replace

import pytest
from binomial import most_failures
from simulator.families import draw
from simulator.service import Limiter, Service
from simulator.simulator import Simulator

from loadstone.analysis.goal import Goal
from loadstone.analysis.model import Cause, Trial
from loadstone.search.errors import Errors, counted
from loadstone.search.model import Capacity
from loadstone.search.run import search
from loadstone.search.settings import SearchSettings
from loadstone.search.strategies import STRATEGIES

ANY_RATE = "errors that do not depend on the load"
MAYBE = "errors that may not depend on the load"
NOTE = "if it is more, there is no N"
WITHOUT = re.compile(r"without these errors, N is [\d.]+/s \(([\d.]+) to ([\d.]+)\)")


def found(service: Service, seed: int, budget_s: float) -> tuple[Capacity, tuple[Trial, ...]]:
    settings = SearchSettings(budget_s=budget_s)
    return search(STRATEGIES["meter"](settings), Simulator(service, seed).measure)


def test_errors_at_any_rate_are_named_without_a_flood() -> None:
    others = floods = 0
    for seed in range(12):
        capacity, trials = found(Service(capacity_rps=200.0, error_share=0.01), seed, 120.0)
        assert capacity.rate_rps is None
        others += Cause.ERRORS not in capacity.causes or ANY_RATE not in capacity.words[0]
        floods += any("flood" in trial.purpose for trial in trials)
    # A trial at half the load may have too few errors by chance.
    assert max(others, floods) <= most_failures(12, 0.15)


def test_too_few_errors_to_tell_are_no_number() -> None:
    numbers = 0
    for index in range(700_000, 700_012):
        service = replace(draw("errors", index), error_share=0.01)
        capacity, _ = found(service, index, 60.0)
        numbers += capacity.rate_rps is not None
    assert numbers <= most_failures(12, 0.05)


@pytest.mark.parametrize("share", [0.002, 0.0012, 0.001])
def test_errors_near_the_allowed_share_are_named_with_n_without_them(share: float) -> None:
    others = missed = 0
    for seed in range(8):
        capacity, trials = found(Service(capacity_rps=200.0, error_share=share), seed, 60.0)
        failed = counted(trials)
        if capacity.rate_rps is not None:
            # No more than the allowed share was seen.
            assert failed.share <= 0.001
            others += failed.interval[1] > 0.001 and NOTE not in capacity.words[-1]
            continue
        reason, without = capacity.words[:2]
        is_named = reason.startswith((ANY_RATE, MAYBE)) and "allowed share of 0.10 %" in reason
        others += not is_named
        bounds = WITHOUT.fullmatch(without)
        assert bounds is not None
        missed += not float(bounds[1]) <= 200.0 <= float(bounds[2])
    assert others <= most_failures(8, 0.05)
    assert missed <= most_failures(8, 0.05)


def test_more_errors_at_little_load_are_no_sign_of_a_limit() -> None:
    # By chance, twice as many as above in the trial at half the load.
    for seed in (3, 10):
        capacity, _ = found(Service(capacity_rps=200.0, error_share=0.003), seed, 240.0)
        assert capacity.rate_rps is None


def test_a_share_of_errors_well_below_the_allowed_one_leaves_the_number() -> None:
    others = 0
    for seed in range(6):
        capacity, _ = found(Service(capacity_rps=200.0, error_share=0.0003), seed, 240.0)
        others += capacity.rate_rps != pytest.approx(200.0, rel=0.03)
    assert others <= most_failures(6, 0.05)


def test_single_errors_in_a_trial_are_not_taken_for_an_outage() -> None:
    for seed in range(6):
        capacity, _ = found(Service(capacity_rps=200.0, error_share=0.002), seed, 240.0)
        assert not any("restarted" in note for note in capacity.words)


def test_a_limiter_is_not_taken_for_errors_at_any_rate() -> None:
    service = Service(workers=8, capacity_rps=400.0, limiter=Limiter(90.0, 0.5))
    capacity, _ = found(service, 1, 60.0)
    assert capacity.rate_rps == pytest.approx(90.0, rel=0.03)


def test_the_interval_of_a_share_is_that_of_wilson() -> None:
    low, high = Errors(2, 1000).interval
    assert low == pytest.approx(0.00055, abs=1e-5)
    assert high == pytest.approx(0.00726, abs=1e-5)


def with_errors(share: float, seed: int, allowed: float) -> tuple[Capacity, tuple[Trial, ...]]:
    service = Service(workers=8, capacity_rps=100.0, error_share=share)
    settings = SearchSettings(budget_s=120.0, error_share=allowed)
    goal = Goal(error_share=allowed)
    return search(STRATEGIES["meter"](settings), Simulator(service, seed, goal).measure)


@pytest.mark.parametrize(("share", "allowed"), [(0.07, 0.1), (0.12, 0.2)])
def test_errors_at_any_rate_do_not_end_the_ramp_before_the_service_is_full(
    share: float, allowed: float
) -> None:
    for seed in range(8):
        capacity, trials = with_errors(share, seed, allowed)
        assert capacity.rate_rps == pytest.approx(100.0, rel=0.03)
        assert capacity.low_rps is not None
        assert capacity.high_rps is not None
        assert capacity.low_rps <= 100.0 <= capacity.high_rps
        assert max(trial.rate_rps or 0.0 for trial in trials) < 150.0  # nothing is flooded


def test_n_without_the_errors_is_that_of_a_full_service_however_the_ramp_ended() -> None:
    missed = 0
    for seed in range(8):
        capacity, _ = with_errors(0.05, seed, 0.001)
        bounds = WITHOUT.fullmatch(capacity.words[1])
        assert bounds is not None
        missed += not float(bounds[1]) <= 100.0 <= float(bounds[2])
        assert float(bounds[2]) > 90.0  # and not the little that one worker completes
    assert missed <= most_failures(8, 0.05)


@pytest.mark.parametrize(
    "limit",
    [
        {"limiter": Limiter(90.0)},
        {"queue_limit": 4.0},
        {"queue_timeout_s": 0.1},
        {"connections": 10.0},
    ],
    ids=["limiter", "short queue", "queue time-out", "connections"],
)
def test_errors_at_any_rate_stay_the_answer_beside_a_limit_that_refuses(
    limit: dict[str, object],
) -> None:
    for seed in range(4):
        service = Service(workers=8, capacity_rps=100.0, error_share=0.12, **limit)
        settings = SearchSettings(budget_s=120.0, error_share=0.001)
        simulator = Simulator(service, seed, Goal(error_share=0.001))
        capacity, _ = search(STRATEGIES["meter"](settings), simulator.measure)
        assert capacity.rate_rps is None
        assert capacity.causes == (Cause.ERRORS,)
        assert "errors" in capacity.words[0]
