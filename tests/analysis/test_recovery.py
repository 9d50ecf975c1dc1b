"""Recovered, not recovered, or not shown, on failures and latencies whose truth is known."""

from dataclasses import replace

import numpy as np
import pytest
from scripted import made

from loadstone.analysis import recovery
from loadstone.analysis.fault import FaultEffect, Injection
from loadstone.analysis.fault_effect import effect, summarize
from loadstone.analysis.recovery import (
    Recovery,
    Remainder,
    judge,
    judge_all,
    latency_ratio,
    share_rise,
)
from loadstone.engine.outcome import Outcome

SEEDS = range(20)
SAME = Remainder(500, 0, 500, 0, 1.0, 0.0, 0.01, 18.0)


def loaded(
    rate_rps: float, fails_at, seconds: float = 30.0, at_s: float = 10.0, slower: float = 1.0
) -> FaultEffect:
    """Return the effect of a kill that was undone after 5 s; every request failed for 2 s."""
    due_s = np.arange(0, seconds, 1 / rate_rps)
    fails = fails_at(due_s) | ((due_s >= at_s) & (due_s < at_s + 2))
    outcome = np.where(fails, Outcome.HTTP_STATUS, Outcome.OK)
    took_s = np.random.default_rng(1).lognormal(-3.0, 0.5, len(due_s))
    took_s *= np.where(due_s < at_s, 1.0, slower)
    return effect(made(due_s, due_s + took_s, outcome), Injection("kill", at_s, at_s + 5))


def never(due_s) -> np.ndarray:
    return np.zeros(len(due_s), bool)


@pytest.mark.parametrize("rate_rps", [20.0, 50.0, 500.0])
def test_a_healthy_service_has_recovered(rate_rps: float) -> None:
    one = loaded(rate_rps, never)
    assert one.recovery is Recovery.RECOVERED
    assert one.mttr_s == pytest.approx(2.0, abs=2 / rate_rps)


def test_too_few_requests_show_neither() -> None:
    one = loaded(5.0, never)
    assert one.recovery is Recovery.NOT_SHOWN
    assert one.mttr_s == pytest.approx(2.0, abs=0.2)  # when errors ended all the same


def test_repeats_that_show_nothing_alone_are_judged_together() -> None:
    [summary] = summarize([loaded(5.0, never)] * 5)
    assert (summary.recovered, summary.not_recovered, summary.not_shown) == (5, 0, 0)
    [summary] = summarize([loaded(5.0, never)] * 2)
    assert (summary.recovered, summary.not_recovered, summary.not_shown) == (0, 0, 2)


@pytest.mark.parametrize(("before", "after"), [(0.0, 0.01), (0.001, 0.01), (0.01, 0.03)])
def test_a_small_lasting_rise_of_errors_is_no_recovery(before: float, after: float) -> None:
    found = []
    for seed in SEEDS:
        random = np.random.default_rng(seed)

        def fails_at(due_s, random=random):
            return random.random(len(due_s)) < np.where(due_s < 60, before, after)

        found.append(loaded(100.0, fails_at, 120.0, 60.0).recovery)
    assert Recovery.RECOVERED not in found
    assert found.count(Recovery.NOT_RECOVERED) >= 15


@pytest.mark.parametrize("share", [0.001, 0.01, 0.05])
def test_the_same_errors_in_bursts_are_never_shown_as_a_rise(share: float) -> None:
    for seed in SEEDS:
        random = np.random.default_rng(seed)

        def fails_at(due_s, random=random):
            in_burst = np.repeat(random.random(61) < 2 * share, 100)[: len(due_s)]
            return in_burst & (random.random(len(due_s)) < 0.5)

        one = loaded(100.0, fails_at, 60.0, 30.0)
        assert one.recovery is not Recovery.NOT_RECOVERED


def test_a_lasting_rise_of_latency_is_no_recovery() -> None:
    assert loaded(50.0, never, slower=1.1).recovery is Recovery.RECOVERED
    assert loaded(50.0, never, slower=1.4).recovery is Recovery.NOT_SHOWN
    slow = loaded(50.0, never, slower=2.5)
    assert slow.recovery is Recovery.NOT_RECOVERED
    assert slow.mttr_s is None


def test_errors_that_come_back_long_after_the_fault_are_those_of_the_end() -> None:
    one = loaded(50.0, lambda due_s: (due_s >= 24) & (due_s < 26))
    assert one.remainder.after_failed == 100
    assert one.recovery is not Recovery.RECOVERED


def test_a_fault_without_any_effect_is_judged_by_all_since_it() -> None:
    due_s = np.arange(0, 30, 0.1)
    one = effect(made(due_s, due_s + 0.05), Injection("take one node out", 10.0, 25.0))
    assert one.remainder.after_due == pytest.approx(200, abs=2)


def test_an_effect_to_the_end_is_never_a_recovery() -> None:
    assert judge(SAME) is Recovery.RECOVERED
    assert judge(replace(SAME, is_open=True)) is Recovery.NOT_SHOWN
    assert judge(replace(SAME, after_due=0)) is Recovery.NOT_SHOWN
    assert judge(replace(SAME, log_ratio=None)) is Recovery.NOT_SHOWN


def test_one_repeat_that_did_not_recover_is_not_hidden_by_the_others() -> None:
    broken = replace(SAME, after_failed=50)
    few = replace(SAME, after_due=150)
    found = judge_all([broken, few, few, few])
    assert found == (Recovery.NOT_RECOVERED, *[Recovery.RECOVERED] * 3)


def test_the_rise_is_newcombes(monkeypatch: pytest.MonkeyPatch) -> None:
    # His first example: 56 of 70 less 48 of 80, at 95 %.
    monkeypatch.setattr(recovery, "BEYOND", 0.025)
    rise = share_rise(replace(SAME, before_due=80, before_failed=48, after_due=70, after_failed=56))
    assert (rise.low, rise.high) == pytest.approx((0.0524, 0.3339), abs=5e-5)
    assert rise.value == pytest.approx(0.2)
    assert rise.least < rise.low


def test_errors_in_bursts_count_for_fewer() -> None:
    single, bursts = share_rise(SAME), share_rise(replace(SAME, clustering=4.0))
    assert bursts.high > 3 * single.high
    ratio = latency_ratio(replace(SAME, log_ratio=np.log(2.0)))
    assert ratio.value == pytest.approx(2.0)
    assert ratio.least < ratio.low < 2.0 < ratio.high
