"""N of services that refuse before they saturate: limiters, short queues, time-outs."""

import re
from dataclasses import replace

import numpy as np
import pytest
from binomial import most_failures
from simulator.families import draw
from simulator.service import Law, Limiter, Lockout, Service, WindowLimiter
from simulator.simulator import Simulator
from simulator.truth import sustained_rps

from loadstone.analysis.goal import Goal, goal
from loadstone.analysis.model import Cause, Trial
from loadstone.plan.load import ClosedLoad, OpenLoad
from loadstone.search.model import Capacity, CapacityKind, TrialRequest
from loadstone.search.run import search
from loadstone.search.settings import SearchSettings
from loadstone.search.sprt import Decision, Sprt
from loadstone.search.strategies import STRATEGIES
from loadstone.search.tried import refusals, tried

DECISIONS = 150


def found(service: Service, seed: int = 1) -> tuple[Capacity, tuple[Trial, ...]]:
    settings = SearchSettings(budget_s=240.0)
    return search(STRATEGIES["meter"](settings), Simulator(service, seed).measure)


def test_a_rate_that_a_full_bucket_may_have_let_pass_is_no_lower_bound() -> None:
    # In a minute, 157 requests from rest are accepted at 7 % above N: the bucket covers the rest.
    index = 1_400_007
    service = draw("lockout", index, 20.0, 180.0)
    settings = SearchSettings(budget_s=60.0)
    capacity, _ = search(STRATEGIES["meter"](settings), Simulator(service, index).measure)
    assert capacity.low_rps is not None
    assert capacity.low_rps <= sustained_rps(service)


def test_rates_that_a_bucket_let_pass_for_a_while_give_an_interval() -> None:
    # What was left in the bucket differed between trials, which a steady rise does not explain.
    service = draw("large-bucket", 48)
    capacity, _ = found(service, 48)
    assert capacity.is_range
    assert capacity.kind is CapacityKind.REFUSAL
    assert capacity.low_rps is not None
    assert capacity.high_rps is not None
    assert capacity.low_rps <= sustained_rps(service) <= capacity.high_rps


def test_a_limit_is_known_from_enough_requests_just_below_it() -> None:
    # Few requests pass by chance at rates at which more are refused than may be.
    for family, index in (("short-queue", 14), ("short-queue", 50), ("connection-limit", 0)):
        service = draw(family, index)
        capacity, _ = found(service, index)
        assert capacity.rate_rps == pytest.approx(sustained_rps(service), rel=0.03)


def test_a_rate_that_is_neither_good_nor_bad_is_not_offered_again_and_again() -> None:
    _, trials = found(draw("limiter", 18), 18)
    rates = [trial.rate_rps for trial in trials if trial.rate_rps]
    assert max(rates.count(rate) for rate in rates) <= 3


@pytest.mark.parametrize("burst_s", [0.1, 2.0])
def test_a_rate_limiter_is_found_and_named_with_its_kind(burst_s: float) -> None:
    service = Service(workers=8, capacity_rps=400.0, limiter=Limiter(90.0, burst_s))
    capacity, trials = found(service)
    assert capacity.kind is CapacityKind.REFUSAL
    assert capacity.rate_rps == pytest.approx(90.0, rel=0.02)
    assert capacity.low_rps is not None
    assert capacity.high_rps is not None
    assert capacity.low_rps <= 90.0 <= capacity.high_rps
    assert "refuses with connection reset before it saturates" in capacity.words[0]
    assert len(trials) < 20
    assert not any("no more than" in word for word in capacity.words)


def found_where_many_may_fail(service: Service, allowed: float) -> Capacity:
    settings = SearchSettings(budget_s=240.0, error_share=allowed)
    simulator = Simulator(service, 1, Goal(error_share=allowed))
    return search(STRATEGIES["meter"](settings), simulator.measure)[0]


@pytest.mark.parametrize("allowed", [0.01, 0.05, 0.2, 0.3])
def test_a_limiter_refuses_the_allowed_share_at_n(allowed: float) -> None:
    service = Service(capacity_rps=50.0, limiter=Limiter(40.0))
    capacity = found_where_many_may_fail(service, allowed)
    truth = 40.0 / (1 - allowed)
    assert capacity.rate_rps == pytest.approx(truth, rel=0.01)
    assert capacity.low_rps is not None
    assert capacity.high_rps is not None
    assert capacity.low_rps <= truth <= capacity.high_rps
    good, bad = (float(share) / 100 for share in re.findall(r"([\d.]+) %", capacity.words[0]))
    assert good <= allowed < bad


def found_with_an_objective(service: Service, text: str, seed: int) -> Capacity:
    wanted = goal((text,))
    settings = SearchSettings(budget_s=240.0, objectives=wanted.objectives)
    return search(STRATEGIES["meter"](settings), Simulator(service, seed, wanted).measure)[0]


@pytest.mark.parametrize(
    ("service", "text"),
    [
        (Service(capacity_rps=50.0, workers=1, limiter=Limiter(45.0)), "p99<60ms"),
        (Service(capacity_rps=100.0, workers=2, limiter=Limiter(95.0)), "p95<40ms"),
    ],
)
def test_an_objective_below_a_limiter_is_the_limit(service: Service, text: str) -> None:
    capacity = found_with_an_objective(service, text, 2)
    assert capacity.kind is CapacityKind.OBJECTIVE
    assert "the objective is the limit" in capacity.words[0]


def test_an_objective_that_no_rate_meets_is_not_taken_for_a_refusal() -> None:
    service = Service(capacity_rps=50.0, limiter=Limiter(40.0))
    capacity = found_with_an_objective(service, "p99<110ms", 1)
    assert capacity.rate_rps is None
    assert capacity.causes == (Cause.OBJECTIVE,)
    assert f"an objective is missed at {capacity.high_rps:.4g}/s" in capacity.words
    assert not any("refuse" in word for word in capacity.words)


def test_a_short_queue_that_may_refuse_many_is_found() -> None:
    # Simulated with 40,000 requests, 20 % are refused at 62.6/s.
    capacity = found_where_many_may_fail(Service(capacity_rps=50.0, queue_limit=5), 0.2)
    assert capacity.rate_rps == pytest.approx(62.6, rel=0.02)
    assert capacity.low_rps is not None
    assert capacity.high_rps is not None
    assert capacity.low_rps <= 62.6 <= capacity.high_rps


def test_no_number_is_stated_where_many_may_be_refused_at_a_time() -> None:
    limiter = WindowLimiter(30.0, 3.0, Law.SLIDING)
    service = Service(capacity_rps=50.0, limiter=limiter, refuses_with="status")
    capacity = found_where_many_may_fail(service, 0.3)
    assert capacity.is_range
    assert capacity.low_rps is not None
    assert capacity.high_rps is not None
    assert capacity.low_rps <= 30.0 / 0.7 <= capacity.high_rps


@pytest.mark.parametrize(
    ("budget_s", "capacity_rps", "rate_rps", "burst_s"),
    [(90.0, 50.0, 25.0, 2.0), (90.0, 200.0, 100.0, 2.0), (240.0, 500.0, 200.0, 3.0)],
)
def test_what_a_bucket_lets_through_after_a_pause_is_not_taken_for_the_rate(
    budget_s: float, capacity_rps: float, rate_rps: float, burst_s: float
) -> None:
    service = Service(capacity_rps=capacity_rps, limiter=Limiter(rate_rps, burst_s))
    settings = SearchSettings(budget_s=budget_s)
    capacity, _ = search(STRATEGIES["meter"](settings), Simulator(service, 1).measure)
    assert capacity.rate_rps == pytest.approx(rate_rps, rel=0.03)


def test_refusals_where_more_were_in_flight_before_are_those_of_a_limiter() -> None:
    # Its bucket lasts for half of the search, in which the service is full.
    service = draw("large-bucket", 51)
    settings = SearchSettings(budget_s=120.0)
    capacity, _ = search(STRATEGIES["meter"](settings), Simulator(service, 51).measure)
    low, high = capacity.low_rps or 0.0, capacity.high_rps or np.inf
    assert low <= sustained_rps(service) <= high


@pytest.mark.parametrize(
    ("budget_s", "rate_rps", "burst_s"), [(30.0, 30.0, 1.0), (90.0, 40.0, 5.0)]
)
def test_a_trial_may_be_refused_before_its_first_tick_ends(
    budget_s: float, rate_rps: float, burst_s: float
) -> None:
    service = Service(capacity_rps=50.0, limiter=Limiter(rate_rps, burst_s))
    settings = SearchSettings(budget_s=budget_s)
    capacity, _ = search(STRATEGIES["meter"](settings), Simulator(service, 1).measure)
    low, high = capacity.low_rps or 0.0, capacity.high_rps or np.inf
    assert low <= rate_rps <= high


def test_the_refusals_that_are_told_are_those_of_the_trials_statistics() -> None:
    window = WindowLimiter(90.0, 3.0, Law.FIXED)
    limited = Service(workers=8, capacity_rps=400.0, limiter=window, refuses_with="status")
    simulator = Simulator(limited, 1)
    simulator.measure(TrialRequest(OpenLoad(150.0, 4.0), "fills the window"))
    trial = simulator.measure(TrialRequest(OpenLoad(50.0, 9.0), "test", tolerates_errors=True))
    one = tried(trial, 50.0, is_rested=False)
    assert 0 == one.refused < trial.stats.failed
    total = trial.stats.ok + trial.stats.failed
    assert refusals([one]).startswith(f"{trial.stats.failed} of {total} were refused")


def test_a_bucket_that_was_seen_to_empty_is_told() -> None:
    service = Service(workers=8, capacity_rps=400.0, limiter=Limiter(90.0, 2.0))
    capacity, _ = found(service)
    assert any("requests pass at once before it refuses" in word for word in capacity.words)


def test_a_limiter_that_slows_is_saturation() -> None:
    service = Service(workers=8, capacity_rps=400.0, limiter=Limiter(90.0, 0.1, delays=True))
    capacity, _ = found(service)
    assert capacity.kind is CapacityKind.SATURATION
    assert capacity.rate_rps == pytest.approx(90.0, rel=0.02)


@pytest.mark.long
@pytest.mark.parametrize(
    "family",
    [
        "limiter",
        "short-queue",
        "queue-timeout",
        "counting-window",
        "sliding-window",
    ],
)
def test_accuracy_over_a_family_of_services_that_refuse(family: str) -> None:
    errors, covered = [], 0
    for index in range(10):
        service = draw(family, 700 + index)
        capacity, _ = found(service, index)
        truth = sustained_rps(service)
        assert capacity.low_rps is not None
        assert capacity.high_rps is not None
        if capacity.rate_rps is not None:  # else its interval is too wide for a number
            errors.append(abs(capacity.rate_rps / truth - 1))
        covered += capacity.low_rps <= truth <= capacity.high_rps
    assert len(errors) >= 7
    assert np.median(errors) <= 0.015
    assert max(errors) <= 0.03
    assert 10 - covered <= most_failures(10, 0.05)


@pytest.mark.long
def test_walds_test_keeps_its_errors() -> None:
    test = Sprt(0.001)
    random = np.random.default_rng(1)
    decided = {share: _decisions(test, share, random) for share in (test.allowed, test.bad)}
    assert decided[test.allowed].count(Decision.BAD) <= 0.08 * DECISIONS
    assert decided[test.bad].count(Decision.GOOD) <= 0.08 * DECISIONS


def test_without_a_failure_a_rate_is_good_after_enough_requests() -> None:
    test = Sprt(0.001)
    assert test.decide(test.least_requests, 0) is Decision.GOOD
    assert test.decide(test.least_requests - 1, 0) is Decision.OPEN
    assert test.decide(20, 5) is Decision.BAD


def _decisions(test: Sprt, share: float, random: np.random.Generator) -> list[Decision]:
    return [_decision(test, share, random) for _ in range(DECISIONS)]


def _decision(test: Sprt, share: float, random: np.random.Generator) -> Decision:
    failed = requests = 0
    while (decision := test.decide(requests, failed)) is Decision.OPEN:
        failed += int(random.uniform() < share)
        requests += 1
    return decision


def test_refusals_that_come_fast_are_not_taken_for_the_ceiling() -> None:
    service = Service(workers=8, capacity_rps=400.0, limiter=Limiter(5.0, 0.1))
    simulator = Simulator(service, 1)

    def measure(ask: TrialRequest) -> Trial:
        # A closed loop that is refused at once starts as many as `--max-rate` allows.
        trial = simulator.measure(ask)
        if not isinstance(ask.load, ClosedLoad) or not trial.stats.failed:
            return trial
        return replace(trial, health=replace(trial.health, ceiling="held at 5000/s"))

    capacity, trials = search(STRATEGIES["meter"](SearchSettings(budget_s=240.0)), measure)
    assert max(trial.rate_rps or 0.0 for trial in trials) < 100.0
    assert capacity.kind is CapacityKind.REFUSAL
    assert capacity.rate_rps == pytest.approx(5.0, rel=0.05)


@pytest.mark.parametrize("window_s", [1.0, 10.0])
@pytest.mark.parametrize("law", list(Law))
@pytest.mark.parametrize("limit_rps", [5.0, 50.0])
def test_a_limiter_that_counts_in_windows_is_found(
    law: Law, window_s: float, limit_rps: float
) -> None:
    limiter = WindowLimiter(limit_rps, window_s, law)
    service = Service(workers=8, capacity_rps=400.0, limiter=limiter, refuses_with="status")
    capacity, _ = found(service)
    assert capacity.kind is CapacityKind.REFUSAL
    assert capacity.rate_rps == pytest.approx(limit_rps, rel=0.03)
    assert capacity.low_rps is not None
    assert capacity.high_rps is not None
    assert capacity.low_rps <= limit_rps <= capacity.high_rps
    assert "refuses with 429 Too Many Requests" in capacity.words[0]
    assert not any("restarted" in word for word in capacity.words)


@pytest.mark.long
@pytest.mark.parametrize("begun", [0.54, 0.69, 0.81, 0.96])
def test_a_window_that_is_weighed_is_not_taken_for_a_bucket(begun: float) -> None:
    limiter = WindowLimiter(5.0, 3.0, Law.COUNTING, begun)
    service = Service(workers=8, capacity_rps=400.0, limiter=limiter, refuses_with="status")
    capacity, _ = found(service)
    assert capacity.rate_rps == pytest.approx(5.0, rel=0.03)
    assert capacity.low_rps is not None
    assert capacity.high_rps is not None
    assert capacity.low_rps <= 5.0 <= capacity.high_rps


def test_a_limiter_that_counts_what_it_refuses_is_said_to_need_pauses() -> None:
    limiter = WindowLimiter(5.0, 10.0, Law.COUNTING)
    service = Service(workers=8, capacity_rps=400.0, limiter=limiter, refuses_with="status")
    capacity, trials = found(service)
    assert any("what it refuses depends on the load before" in one for one in capacity.words)
    assert any("after a pause of" in trial.purpose for trial in trials)


@pytest.mark.parametrize("lasting_s", [5.0, 40.0])
def test_a_lockout_after_refusals_is_waited_for(lasting_s: float) -> None:
    service = Service(
        workers=8,
        capacity_rps=200.0,
        limiter=Limiter(20.0, 0.1),
        lockout=Lockout(10, lasting_s),
        refuses_with="status",
    )
    capacity, _ = found(service)
    assert capacity.kind is CapacityKind.REFUSAL
    assert capacity.rate_rps == pytest.approx(20.0, rel=0.05)


@pytest.mark.long
@pytest.mark.parametrize("refuses_with", ["refused", "reset"])
def test_a_limit_on_connections_is_no_restart(refuses_with: str) -> None:
    service = Service(
        workers=8, capacity_rps=100.0, variation=0.2, connections=12, refuses_with=refuses_with
    )
    capacity, _ = found(service)
    truth = sustained_rps(service)
    assert capacity.rate_rps == pytest.approx(truth, rel=0.03)
    assert not any("restarted" in word for word in capacity.words)


def test_a_limit_below_the_first_rate_is_found() -> None:
    limiter = WindowLimiter(2.0, 1.0, Law.COUNTING)
    service = Service(workers=4, capacity_rps=100.0, limiter=limiter, refuses_with="status")
    capacity, _ = found(service)
    assert capacity.low_rps is not None
    assert capacity.high_rps is not None
    assert 1.8 <= capacity.low_rps <= 2.0 <= capacity.high_rps <= 2.2


@pytest.mark.parametrize("family", ["limiter", "limiter-per-user"])
def test_a_minute_does_not_take_a_full_bucket_for_the_rate(family: str) -> None:
    misses = 0
    for index in range(710_000, 710_020):
        service = draw(family, index)
        settings = SearchSettings(budget_s=60.0)
        capacity, _ = search(STRATEGIES["meter"](settings), Simulator(service, index).measure)
        low, high = capacity.low_rps or 0.0, capacity.high_rps or np.inf
        misses += not low <= sustained_rps(service) <= high
    assert misses <= most_failures(20, 0.05)


@pytest.mark.parametrize("index", [710_001, 710_164, 710_206])
def test_a_queue_that_has_not_filled_yet_shows_no_rate_above_the_capacity(index: int) -> None:
    service = draw("overflow", index)
    settings = SearchSettings(budget_s=60.0)
    capacity, _ = search(STRATEGIES["meter"](settings), Simulator(service, index).measure)
    assert capacity.rate_rps == pytest.approx(service.capacity_rps, rel=0.04)


@pytest.mark.parametrize("index", [70001, 70013])
def test_a_rate_at_which_work_queues_is_not_said_to_be_refused(index: int) -> None:
    service = draw("overflow", index)
    settings = SearchSettings(budget_s=295.0)
    capacity, _ = search(STRATEGIES["meter"](settings), Simulator(service, index).measure)
    assert capacity.rate_rps == pytest.approx(service.capacity_rps, rel=0.02)
    assert capacity.kind is CapacityKind.SATURATION
    assert "work queues from" in capacity.words[0]


@pytest.mark.long
@pytest.mark.parametrize("index", [50003, 50048])
def test_a_bucket_behind_a_lockout_is_not_taken_for_the_rate(index: int) -> None:
    service = draw("lockout", index)
    capacity, _ = found(service, index)
    assert service.limiter is not None
    assert capacity.rate_rps == pytest.approx(service.limiter.rate_rps, rel=0.02)
    assert capacity.low_rps is not None
    assert capacity.high_rps is not None
    assert capacity.low_rps <= service.limiter.rate_rps <= capacity.high_rps


@pytest.mark.long
@pytest.mark.parametrize(("family", "index"), [("connection-limit", 50046), ("short-queue", 50058)])
def test_refusals_that_begin_slowly_are_within_the_interval(family: str, index: int) -> None:
    service = draw(family, index)
    capacity, _ = found(service, index)
    assert capacity.low_rps is not None
    assert capacity.high_rps is not None
    assert capacity.low_rps <= sustained_rps(service) <= capacity.high_rps
