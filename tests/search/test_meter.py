"""The search on services of known capacity: accuracy, honesty, words where a number is not all."""

import math
import re
from dataclasses import replace

import numpy as np
import pytest
from simulator.families import draw
from simulator.service import Bursts, Change, Crowding, Outage, Service
from simulator.simulator import Simulator

from loadstone.analysis.goal import Goal, goal
from loadstone.analysis.model import Cause, Trial, TrialState, Verdict
from loadstone.plan.load import OpenLoad
from loadstone.search.model import Capacity, CapacityKind, TrialRequest
from loadstone.search.outage import outage_s
from loadstone.search.run import search
from loadstone.search.settings import SearchSettings
from loadstone.search.strategies import STRATEGIES, strategy

QUIET = Service(workers=4, capacity_rps=50.0)


def found(
    service: Service,
    budget_s: float = 150.0,
    wanted: Goal | None = None,
    ceiling_rps: float = 5000.0,
    method: str = "meter",
    seed: int = 3,
) -> tuple[Capacity, tuple[Trial, ...]]:
    wanted = wanted or Goal()
    settings = SearchSettings(
        budget_s=budget_s, ceiling_rps=ceiling_rps, error_share=wanted.error_share
    )
    simulator = Simulator(service, seed, wanted)
    return search(STRATEGIES[method](settings), simulator.measure)


def test_no_interval_reaches_below_nothing() -> None:
    slow = Service(workers=2, capacity_rps=0.8, variation=2.0)
    for seed in range(1, 7):
        capacity, _ = found(slow, budget_s=75.0, ceiling_rps=200.0, seed=seed)
        assert capacity.low_rps is None or capacity.low_rps >= 0.0


def test_no_rate_below_nothing_is_asked_for_where_hardly_anything_was_seen() -> None:
    slow = Service(workers=2, capacity_rps=2.5, variation=1.0)
    capacity, trials = found(slow, budget_s=45.0, seed=1)
    assert capacity.low_rps is None or capacity.low_rps >= 0.0
    assert all(trial.rate_rps > 0 for trial in trials if trial.rate_rps is not None)


@pytest.mark.long
@pytest.mark.parametrize(
    ("family", "median", "tail"),
    [("deterministic", 0.6, 2.0), ("gc", 1.0, 3.0), ("overflow", 0.6, 2.0), ("bursts", 1.2, 3.5)],
)
def test_accuracy_and_honesty_over_a_family(family: str, median: float, tail: float) -> None:
    errors, covered, loads = [], 0, []
    for index in range(10):
        service = draw(family, 500 + index)
        capacity, trials = found(service, budget_s=285.0, seed=index)
        assert capacity.rate_rps is not None
        assert capacity.low_rps is not None
        assert capacity.high_rps is not None
        errors.append(abs(capacity.rate_rps / service.long_run_rps - 1) * 100)
        covered += capacity.low_rps <= service.long_run_rps <= capacity.high_rps
        loads.append(sum(trial.stats.load_s for trial in trials))
    assert np.median(errors) <= median
    assert np.quantile(errors, 0.95) <= tail
    assert covered >= 9
    assert np.median(loads) <= 255


@pytest.mark.long
@pytest.mark.parametrize(
    ("workers", "capacity_rps", "variation", "share"),
    [(2, 7.0, 0.1, 0.05), (2, 46.0, 0.2, 0.03), (2, 2000.0, 0.5, 0.02)],
)
def test_a_short_search_is_near_and_keeps_its_budget(
    workers: int, capacity_rps: float, variation: float, share: float
) -> None:
    service = Service(workers=workers, capacity_rps=capacity_rps, variation=variation)
    near = 0
    for seed in range(5 if capacity_rps < 1000 else 2):
        capacity, trials = found(service, budget_s=75.0, seed=seed)
        assert capacity.rate_rps is not None
        near += abs(capacity.rate_rps / capacity_rps - 1) <= share
        assert sum(trial.stats.load_s for trial in trials) <= 80
    assert near >= (4 if capacity_rps < 1000 else 2)


def test_the_number_rests_on_a_rate_that_held_and_one_that_did_not() -> None:
    capacity, trials = found(QUIET)
    assert capacity.rate_rps is not None
    judged = {trial.verdict.state: trial.rate_rps for trial in trials if trial.rate_rps}
    assert judged[TrialState.SUSTAINED] < capacity.rate_rps < judged[TrialState.DEGRADED]
    assert capacity.words == ()


def test_trials_are_numbered_and_say_why_they_were_run() -> None:
    _, trials = found(QUIET)
    assert [trial.number for trial in trials] == list(range(1, len(trials) + 1))
    assert all(trial.purpose for trial in trials)


def test_no_constant_rate_above_the_ceiling_is_offered() -> None:
    capacity, trials = found(replace(QUIET, capacity_rps=500.0), ceiling_rps=100.0)
    assert capacity.rate_rps == 100.0
    assert capacity.high_rps is None
    assert "at least 100/s, the ceiling" in capacity.words[0]
    assert max(trial.rate_rps or 0 for trial in trials) == 100.0


@pytest.mark.parametrize("at_s", [7.0, 9.0, 12.0, 25.0, 60.0, 100.0])
@pytest.mark.parametrize("slower", [2.0, 0.7])
def test_after_a_change_n_is_the_new_level_and_the_old_one_is_told_with_its_instant(
    at_s: float, slower: float
) -> None:
    capacity, _ = found(replace(QUIET, change=Change(at_s, slower)), budget_s=200.0)
    assert capacity.rate_rps == pytest.approx(50.0 / slower, rel=0.03)
    assert capacity.low_rps is not None
    assert capacity.high_rps is not None
    assert capacity.low_rps <= 50.0 / slower <= capacity.high_rps
    if at_s < 20 and slower < 1:
        return  # it was over before the first saturated second
    assert "the capacity changed during the search" in capacity.words[0]
    told = re.search(
        r"search: ([\d.]+)/s until ([\d.]+)(?: to (\d+))? s of load", capacity.words[0]
    )
    assert told is not None
    assert float(told[1]) == pytest.approx(50.0, rel=0.15)
    assert float(told[2]) <= at_s + 8.0
    assert float(told[3] or told[2]) >= at_s - 8.0


def test_a_change_that_comes_and_goes_is_told_twice() -> None:
    capacity, _ = found(replace(QUIET, change=Change(60.0, 1.4, 150.0)), budget_s=280.0)
    assert capacity.rate_rps == pytest.approx(50.0, rel=0.03)
    assert capacity.words[0].count("s of load") == 2


def test_a_change_of_which_too_little_is_seen_gives_no_number() -> None:
    capacity, _ = found(replace(QUIET, change=Change(10.0, 2.0)), budget_s=16.0)
    assert capacity.rate_rps is None or capacity.high_rps >= 50.0


@pytest.mark.parametrize("method", ["meter", "bisect"])
def test_a_target_that_answers_errors_only_gives_words_and_no_number(method: str) -> None:
    capacity, trials = found(replace(QUIET, error_share=1.0), method=method)
    assert capacity.rate_rps is None
    assert capacity.words == ("the service answers errors only", "6 x 500 Internal Server Error")
    assert len(trials) == 1


def test_errors_at_every_rate_give_no_number() -> None:
    capacity, _ = found(replace(QUIET, error_share=0.03))
    assert (capacity.rate_rps, capacity.causes) == (None, (Cause.ERRORS,))
    assert "errors that do not depend on the load" in capacity.words[0]


def test_errors_that_the_user_allows_do_not_count() -> None:
    capacity, _ = found(replace(QUIET, error_share=0.03), wanted=goal(("errors<5%",)))
    assert capacity.rate_rps == pytest.approx(50.0, rel=0.03)


def test_a_latency_objective_limits_the_rate_and_says_so() -> None:
    service = Service(workers=2, capacity_rps=50.0, variation=0.9, is_poisson=True)
    capacity, trials = found(service, wanted=goal(("p99<250ms",)), budget_s=285.0)
    assert capacity.rate_rps is not None
    assert capacity.rate_rps < 48
    assert any("objective is the limit" in word for word in capacity.words)
    held = [trial for trial in trials if trial.verdict.state is TrialState.SUSTAINED]
    assert all(trial.stats.total.p99_s * 1000 < 250 for trial in held)


def test_an_objective_that_no_rate_meets_gives_no_number() -> None:
    capacity, _ = found(QUIET, wanted=goal(("p99<1ms",)))
    assert capacity.rate_rps is None
    assert any("wanted p99<1ms" in word for word in capacity.words)


def test_capacity_that_depends_on_the_backlog_is_named_with_both_figures() -> None:
    service = Service(workers=4, capacity_rps=100.0, crowding=Crowding(-0.2, full_at=64))
    capacity, _ = found(service, budget_s=285.0)
    assert any("capacity depends on the backlog" in word for word in capacity.words)
    assert capacity.low_rps is not None
    assert capacity.high_rps is not None
    assert capacity.low_rps <= service.crowded_rps
    assert capacity.high_rps >= service.long_run_rps


class Starved:
    """A simulator whose generator is late from the n-th trial on."""

    def __init__(self, simulator: Simulator, sound: int) -> None:
        self._simulator = simulator
        self._sound = sound

    def measure(self, ask: TrialRequest) -> Trial:
        trial = self._simulator.measure(ask)
        self._sound -= 1
        if self._sound >= 0:
            return trial
        late = Verdict(TrialState.INVALID, ("sends were 80 ms late",), Cause.GENERATOR)
        return replace(trial, verdict=late)


@pytest.mark.parametrize("method", ["meter", "bisect", "closed-loop-peak", "step-concurrency"])
@pytest.mark.parametrize("sound", [0, 3])
def test_a_starved_generator_never_gives_a_number(method: str, sound: int) -> None:
    simulator = Starved(Simulator(QUIET, 1), sound)
    settings = SearchSettings(budget_s=150.0)
    capacity, trials = search(STRATEGIES[method](settings), simulator.measure)
    if method == "closed-loop-peak" and sound:
        return  # three sound trials are all it needs
    assert capacity.rate_rps is None
    assert capacity.words[:2] == (
        "the load generator was the limit, not the service",
        "sends were 80 ms late",
    )
    assert len(trials) == sound + 2


def test_one_disturbed_trial_is_measured_again() -> None:
    simulator = Simulator(QUIET, 1)
    asked = []

    def measure(ask: TrialRequest) -> Trial:
        asked.append(ask)
        trial = simulator.measure(ask)
        if len(asked) != 5:
            return trial
        return replace(trial, verdict=Verdict(TrialState.INVALID, ("late",), Cause.GENERATOR))

    capacity, _ = search(STRATEGIES["meter"](SearchSettings(budget_s=150.0)), measure)
    repeated, first = (replace(one, time_left=None) for one in (asked[5], asked[4]))
    assert repeated == first
    assert capacity.rate_rps == pytest.approx(50.0, rel=0.03)


def test_a_method_can_be_played_again_from_the_start() -> None:
    make = strategy("meter", SearchSettings(budget_s=60.0))
    first, second = (search(make(), Simulator(QUIET, 1).measure)[0] for _ in range(2))
    assert first == second


def test_a_curve_is_measured_when_it_is_wanted() -> None:
    settings = SearchSettings(budget_s=60.0, curve_s=6.0)
    capacity, trials = search(STRATEGIES["meter"](settings), Simulator(QUIET, 1).measure)
    assert capacity.rate_rps is not None
    points = [trial for trial in trials if trial.purpose.startswith("curve")]
    shares = [round((trial.rate_rps or 0) / capacity.rate_rps, 2) for trial in points]
    assert shares == [0.2, 0.4, 0.6, 0.8, 0.9, 0.97, 1.05, 1.1]
    assert points[0].verdict.state is TrialState.SUSTAINED


def with_objective(service: Service, word: str, seed: int) -> tuple[Capacity, tuple[Trial, ...]]:
    wanted = goal((word,))
    settings = SearchSettings(budget_s=240.0, objectives=wanted.objectives)
    return search(STRATEGIES["meter"](settings), Simulator(service, seed, wanted).measure)


@pytest.mark.parametrize("seed", [0, 1, 3])
def test_a_rate_that_narrowly_met_the_objectives_is_in_the_interval(seed: int) -> None:
    # 99 % of the responses come within a second up to 4.6/s.
    capacity, trials = with_objective(Service(workers=2, capacity_rps=5.0), "p99<1s", seed)
    held = [trial.rate_rps or 0 for trial in trials if trial.verdict.state is TrialState.SUSTAINED]
    assert capacity.low_rps is not None
    assert capacity.low_rps <= max(held) < 4.8
    assert capacity.rate_rps is None
    said = f"no rate above {max(held):.4g}/s was seen to meet the objectives"
    assert said in capacity.words


@pytest.mark.parametrize("word", ["p99<2s", "mean<1s", "max<5s"])
def test_objectives_that_are_met_with_room_change_no_interval(word: str) -> None:
    service = Service(workers=4, capacity_rps=100.0)
    capacity, _ = with_objective(service, word, 1)
    free, _ = search(STRATEGIES["meter"](SearchSettings()), Simulator(service, 1).measure)
    assert capacity.rate_rps is not None
    assert (capacity.low_rps, capacity.high_rps) == (free.low_rps, free.high_rps)


class OtherOnTheCurve:
    """A simulator whose service is another one from some point of the curve to another."""

    def __init__(self, other: Service, first: float, last: float = 2.0) -> None:
        self._usual, self._other = Simulator(QUIET, 1), Simulator(other, 1)
        self._first, self._last = first, last

    def measure(self, request: TrialRequest) -> Trial:
        share = re.match(r"curve: (\d+) %", request.purpose)
        is_other = share is not None and self._first <= int(share[1]) / 100 <= self._last
        return (self._other if is_other else self._usual).measure(request)


def with_a_curve(service: OtherOnTheCurve) -> Capacity:
    settings = SearchSettings(budget_s=60.0, curve_s=6.0)
    return search(STRATEGIES["meter"](settings), service.measure)[0]


SLOWER = replace(QUIET, capacity_rps=QUIET.capacity_rps / 1.5)
DEAD = replace(QUIET, outage=Outage(0.0))


@pytest.mark.parametrize(
    ("other", "first", "sentence"),
    [
        (SLOWER, 0.2, r"N was [\d.]+/s, and [\d.]+/s was not sustained after that: backlog grew"),
        (SLOWER, 0.9, r"N was [\d.]+/s, and [\d.]+/s was not sustained after that: backlog grew"),
        (DEAD, 0.2, r"N was [\d.]+/s, and [\d.]+/s was not sustained after that: .* refused"),
        (DEAD, 0.97, r"N was [\d.]+/s, and [\d.]+/s was not sustained after that: .* refused"),
    ],
)
def test_a_service_that_is_slower_or_dead_on_the_curve_has_no_n(
    other: Service, first: float, sentence: str
) -> None:
    capacity = with_a_curve(OtherOnTheCurve(other, first))
    assert (capacity.rate_rps, capacity.low_rps, capacity.high_rps) == (None, None, None)
    assert set(capacity.causes) == {Cause.DRIFT, Cause.INCONSISTENT}
    assert re.match(sentence, capacity.words[0])
    assert not any(word.startswith("known to within") for word in capacity.words)


@pytest.mark.parametrize("other", [SLOWER, DEAD])
def test_a_service_that_recovers_on_the_curve_keeps_its_n(other: Service) -> None:
    capacity = with_a_curve(OtherOnTheCurve(other, 0.8, 0.9))
    assert capacity.rate_rps == pytest.approx(QUIET.capacity_rps, rel=0.03)


def test_no_more_workers_than_the_generator_has_connections() -> None:
    settings = SearchSettings(budget_s=60.0, max_connections=10)
    wide = Service(workers=64, capacity_rps=100.0)
    _, trials = search(STRATEGIES["meter"](settings), Simulator(wide, 1).measure)
    ramps = [trial.purpose for trial in trials if trial.purpose.startswith("ramp")]
    assert ramps[-1] == "ramp: 10 at a time"


class Gone:
    """A simulator whose service answers errors only in some of the trials."""

    def __init__(self, trials: range) -> None:
        self._up, self._down = Simulator(QUIET, 1), Simulator(replace(QUIET, error_share=1.0), 1)
        self._trials = trials
        self.asked: list[TrialRequest] = []

    def measure(self, ask: TrialRequest) -> Trial:
        self.asked.append(ask)
        is_down = len(self.asked) in self._trials
        return (self._down if is_down else self._up).measure(ask)


def test_a_service_that_is_restarted_is_waited_for_and_the_words_say_so() -> None:
    service = Gone(range(6, 7))
    capacity, _ = search(STRATEGIES["meter"](SearchSettings(budget_s=150.0)), service.measure)
    assert capacity.rate_rps == pytest.approx(50.0, rel=0.03)
    assert "the service was gone for a while" in capacity.words[-1]
    assert service.asked[6].load == service.asked[5].load
    assert service.asked[6].pause_s > 0


def test_a_service_that_stays_away_gives_words_and_no_number() -> None:
    service = Gone(range(6, 100))
    capacity, trials = search(STRATEGIES["meter"](SearchSettings(budget_s=150.0)), service.measure)
    assert capacity.rate_rps is None
    assert capacity.words[0] == "the service stopped answering in mid-search"
    assert len(trials) == 7


def ticking(ok: list[int], failed: list[int]) -> Trial:
    """Give a trial of one simulated load, with other counts per half second."""
    trial = Simulator(QUIET, 1).measure(TrialRequest(OpenLoad(40.0, 5.0), "any"))
    counts = replace(trial.timeline, ok=np.array(ok), failed=np.array(failed))
    return replace(trial, timeline=counts)


def test_a_stretch_of_nothing_but_errors_is_an_outage() -> None:
    assert outage_s(ticking([20, 20, 3, 0, 0, 9, 20], [0, 0, 8, 20, 20, 5, 0])) == 1.0


@pytest.mark.parametrize(
    ("ok", "failed"),
    [
        ([20, 20, 20, 0, 20, 20], [0, 0, 0, 0, 0, 0]),  # a stall, in which nothing fails
        ([20, 8, 9, 7, 8, 20], [0, 12, 11, 13, 12, 0]),  # a full queue answers some
        ([1, 0, 0, 1, 0, 0, 0, 1], [9, 10, 9, 9, 10, 10, 10, 9]),  # nearly all fail, all the time
        ([20, 20, 20, 20, 20, 20], [1, 0, 2, 0, 0, 1]),
    ],
)
def test_errors_beside_answers_are_no_outage(ok: list[int], failed: list[int]) -> None:
    assert outage_s(ticking(ok, failed)) == 0.0


@pytest.mark.parametrize("budget_s", [60.0, 300.0])
@pytest.mark.parametrize("undecided", [1, 2, 3])
def test_an_undecided_trial_below_n_contradicts_nothing(undecided: int, budget_s: float) -> None:
    simulator = Simulator(Service(workers=4, capacity_rps=100.0), seed=3)
    left = undecided

    def measure(ask: TrialRequest) -> Trial:
        nonlocal left
        trial = simulator.measure(ask)
        if not ask.purpose.startswith("must hold") or not left:
            return trial
        left -= 1
        return replace(trial, verdict=Verdict(TrialState.UNDECIDED, ("stopped early",)))

    capacity, _ = search(STRATEGIES["meter"](SearchSettings(budget_s=budget_s)), measure)
    assert capacity.rate_rps == pytest.approx(100.0, rel=0.03)
    assert capacity.kind is CapacityKind.SATURATION
    assert not any("one trial below N failed" in word for word in capacity.words)
    assert not any("was not sustained" in word for word in capacity.words)


@pytest.mark.parametrize("index", [40000, 40012, 40032])
def test_a_bucket_that_emptied_is_no_change_of_the_service(index: int) -> None:
    service = draw("slowing-limiter", index)
    capacity, _ = search(
        STRATEGIES["meter"](SearchSettings(budget_s=240.0)), Simulator(service, index).measure
    )
    assert service.limiter is not None
    assert capacity.rate_rps == pytest.approx(service.limiter.rate_rps, rel=0.02)
    assert any("until a limiter's bucket is empty" in word for word in capacity.words)
    assert not any("changed" in word for word in capacity.words)


@pytest.mark.parametrize(("quiet_s", "seed"), [(35.0, 0), (35.0, 2), (55.0, 0), (55.0, 3)])
def test_a_service_that_changes_again_and_again_has_no_n(quiet_s: float, seed: int) -> None:
    """Another program takes a third of the capacity for half of the time."""
    others = Bursts(quiet_s, quiet_s - 5, quiet_s, slower=0.6)
    capacity, _ = found(replace(QUIET, bursts=others), budget_s=285.0, seed=seed)
    assert capacity.rate_rps is None
    assert capacity.causes == (Cause.DRIFT,)
    assert any("times, and may change again" in word for word in capacity.words)
    assert capacity.low_rps is not None
    assert capacity.high_rps is not None
    assert capacity.low_rps < 50.0 / 1.6 * 1.05
    assert capacity.high_rps > 50.0 * 0.98


@pytest.mark.parametrize("at_s", [7.0, 9.0, 12.0])
def test_a_service_that_became_slower_at_first_has_no_bucket(at_s: float) -> None:
    capacity, _ = found(replace(QUIET, change=Change(at_s, 2.0)), budget_s=200.0)
    assert not any("bucket" in word for word in capacity.words)


@pytest.mark.parametrize(
    ("family", "index", "budget_s", "method"),
    [
        ("poisson", 1018, 240.0, "meter"),
        ("split", 1025, 240.0, "meter"),
        ("split", 90001, 295.0, "meter"),
        ("split", 90047, 295.0, "meter"),
        ("poisson", 1018, 60.0, "bisect"),
    ],
)
def test_no_upper_bound_lies_below_the_truth_where_noise_failed_every_trial(
    family: str, index: int, budget_s: float, method: str
) -> None:
    service = draw(family, index)
    settings = SearchSettings(
        budget_s=budget_s, arrival_dispersion=1.0 if method == "bisect" else 0.0
    )
    capacity, _ = search(STRATEGIES[method](settings), Simulator(service, index).measure)
    assert capacity.high_rps is not None
    assert (capacity.low_rps or 0.0) <= service.long_run_rps <= capacity.high_rps


@pytest.mark.parametrize(
    "index",
    [
        40006,  # back to the level before, seen for 25 s
        42005,  # faster between the shallow band and the deep one
        42047,  # the same, with little time left
    ],
)
def test_the_last_change_of_a_service_is_not_missed_while_there_is_time(index: int) -> None:
    service = draw("step-back", index)
    simulator = Simulator(service, index)
    capacity, _ = search(STRATEGIES["meter"](SearchSettings(budget_s=240.0)), simulator.measure)
    if capacity.rate_rps is None:  # too little was seen of it
        assert (capacity.low_rps or 0.0) <= service.capacity_rps <= (capacity.high_rps or math.inf)
        assert any("the capacity changed" in word for word in capacity.words)
    else:
        assert capacity.rate_rps == pytest.approx(service.capacity_rps, rel=0.03)


def test_a_rate_sustained_above_the_level_after_a_change_leaves_a_lower_bound() -> None:
    capacity, trials = found(draw("step-back", 1_500_093), 240.0, seed=1_500_093)
    assert (capacity.rate_rps, capacity.high_rps, capacity.causes) == (None, None, ())
    assert "after the change 31.13/s was sustained" in capacity.words[0]
    held = [one.rate_rps for one in trials if one.verdict.state is TrialState.SUSTAINED]
    assert any(rate == pytest.approx(31.13, abs=0.01) for rate in held)


def test_of_a_change_of_which_little_was_seen_the_interval_is_wide() -> None:
    service = draw("step-back", 40032)
    simulator = Simulator(service, 40032)
    capacity, _ = search(STRATEGIES["meter"](SearchSettings(budget_s=240.0)), simulator.measure)
    assert any("capacity changed" in word for word in capacity.words)
    assert (capacity.low_rps or 0.0) <= service.capacity_rps <= (capacity.high_rps or math.inf)
    assert capacity.rate_rps is None
    assert "too little was seen after it: measure again" in capacity.words


@pytest.mark.parametrize("index", [1_200_106, 1_200_124])
def test_a_service_that_was_slower_for_a_while_does_not_collapse(index: int) -> None:
    service = draw("step-back", index)
    capacity, trials = found(service, 240.0, seed=index)
    assert "as slow again with as many inside?" in {trial.purpose for trial in trials}
    assert capacity.kind is CapacityKind.SATURATION
    assert capacity.low_rps is not None
    assert capacity.high_rps is not None
    assert capacity.low_rps <= service.capacity_rps <= capacity.high_rps


def test_completions_in_groups_leave_the_metered_rate_in_the_interval() -> None:
    # All 27 workers look for requests every 1.06 s, which beats with the seconds of the model.
    simulator = Simulator(draw("poller", 65), 65)
    settings = SearchSettings(budget_s=240.0)
    capacity, trials = search(STRATEGIES["meter"](settings), simulator.measure)
    metered = [one.stats for one in trials if one.purpose.startswith("meter with")]
    completed_rps = sum(one.ok for one in metered) / sum(one.load_s for one in metered)
    assert capacity.low_rps is not None
    assert capacity.high_rps is not None
    assert capacity.low_rps <= completed_rps <= capacity.high_rps
