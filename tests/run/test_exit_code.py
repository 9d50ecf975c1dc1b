"""Exit codes follow from what limits N, or from why there is none: docs/methodology.md."""

from dataclasses import replace

import pytest
from made_workloads import workload
from realistic import keystone
from simulator.service import Change, Limiter, Service
from simulator.simulator import Simulator

from loadstone.analysis.goal import goal
from loadstone.analysis.model import NOT_JUDGED, Cause, Trial, TrialState, Verdict
from loadstone.analysis.sla import Check
from loadstone.errors import (
    FELL_SHORT,
    EnvironmentUnusable,
    InvalidInput,
    LoadstoneError,
    MeasurementInvalid,
)
from loadstone.report.sections.run import report_of
from loadstone.result.model import Measurement
from loadstone.result.outcome import exit_code, gate_sentence
from loadstone.search.floor import FloorOutcome, judge_floor
from loadstone.search.model import Capacity, CapacityKind
from loadstone.search.run import search
from loadstone.search.settings import SearchSettings
from loadstone.search.strategies import STRATEGIES

RESULT, SAMPLES = keystone()
QUIET = Service(workers=4, capacity_rps=50.0)
SLOW = Service(workers=2, capacity_rps=11.0)  # about 180 ms each


def searched(
    service: Service,
    *objectives: str,
    budget_s: float = 120.0,
    ceiling_rps: float = 5000.0,
    method: str = "meter",
    seed: int = 1,
) -> Measurement:
    wanted = goal(objectives)
    settings = SearchSettings(
        budget_s=budget_s,
        ceiling_rps=ceiling_rps,
        error_share=wanted.error_share,
        objectives=wanted.objectives,
    )
    simulator = Simulator(service, seed, wanted)
    capacity, trials = search(STRATEGIES[method](settings), simulator.measure)
    return replace(RESULT.measurements[0], capacity=capacity, trials=trials)


def code(*measurements: Measurement) -> int:
    return exit_code(replace(RESULT, measurements=measurements))


@pytest.mark.parametrize(
    ("service", "objectives", "ceiling_rps", "kind"),
    [
        (QUIET, (), 5000.0, CapacityKind.SATURATION),
        (replace(QUIET, limiter=Limiter(20.0)), (), 5000.0, CapacityKind.REFUSAL),
        (QUIET, ("p99<200ms",), 5000.0, CapacityKind.OBJECTIVE),
        (QUIET, (), 20.0, CapacityKind.CEILING),
        (replace(QUIET, change=Change(60.0, 1.5)), (), 5000.0, CapacityKind.SATURATION),
    ],
    ids=["saturation", "refusal", "objective", "ceiling", "changed"],
)
def test_whatever_limits_it_a_found_n_is_success(
    service: Service, objectives: tuple[str, ...], ceiling_rps: float, kind: CapacityKind
) -> None:
    finding = searched(service, *objectives, budget_s=240.0, ceiling_rps=ceiling_rps)
    assert finding.capacity is not None
    assert finding.capacity.rate_rps is not None
    assert finding.capacity.kind is kind
    assert code(finding) == 0


@pytest.mark.parametrize("method", ["meter", "bisect"])
@pytest.mark.parametrize("budget_s", [20.0, 60.0])
@pytest.mark.parametrize("objective", ["p99<60ms", "p99<1ms", "p50<30ms", "mean<50ms"])
def test_an_objective_that_no_rate_meets_is_a_shortfall(
    method: str, budget_s: float, objective: str
) -> None:
    finding = searched(SLOW, objective, budget_s=budget_s, method=method)
    assert finding.capacity is not None
    assert finding.capacity.rate_rps is None
    assert code(finding) == 1


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (50.0, 60.0, 0),
        (51.0, None, 0),  # limited by the load that is allowed
        (49.9, 60.0, 4),
        (None, 60.0, 4),
        (40.0, None, 4),
        (40.0, 49.9, 1),
        (None, 49.9, 1),
    ],
)
def test_a_rate_that_n_must_reach_is_held_against_its_interval(
    low: float | None, high: float | None, expected: int
) -> None:
    capacity = Capacity(55.0, low, high, 0.95)
    finding = replace(RESULT.measurements[0], capacity=capacity, least_rps=50.0)
    assert code(finding) == expected
    assert code(replace(finding, least_rps=None)) == 0


def test_without_n_the_reason_gives_the_code_and_not_the_rate_that_was_asked_for() -> None:
    finding = searched(SLOW, "p99<1ms")
    assert code(replace(finding, least_rps=50.0)) == code(finding) == 1


@pytest.mark.parametrize(("low", "high"), [(None, 9.75), (12.0, None), (None, None)])
def test_a_bound_without_n_decides_no_gate(low: float | None, high: float | None) -> None:
    found = Capacity(None, low, high, 0.0)
    finding = replace(RESULT.measurements[0], capacity=found, least_rps=10.0)
    report = report_of(replace(RESULT, measurements=(finding,)))
    assert report.exit_code == code(finding) == 4
    assert judge_floor(found, 10.0) is FloorOutcome.UNDECIDED


def test_without_a_trial_that_meets_the_objective_there_is_no_n() -> None:
    # Alone a request takes 180 ms; how long they take at a constant rate, 20 s do not show.
    finding = searched(SLOW, "p99<230ms", budget_s=20.0)
    assert finding.capacity is not None
    assert finding.capacity.rate_rps is None
    assert "no rate was seen to meet the objectives" in finding.capacity.words[0]
    assert code(finding) == 4


def test_a_missed_objective_is_a_shortfall_also_beside_an_invalid_trial() -> None:
    finding = searched(SLOW, "p99<60ms", budget_s=60.0)
    late = Verdict(TrialState.INVALID, ("sends were late",), Cause.GENERATOR)
    first, *rest = finding.trials
    assert code(replace(finding, trials=(replace(first, verdict=late), *rest))) == 1


def test_a_target_that_answers_errors_only_is_a_shortfall() -> None:
    assert code(searched(replace(QUIET, error_share=1.0))) == 1


def without_number(*causes: Cause) -> Capacity:
    return Capacity(None, None, None, 0.0, ("why",), causes=causes)


@pytest.mark.parametrize("cause", [Cause.GENERATOR, Cause.DRIFT])
def test_no_n_because_of_the_generator_or_a_change_is_an_invalid_measurement(cause: Cause) -> None:
    finding = searched(QUIET, budget_s=60.0)
    assert code(replace(finding, capacity=without_number(cause))) == 4


@pytest.mark.parametrize(("rate_rps", "budget_s"), [(3.0, 60.0), (30.0, 20.0)])
def test_a_limiter_is_no_shortfall_where_the_budget_is_too_small(
    rate_rps: float, budget_s: float
) -> None:
    service = Service(capacity_rps=50.0, limiter=Limiter(rate_rps))
    found = [searched(service, budget_s=budget_s, seed=seed) for seed in range(6)]
    assert {code(one) for one in found} <= {0, 4}


def test_a_rate_that_was_sustained_is_no_shortfall() -> None:
    capacity = Capacity(None, 23.4, 32.1, 0.0, ("between",), causes=(Cause.ERRORS,))
    finding = searched(Service(capacity_rps=50.0, limiter=Limiter(30.0)), budget_s=60.0)
    assert code(replace(finding, capacity=capacity)) == 4


def test_errors_at_no_more_than_a_rate_are_no_shortfall() -> None:
    capacity = Capacity(None, None, 3.1, 0.0, ("no more",), causes=(Cause.ERRORS,))
    finding = searched(Service(capacity_rps=50.0, limiter=Limiter(3.0)), budget_s=60.0)
    assert code(replace(finding, capacity=capacity)) == 4


def test_a_service_that_went_away_is_an_invalid_measurement() -> None:
    finding = searched(QUIET, budget_s=60.0)
    last = finding.trials[-1]
    gone = replace(last, stats=replace(last.stats, total=replace(last.stats.total, ok=0)))
    trials = (*finding.trials[:-1], gone)
    lost = replace(finding, capacity=without_number(Cause.ERRORS), trials=trials)
    assert code(lost) == 4


def test_an_objective_that_was_missed_before_the_service_went_away_is_not_decided() -> None:
    missed = searched(SLOW, "p99<60ms", budget_s=60.0)
    assert code(missed) == 1
    went_away = without_number(Cause.ERRORS, Cause.DRIFT)
    assert code(replace(missed, capacity=went_away)) == 4


def test_a_budget_that_ends_before_anything_was_seen_says_nothing() -> None:
    finding = searched(Service(workers=1, capacity_rps=0.2), budget_s=10.0)
    assert finding.capacity is not None
    assert finding.capacity.rate_rps is None
    assert code(finding) == 4


def test_a_search_that_did_not_end_says_nothing() -> None:
    assert code(replace(searched(QUIET, budget_s=60.0), capacity=None)) == 4


def test_of_several_searches_the_highest_code_counts() -> None:
    found = searched(QUIET, budget_s=60.0)
    short = searched(SLOW, "p99<1ms", budget_s=60.0)
    assert code(found, short) == 1
    assert code(short, replace(found, capacity=without_number(Cause.GENERATOR))) == 4


def test_resources_that_are_left_in_the_cloud_are_a_shortfall() -> None:
    found = replace(RESULT, measurements=(searched(QUIET, budget_s=60.0),))
    assert exit_code(found) == 0
    assert exit_code(found, is_clean=False) == 1


def test_a_task_that_did_not_end_is_not_decided() -> None:
    held = workload(SAMPLES[0, 1])
    task = replace(RESULT, kind="task", status="interrupted")
    assert exit_code(replace(RESULT, kind="task", measurements=(held,))) == 0
    # Ctrl-C in the second workload, and a kill before the first.
    cut = replace(held, status="interrupted")
    assert exit_code(replace(task, measurements=(held, cut))) == 4
    assert exit_code(replace(task, status="running", measurements=())) == 4


def test_what_ended_a_measurement_has_its_own_code() -> None:
    failed = replace(RESULT.measurements[0], status="failed", failure="no time was left")
    run = replace(RESULT, status="failed")
    assert exit_code(replace(run, measurements=(failed,))) == 3
    assert exit_code(replace(run, measurements=(replace(failed, failure_code=4),))) == 4


def hit(trial: Trial) -> Measurement:
    """Return the measurement of `loadstone hit` with this trial."""
    return replace(RESULT.measurements[0], policy="fixed", capacity=None, trials=(trial,))


def test_a_load_that_misses_its_objective_falls_short() -> None:
    held = replace(RESULT.measurements[0].trials[0], rate_rps=None, verdict=NOT_JUDGED)
    missed = Check("p99", False, "p99 was 516 ms, wanted p99<200ms")
    assert code(hit(held)) == 0
    assert code(hit(replace(held, checks=(missed,)))) == 1


def test_a_rate_that_was_too_short_to_judge_is_not_decided() -> None:
    verdict = Verdict(TrialState.UNDECIDED, ("2 s are too short to judge",))
    trial = replace(RESULT.measurements[0].trials[0], rate_rps=40.0, verdict=verdict)
    assert code(hit(trial)) == 4


def test_the_gate_names_figures_that_are_on_their_side_of_it() -> None:
    near = replace(
        RESULT.measurements[0], capacity=Capacity(205.0, 199.6, 210.0, 0.95), least_rps=200.0
    )
    assert gate_sentence(near) == (
        "gate not decided: N 205 (199.6 to 210), 200 wanted (--fail-below)"
    )
    large = replace(near, capacity=Capacity(12300.0, 11996.0, 12600.0, 0.95), least_rps=12000.0)
    assert "N 12,300 (11,996 to 12,600), 12,000 wanted" in gate_sentence(large)


@pytest.mark.parametrize(
    ("found", "wanted_rps", "text"),
    [
        (Capacity(None, None, 199.96, 0.95), 200.0, "missed: N below 199.96, 200 wanted"),
        (Capacity(None, None, 199.96, 0.95), 199.97, "missed: N below 199.96, 199.97 wanted"),
        (
            *(Capacity(1490.0, 1480.0, 1499.7, 0.95), 1500.0),
            "missed: N 1,490 (1,480 to 1,499.7), 1,500 wanted",
        ),
        (
            *(Capacity(62.3, 61.996, 62.6, 0.95), 62.0),
            "not decided: N 62.3 (61.996 to 62.6), 62 wanted",
        ),
        (Capacity(None, 200.0, None, 0.95), 200.0, "held: N at least 200, 200 wanted"),
        (
            *(Capacity(None, None, 9.75, 0.0), 10.0),
            "not decided: N below 9.75, not confirmed, 10 wanted",
        ),
        (
            *(Capacity(None, 12.0, None, 0.0), 10.0),
            "not decided: N at least 12, not confirmed, 10 wanted",
        ),
    ],
)
def test_the_gate_has_the_digits_that_show_its_side(
    found: Capacity, wanted_rps: float, text: str
) -> None:
    near = replace(RESULT.measurements[0], capacity=found, least_rps=wanted_rps)
    assert gate_sentence(near) == f"gate {text} (--fail-below)"


@pytest.mark.parametrize("ended", [InvalidInput, EnvironmentUnusable, MeasurementInvalid])
def test_a_report_has_the_code_of_whatever_ended_a_measurement(ended: type[LoadstoneError]) -> None:
    one = RESULT.measurements[0]
    failed = replace(one, status="failed", failure="why", failure_code=ended.exit_code)
    report = report_of(replace(RESULT, status="failed", measurements=(failed,)))
    assert report.exit_code == report.sections[0].certainty.exit_code == ended.exit_code
    assert report.sections[0].certainty.line.endswith(f"(exit {ended.exit_code}): why")


@pytest.mark.parametrize(
    ("state", "code", "text"),
    [
        (TrialState.SUSTAINED, 0, "valid"),
        (TrialState.DEGRADED, FELL_SHORT, "degraded"),
        (TrialState.UNDECIDED, MeasurementInvalid.exit_code, "undecided"),
    ],
)
def test_a_fixed_load_is_called_valid_only_with_exit_code_0(
    state: TrialState, code: int, text: str
) -> None:
    trial = replace(RESULT.measurements[0].trials[2], verdict=Verdict(state, ("why",)))
    fixed = replace(RESULT.measurements[0], policy="fixed", capacity=None, trials=(trial,))
    report = report_of(replace(RESULT, measurements=(fixed,)))
    [section] = report.sections
    assert (report.exit_code, section.certainty.exit_code) == (code, code)
    assert section.certainty.text == text
    assert section.certainty.tone == ("sustained" if not code else text)


def test_a_task_whose_generator_gave_up_is_not_decided() -> None:
    held = workload(SAMPLES[0, 1], (Check("failure_rate", True, ""),))
    health = replace(RESULT.measurements[0].trials[0].health, limits=("the load ended early",))
    for is_broken_off, expected in ((False, 0), (True, 4)):
        trial = replace(held.trials[0], health=replace(health, is_broken_off=is_broken_off))
        run = replace(RESULT, kind="task", measurements=(replace(held, trials=(trial,)),))
        assert exit_code(run) == expected


def test_a_run_that_is_still_measured_is_not_judged() -> None:
    under_way = replace(RESULT.measurements[0], status="running", capacity=None)
    report = report_of(replace(RESULT, status="running", measurements=(under_way,)), is_clean=False)
    assert report.is_clean
    assert not report.sections[0].certainty.exit_code
