"""Figures of faults whose truth is known."""

from dataclasses import replace

import numpy as np
import pytest
from scripted import Scripted, made, measured, simulated

from loadstone.analysis.fault import Injection
from loadstone.analysis.fault_effect import effect, kinds, summarize
from loadstone.analysis.interval import of_values
from loadstone.analysis.iterations import Iterations
from loadstone.analysis.recovery import Recovery
from loadstone.engine.outcome import Outcome

RATE_RPS = 50.0
GAP_S = 1 / RATE_RPS
SEEDS = range(20)


def found(fault: Scripted, seed: int):
    injection = Injection(fault.kind, fault.at_s, fault.end_s)
    return effect(simulated(fault, seed, RATE_RPS), injection)


def near(value: float, truth: float, share: float, least: float = 0.0) -> bool:
    return abs(value - truth) <= max(share * truth, least) + 1e-9


@pytest.mark.parametrize("dark_s", [0.2, 1.0, 5.0])
def test_a_dark_service_is_down_for_as_long_as_it_is_dark(dark_s: float) -> None:
    effects = [found(Scripted("dark", 10.0, dark_s), seed) for seed in SEEDS]
    assert sum(near(one.downtime_s, dark_s, 0.05, GAP_S) for one in effects) >= 19
    assert sum(near(one.unavailable_s, dark_s, 0.05, GAP_S) for one in effects) >= 19
    assert sum(near(one.mttr_s, dark_s, 0.10, GAP_S) for one in effects) >= 19
    assert all(one.relative == 1 and one.absolute_s == 0 for one in effects)
    assert all(near(one.failed, dark_s * RATE_RPS, 0.05, 1) for one in effects)
    assert effects[0].errors[0].kind == "connection refused"


def test_a_slow_service_recovers_when_it_is_fast_again() -> None:
    effects = [found(Scripted("slow", 10.0, 4.0, 3.0), seed) for seed in SEEDS]
    assert sum(near(one.mttr_s, 4.0, 0.10) for one in effects) >= 19
    assert sum(near(one.relative, 3.0, 0.10) for one in effects) >= 19
    assert sum(near(one.absolute_s, 0.02, 0.10) for one in effects) >= 19
    assert all(one.downtime_s == 0 and one.failed == 0 for one in effects)


def test_a_service_that_refuses_a_share_is_down_by_the_plan_and_never_unavailable() -> None:
    effects = [found(Scripted("refuse", 10.0, 2.0, 0.3), seed) for seed in SEEDS]
    # The plan counts from the first to the last error: one of three or four requests.
    assert sum(near(one.downtime_s, 2.0, 0.05, 4 * GAP_S) for one in effects) >= 19
    assert all(one.unavailable_s == 0 for one in effects)
    assert sum(near(one.failed, 0.3 * 2.0 * RATE_RPS, 0.05, 1) for one in effects) >= 19
    assert effects[0].errors[0].kind == "503 Service Unavailable"


def test_without_a_fault_nothing_is_found() -> None:
    effects = [found(Scripted("none", 10.0, 0.0), seed) for seed in SEEDS]
    assert all(one.downtime_s == 0 and one.mttr_s == 0 for one in effects)
    assert all(one.degraded == () and one.relative == 1 for one in effects)


def test_time_after_the_load_does_not_lower_the_goodput() -> None:
    rows = simulated(Scripted("none", 10.0, 0.0), 1, RATE_RPS)
    last_s = float(rows.due_ns.max()) / 1e9
    for undone_s in (last_s - 1.0, last_s + 25.0):  # nodes restart after the load
        goodput_rps = effect(rows, Injection("rolling restart", 10.0, undone_s)).goodput_rps
        assert goodput_rps is not None
        assert near(goodput_rps, RATE_RPS, 0.05)


def test_what_waits_during_a_standstill_is_a_backlog_that_drains() -> None:
    due_s = np.arange(0, 20, 0.02)
    # Nothing ends from 10 s to 12 s; then what waits is served at 100/s.
    waiting = (due_s >= 10) & (due_s < 14)
    done_s = np.where(waiting, 12 + 0.01 * np.cumsum(waiting), due_s + 0.005)
    hung = effect(made(due_s, done_s), Injection("freeze", 10.0, 12.0))
    assert near(hung.backlog, 100, 0.02)
    assert near(hung.drained_s, 2.0, 0.05)
    assert near(hung.mttr_s, 4.0, 0.05)
    assert hung.failed == 0


def test_what_never_comes_back_has_no_recovery() -> None:
    due_s = np.arange(0, 20, 0.02)
    outcome = np.where(due_s >= 10, Outcome.REFUSED, Outcome.OK)
    gone = effect(made(due_s, due_s + 0.005, outcome), Injection("kill", 10.0))
    assert gone.mttr_s is None
    assert near(gone.downtime_s, 10.0, 0.01)
    assert gone.recovery is Recovery.NOT_RECOVERED


def test_failures_that_go_on_to_the_end_have_not_ended_with_one_success() -> None:
    due_s = np.arange(0, 20, 0.02)
    fails = (due_s >= 10) & (np.arange(len(due_s)) % 2 == 0)
    outcome = np.where(fails, Outcome.REFUSED, Outcome.OK)
    half = effect(made(due_s, due_s + 0.005, outcome), Injection("kill", 10.0))
    assert outcome[-1] == Outcome.OK
    assert half.mttr_s is None
    assert half.recovery is Recovery.NOT_RECOVERED


@pytest.mark.parametrize(("before", "share"), [(0.0, 0.03), (0.0, 0.1), (0.002, 0.1), (0.01, 0.2)])
def test_failures_that_keep_coming_back_have_ended_if_they_stay_away_for_longer(
    before: float, share: float
) -> None:
    due_s = np.arange(0, 40, 0.02)
    lasting, ended = 0, 0
    for seed in SEEDS:
        chance = np.random.default_rng(seed).random(len(due_s))
        for end_s in (40.0, 30.0):
            is_faulty = (due_s >= 20) & (due_s < end_s)
            fails = chance < np.where(is_faulty, share, before)
            outcome = np.where(fails, Outcome.HTTP_STATUS, Outcome.OK)
            one = effect(made(due_s, due_s + 0.005, outcome), Injection("kill", 20.0))
            lasting += end_s == 40.0 and one.mttr_s is None
            ended += end_s == 30.0 and one.mttr_s is not None
    assert lasting >= 17
    assert ended >= 17


@pytest.mark.parametrize("share", [0.005, 0.02, 0.1])
def test_errors_that_were_there_before_are_not_the_faults(share: float) -> None:
    due_s = np.arange(0, 120, 0.02)
    recovered = 0
    for seed in SEEDS:
        fails = np.random.default_rng(seed).random(len(due_s)) < share
        outcome = np.where(fails, Outcome.HTTP_STATUS, Outcome.OK)
        same = effect(made(due_s, due_s + 0.005, outcome), Injection("nothing", 60.0))
        assert same.baseline_failed > 0
        recovered += same.mttr_s == same.failing_s == 0
        assert same.downtime_s > 0  # the plan's
    assert recovered >= 19


def test_downtime_is_only_that_of_the_fault() -> None:
    due_s = np.arange(0, 60, 0.02)
    right = 0
    for seed in SEEDS:
        fails = np.random.default_rng(seed).random(len(due_s)) < 0.1
        fails |= (due_s >= 30) & (due_s < 33)
        outcome = np.where(fails, Outcome.REFUSED, Outcome.OK)
        one = effect(made(due_s, due_s + 0.005, outcome), Injection("kill", 30.0))
        right += near(one.failing_s, 3.0, 0.2)  # a chance error beside it may belong to it
        assert one.downtime_s > 4.0  # the plan's
    assert right >= 19
    dark = found(Scripted("dark", 10.0, 1.0), 1)
    assert dark.failing_s == dark.downtime_s  # nothing failed before


@pytest.mark.parametrize(("faulty", "least_s"), [(1.0, 1.98), (0.2, 1.5)])
def test_more_errors_than_before_last_until_they_are_as_before(
    faulty: float, least_s: float
) -> None:
    due_s = np.arange(0, 60, 0.02)
    is_faulty = (due_s >= 30) & (due_s < 32)
    right = 0
    for seed in SEEDS:
        chance = np.random.default_rng(seed).random(len(due_s))
        fails = chance < np.where(is_faulty, faulty, 0.01)
        outcome = np.where(fails, Outcome.HTTP_STATUS, Outcome.OK)
        one = effect(made(due_s, due_s + 0.005, outcome), Injection("kill", 30.0))
        right += one.mttr_s is not None and least_s <= one.mttr_s <= 2.5
    assert right >= 17


def test_many_more_errors_than_before_to_the_end_are_no_recovery() -> None:
    due_s = np.arange(0, 60, 0.02)
    chance = np.random.default_rng(0).random(len(due_s))
    outcome = np.where(chance < np.where(due_s >= 30, 0.5, 0.01), Outcome.REFUSED, Outcome.OK)
    assert effect(made(due_s, due_s + 0.005, outcome), Injection("kill", 30.0)).mttr_s is None


@pytest.mark.parametrize(("before", "after"), [(0.002, 0.03), (0.01, 0.05)])
def test_lasting_errors_are_no_recovery_because_some_failed_before(
    before: float, after: float
) -> None:
    due_s = np.arange(0, 60, 0.02)
    lasting = 0
    for seed in SEEDS:
        chance = np.random.default_rng(seed).random(len(due_s))
        fails = chance < np.where(due_s >= 30, after, before)
        fails[5] = True  # one at least
        outcome = np.where(fails, Outcome.HTTP_STATUS, Outcome.OK)
        one = effect(made(due_s, due_s + 0.005, outcome), Injection("kill", 30.0))
        lasting += one.mttr_s is None or one.mttr_s > 10
    assert lasting >= 17


@pytest.mark.parametrize(("before", "after"), [(0.01, 0.05), (0.05, 0.1)])
def test_failures_end_only_if_what_follows_is_as_before(before: float, after: float) -> None:
    due_s = np.arange(0, 60, 0.02)
    recovered, ended = 0, 0
    for seed in SEEDS:
        chance = np.random.default_rng(seed).random(len(due_s))
        for end_s in (40.0, 60.0):
            is_faulty = (due_s >= 30) & (due_s < end_s)
            fails = chance < np.where(is_faulty, after, before)
            outcome = np.where(fails, Outcome.HTTP_STATUS, Outcome.OK)
            one = effect(made(due_s, due_s + 0.005, outcome), Injection("kill", 30.0))
            recovered += end_s == 60.0 and one.recovery is Recovery.RECOVERED
            is_over = one.mttr_s is not None and one.recovery is not Recovery.NOT_RECOVERED
            ended += end_s == 40.0 and is_over
    assert recovered == 0
    assert ended >= 17


def test_a_slow_stretch_long_after_the_fault_is_not_its_effect() -> None:
    due_s = np.arange(0, 30, 0.02)
    slow = (due_s >= 20) & (due_s < 22)
    calm = effect(made(due_s, due_s + np.where(slow, 0.05, 0.01)), Injection("flush", 10.0))
    assert calm.degraded == ()
    assert calm.mttr_s == 0


def test_clients_of_a_hang_wait_longer_to_be_told() -> None:
    due_s = np.arange(0, 20, 0.02)
    dark = (due_s >= 10) & (due_s < 11)
    outcome = np.where(dark, Outcome.FIRST_BYTE_TIMEOUT, Outcome.OK)
    done_s = due_s + np.where(dark, 5.0, 0.01)
    [told] = effect(made(due_s, done_s, outcome), Injection("hang", 10.0)).errors
    assert (told.kind, told.count, told.median_s) == ("no answer in time", 50, 5.0)


def test_too_short_a_baseline_is_refused() -> None:
    with pytest.raises(ValueError, match="20 are needed"):
        effect(made([0.0, 0.1, 0.2], [0.01, 0.11, 0.21]), Injection("kill", 0.15))


def queued(load: float, seed: int, factor: float = 1.0) -> Iterations:
    """Iterations at a multiple of what a worker bears, which is slower by a factor from 10 s on."""
    due_s = np.arange(0, 30, 0.02)
    random = np.random.default_rng(seed)
    busy_s = 0.02 * load * (0.7 + random.exponential(0.3, len(due_s)))
    done_s, free_s = np.empty(len(due_s)), 0.0
    for i, due in enumerate(due_s.tolist()):
        free_s = done_s[i] = max(due, free_s) + busy_s[i] * (factor if due >= 10 else 1.0)
    return made(due_s, done_s)


@pytest.mark.parametrize("load", [1.1, 2.0])
def test_a_load_that_is_too_high_before_the_fault_is_not_its_effect(load: float) -> None:
    refused = 0
    for seed in SEEDS:
        try:
            effect(queued(load, seed), Injection("nothing", 10.0))
        except ValueError as problem:
            refused += "latency rose before the fault, too" in str(problem)
    assert refused >= 19


def test_a_fault_under_a_load_that_is_slightly_too_high_has_its_effect() -> None:
    for seed in SEEDS:
        slower = effect(queued(1.03, seed, 1.5), Injection("steal cpu", 10.0))
        assert slower.recovery is Recovery.NOT_RECOVERED


@pytest.mark.parametrize("factor", [1.0, 2.0])
def test_a_load_that_is_borne_is_never_too_high(factor: float) -> None:
    for seed in SEEDS:
        one = effect(queued(0.7, seed, factor), Injection("steal cpu", 10.0))
        assert one.recovery is (Recovery.RECOVERED if factor == 1.0 else Recovery.NOT_RECOVERED)


def test_the_plans_recovery_takes_iterations_in_the_order_in_which_they_were_due() -> None:
    due_s = np.arange(0, 4, 0.02)
    # Half of those that were due in the second before the fault are in flight when it comes.
    is_long = (due_s >= 1.0) & (due_s < 2.0) & (np.arange(len(due_s)) % 2 == 0)
    took_s = np.where(is_long, 2.5 - due_s / 2, 0.01)
    one = effect(made(due_s, due_s + took_s), Injection("freeze", 2.0, 2.5))
    assert near(one.plan_mttr_s, 0.98 + 20 * 0.02, 0.02)  # they, and half a window on both sides


def test_a_fault_at_the_very_end_has_no_effect_that_is_known() -> None:
    rows = simulated(Scripted("none", 10.0, 0.0), 1, RATE_RPS)
    with pytest.raises(ValueError, match="no iteration ended after the fault"):
        effect(rows, Injection("kill", float(rows.done_ns.max()) / 1e9 + 0.01))


def test_repeats_are_averaged_with_their_interval() -> None:
    effects = [found(Scripted("dark", 10.0, dark_s), 1) for dark_s in (1.0, 2.0, 3.0)]
    [summary] = summarize(effects)
    downtime = summary.figure("downtime_s")
    assert (summary.repeats, summary.recovered, downtime.count) == (3, 3, 3)
    # Student's t for two degrees of freedom: 4.303.
    values = [one.downtime_s for one in effects]
    assert downtime.high - downtime.mean == pytest.approx(4.303 * np.std(values, ddof=1) / 3**0.5,
                                                          rel=1e-3)  # fmt: skip
    assert of_values([4.0]).low is None


def test_a_reset_of_what_was_in_flight_is_over_at_once_although_one_failed_before() -> None:
    due_s = np.arange(0, 40, GAP_S)
    outcome = np.full(len(due_s), Outcome.OK)
    outcome[5] = Outcome.RESET
    outcome[(due_s < 10) & (due_s + 0.1 > 10)] = Outcome.RESET
    seen = effect(made(due_s, due_s + 0.1, outcome), Injection("kill", 10.0, 10.1))
    assert seen.recovery is Recovery.RECOVERED
    assert seen.mttr_s is not None
    assert seen.mttr_s < 0.2


def test_no_interval_has_more_failures_than_requests() -> None:
    one = found(Scripted("dark", 10.0, 1.0), 1)
    effects = [replace(one, failed=failed, due=100) for failed in (70, 100, 100)]
    [summary] = summarize(effects)
    assert summary.figure("failed_share").high == 1.0


@pytest.mark.verify
def test_the_figures_of_a_real_service_with_scripted_faults() -> None:
    """`loadstone serve --script` is the truth from outside; it tells when each fault was."""
    wanted = [
        Scripted("dark", 4.0, 1.0),
        Scripted("slow", 10.0, 4.0, 3.0),
        Scripted("refuse", 20.0, 2.0, 0.3),
    ]
    iterations, (dark, slow, refuse) = measured(wanted, 26.0, RATE_RPS)

    def around(fault: Scripted):
        injection = Injection(fault.kind, fault.at_s, fault.end_s)
        is_late = iterations.due_ns / 1e9 >= fault.at_s - 3.5
        rows = replace(iterations, has_ended=iterations.has_ended & is_late)
        return effect(rows, injection, fault.end_s + 3.0)

    down, slowed, refused = around(dark), around(slow), around(refuse)
    assert near(down.downtime_s, 1.0, 0.05, 2 * GAP_S)
    assert near(down.mttr_s, 1.0, 0.10, 2 * GAP_S)
    assert near(slowed.mttr_s, 4.0, 0.10)
    assert near(slowed.relative, 3.0, 0.10)
    assert slowed.failed == 0
    assert near(refused.failed, 30, 0.05, 2)
    assert {one.kind for one in refused.errors} == {"503 Service Unavailable"}


def test_an_iteration_that_was_cut_off_has_a_kind() -> None:
    outcome = np.array([Outcome.OK, Outcome.NOT_SENT, Outcome.HTTP_STATUS], dtype=np.uint8)
    found = kinds(outcome, np.array([201, 0, 503], dtype=np.uint16))
    assert found.tolist() == ["", "cut off when the load ended", "503 Service Unavailable"]
