"""The published methods do what their sources describe, with the strengths and flaws they have."""

import pytest
from simulator.service import Service
from simulator.simulator import Simulator

from loadstone.analysis.model import Trial
from loadstone.errors import InvalidInput
from loadstone.plan.load import OpenLoad
from loadstone.search.model import Capacity, CapacityKind, TrialRequest
from loadstone.search.run import search
from loadstone.search.settings import SearchSettings
from loadstone.search.strategies import STRATEGIES, strategy

# The paper's own machine: its run at 38/s completed 4,560 requests in 120.6 s.
PAPER = Service(workers=2, capacity_rps=37.81, variation=0.05)


def played(method: str, service: Service, **more: float) -> tuple[Capacity, tuple[Trial, ...]]:
    settings = SearchSettings(**{"ceiling_rps": 400.0, "budget_s": 6000.0} | more)
    return search(STRATEGIES[method](settings), Simulator(service, 1).measure)


@pytest.mark.long
def test_isp_ras_takes_two_minutes_a_trial_and_confirms_as_the_authors_script() -> None:
    capacity, trials = played("isp-ras-2015", Service(capacity_rps=50.4))
    rates = [trial.rate_rps for trial in trials]
    assert all(trial.planned_s == 120.0 for trial in trials)
    assert rates[0] == 100.0
    n = capacity.rate_rps
    assert n is not None
    assert rates[-5:] == [n - 1, n + 1, n + 3, n + 5, 2 * n]


def test_isp_ras_confirms_at_no_rate_above_the_ceiling() -> None:
    capacity, trials = played("isp-ras-2015", Service(capacity_rps=50.4), ceiling_rps=53.0)
    assert capacity.rate_rps is not None
    assert max(trial.rate_rps or 0.0 for trial in trials) <= 53.0


@pytest.mark.long
def test_isp_ras_by_its_text_takes_six_minutes_a_trial_and_confirms_on_both_sides() -> None:
    capacity, trials = played("isp-ras-2015-text", Service(capacity_rps=50.4))
    rates = [trial.rate_rps for trial in trials]
    assert all(trial.planned_s == 360.0 for trial in trials)
    assert capacity.rate_rps is not None
    assert rates[-2:] == [capacity.rate_rps - 1, capacity.rate_rps + 1]


def test_in_seconds_per_second_the_papers_own_run_above_n_passes() -> None:
    # Slope 0.0049 s per s at 38/s, which the paper prints as degraded.
    capacity, _ = played("isp-ras-2015", PAPER)
    assert capacity.rate_rps == 38.0
    assert any("slope" in word for word in capacity.words)


def test_isp_ras_calls_any_error_degraded() -> None:
    capacity, _ = played("isp-ras-2015", Service(capacity_rps=50.0, error_share=0.05))
    assert capacity.rate_rps is None
    assert "no more than 1/s" in capacity.words[0]


def test_closed_loop_peak_doubles_the_clients_until_responses_peak() -> None:
    capacity, trials = played("closed-loop-peak", Service(workers=4, capacity_rps=50.0))
    assert [trial.planned_s for trial in trials] == [20.0] * len(trials)
    assert capacity.rate_rps == pytest.approx(50.0, rel=0.05)
    assert (capacity.low_rps, capacity.high_rps) == (None, None)


def test_stepped_concurrency_stops_where_success_ends_and_pauses_between() -> None:
    asked: list[TrialRequest] = []
    simulator = Simulator(Service(workers=2, capacity_rps=50.0, queue_limit=35), 1)

    def measure(ask: TrialRequest) -> Trial:
        asked.append(ask)
        return simulator.measure(ask)

    capacity, _ = search(STRATEGIES["step-concurrency"](SearchSettings()), measure)
    loads = [(ask.load.workers, ask.load.iterations) for ask in asked]
    assert loads == [(10, 10), (20, 20), (30, 30), (40, 40)]
    assert [ask.pause_s for ask in asked] == [0.0, 60.0, 60.0, 60.0]
    assert "30 at once succeed; 40 at once failed" in capacity.words[0]


def test_mlrsearch_brackets_the_capacity() -> None:
    capacity, trials = played("mlrsearch", Service(workers=4, capacity_rps=50.0, variation=0.1))
    assert capacity.rate_rps == pytest.approx(50.0, rel=0.05)
    assert all(trial.rate_rps for trial in trials)


def test_mlrsearch_can_be_given_up_in_the_middle() -> None:
    going = STRATEGIES["mlrsearch"](SearchSettings(ceiling_rps=400.0))
    assert isinstance(next(going).load, OpenLoad)
    going.close()


def test_an_unknown_method_names_those_that_are_known() -> None:
    with pytest.raises(InvalidInput, match="known are meter, bisect, isp-ras-2015"):
        strategy("guess", SearchSettings())


def test_isp_ras_states_no_upper_bound_that_was_not_tried() -> None:
    capacity, trials = played("isp-ras-2015", Service(capacity_rps=200.0), ceiling_rps=20.0)
    assert max(trial.rate_rps or 0.0 for trial in trials) == 20.0
    assert (capacity.rate_rps, capacity.low_rps, capacity.high_rps) == (20.0, 20.0, None)
    assert capacity.kind is CapacityKind.CEILING
    assert capacity.words[0].startswith("at least 20/s: no higher rate")


@pytest.mark.parametrize("budget_s", [240.0, 600.0, 720.0])
def test_isp_ras_states_a_bound_also_without_time_to_confirm(budget_s: float) -> None:
    capacity, _ = played(
        "isp-ras-2015", Service(capacity_rps=200.0), ceiling_rps=20.0, budget_s=budget_s
    )
    assert capacity.high_rps is None or capacity.rate_rps is None
    assert capacity.words


def test_isp_ras_counts_its_confirming_trial_at_the_highest_rate() -> None:
    capacity, _ = played(
        "isp-ras-2015", Service(capacity_rps=19.3, variation=0.1), ceiling_rps=20.0
    )
    assert (capacity.rate_rps, capacity.high_rps) == (19.0, 20.0)


def test_isp_ras_says_that_nothing_was_tried_below_a_very_low_ceiling() -> None:
    capacity, trials = played("isp-ras-2015", Service(capacity_rps=200.0), ceiling_rps=0.5)
    assert not trials
    assert (capacity.low_rps, capacity.high_rps) == (None, None)
    assert capacity.words[0].startswith("no rate was tried: the method tries whole numbers")


def test_mlrsearch_refuses_a_ceiling_at_its_lowest_rate() -> None:
    with pytest.raises(InvalidInput, match="--max-rate 1 is too low for --method mlrsearch"):
        strategy("mlrsearch", SearchSettings(ceiling_rps=1.0))


def test_step_concurrency_says_that_it_needs_more_connections() -> None:
    capacity, trials = played("step-concurrency", Service(capacity_rps=50.0), max_connections=5)
    assert not trials
    assert capacity.words[0] == (
        "no trial was made: the method begins with 10 at once, and --max-connections allows 5"
    )


def test_closed_loop_peak_near_the_ceiling_is_a_lower_bound() -> None:
    # Two clients complete 67 a second, more than half of what may be sent; eight would 266.
    service = Service(workers=8, capacity_rps=266.0, variation=0.05)
    capacity, _ = played("closed-loop-peak", service, ceiling_rps=100.0)
    assert capacity.kind is CapacityKind.CEILING
    assert (capacity.low_rps, capacity.high_rps) == (capacity.rate_rps, None)


def test_closed_loop_peak_that_the_budget_ends_has_no_number() -> None:
    service = Service(workers=64, capacity_rps=6400.0, variation=0.05)
    capacity, _ = played("closed-loop-peak", service, ceiling_rps=9000.0, budget_s=45.0)
    assert (capacity.kind, capacity.rate_rps, capacity.low_rps) == (None, None, None)
    assert capacity.words[1] == "the budget ended the search"


def test_stepped_concurrency_that_the_budget_ends_keeps_what_held() -> None:
    capacity, trials = played("step-concurrency", Service(capacity_rps=50.0), budget_s=60.0)
    most = max(trial.stats.due for trial in trials)
    assert capacity.words[0] == f"{most} at once succeed; the budget ended"
    assert capacity.rate_rps is not None


def test_a_method_without_a_curve_refuses_one() -> None:
    with pytest.raises(InvalidInput, match="step-concurrency measures no --curve; use meter or"):
        strategy("step-concurrency", SearchSettings(curve_s=5.0))
