"""Tunings of simulated services whose true gain is known (`verification.tuning.simulated`)."""

from collections.abc import Callable
from dataclasses import replace
from math import exp

import numpy as np
import pytest
from binomial import most_failures

from loadstone.errors import EnvironmentUnusable, MeasurementInvalid
from loadstone.tune.budget import (
    FEWEST_ABLATION,
    ComparisonDurations,
    ablation_pairs,
    least_s,
)
from loadstone.tune.model import Comparison, ComparisonOutcome, Terms, Tuned, TuningPhase
from loadstone.tune.space import ChangeEffort, Pairs, Setting, SettingKind, Space
from loadstone.tune.tuning import tune
from verification.tuning.simulated import (
    MACHINES,
    PAIR_S,
    START_S,
    Machine,
    Truth,
    drawn,
    space_of,
    tuned,
)

FIRST, SECOND, THIRD = ((f"conf.simulated.s{number}", "1") for number in range(3))
HOUR_S = 3600.0
HOUR = Terms(HOUR_S, start_s=START_S, pair_s=PAIR_S)


def machine(truth: Truth, seed: int = 1, noise: int = 1) -> Machine:
    return Machine(truth, MACHINES[noise], np.random.default_rng(seed))


def run(
    truth: Truth,
    wrap: Callable[[Machine], Callable[[Comparison], ComparisonOutcome]] = lambda one: one.measure,
    terms: Terms = HOUR,
    space: Space | None = None,
    suggested: tuple[tuple[Pairs, str], ...] = (),
) -> Tuned:
    measure = wrap(machine(truth))
    return tune(space or space_of(3, levels=2), terms, suggested, measure, lambda _: None)


def test_without_an_effect_a_gain_is_shown_in_at_most_5_percent() -> None:
    false = [
        tuned(space_of(6), machine(Truth(), seed, seed % 3), seed, HOUR_S).has_gain
        for seed in range(45)
    ]
    assert sum(false) <= most_failures(len(false), 0.05)


def test_the_stated_interval_holds_the_true_gain() -> None:
    missed = 0
    for seed in range(45):
        random = np.random.default_rng(seed)
        space = space_of(8)
        truth = drawn(space, random)
        found = tuned(space, Machine(truth, MACHINES[seed % 3], random), seed, HOUR_S).stated
        if found is not None and found.interval is not None:
            true = exp(truth.speed(found.changes))
            missed += not found.interval.low <= true <= found.interval.high
    assert missed <= most_failures(45, 0.05)


def test_a_setting_that_carries_nothing_is_dropped_and_the_rest_is_proven_again() -> None:
    found = run(Truth({FIRST: 0.2}), suggested=(((FIRST, SECOND), "test"),))
    assert found.changes == (FIRST,)
    if found.proof is not None and len(found.proof.changes) > 1:
        assert found.stated is found.proof_again
        assert {one.change: one.carries for one in found.ablation}[FIRST]


def test_a_setting_that_brings_nothing_is_seldom_proven() -> None:
    """Two combinations look the same but for noise; the one with fewer changes is proven."""
    truth, tried = Truth({FIRST: 0.2}), (((FIRST,), "test"), ((FIRST, SECOND), "test"))
    proven = []
    for seed in range(20):
        measure = machine(truth, seed).measure
        found = tune(space_of(2, levels=2), HOUR, tried, measure, lambda _: None)
        proven.append(found.proof.changes if found.proof else ())
    assert proven.count((FIRST,)) >= 20 - most_failures(20, 0.05)


def test_an_ablation_takes_the_time_of_the_second_proof_if_half_is_too_little() -> None:
    costs = ComparisonDurations(HOUR)
    needed_s = 5 * costs.of(FEWEST_ABLATION)
    assert ablation_pairs(costs, 4 * needed_s, 5) > FEWEST_ABLATION
    assert ablation_pairs(costs, needed_s + 1, 5) == FEWEST_ABLATION
    assert ablation_pairs(costs, 0.9 * needed_s, 5) < FEWEST_ABLATION


def test_settings_that_act_together_are_stated_together() -> None:
    """Either of the two brings the gain alone, so neither is missed alone."""
    truth = Truth({FIRST: 0.2, SECOND: 0.2}, {frozenset((FIRST, SECOND)): -0.2})
    found = run(truth, space=space_of(2, levels=2), suggested=(((FIRST, SECOND), "test"),))
    assert found.has_gain
    assert truth.speed(found.changes) == pytest.approx(0.2)


def test_a_gain_that_needs_two_settings_keeps_both() -> None:
    truth = Truth({}, {frozenset((FIRST, SECOND)): 0.3})
    found = run(truth, suggested=(((FIRST, SECOND), "test"),))
    assert set(found.changes) == {FIRST, SECOND}


def test_what_the_lab_refuses_without_a_setting_is_not_measured() -> None:
    """Only uWSGI has a listen queue; the space does not say so."""
    web, queue = ("web", "uwsgi"), ("listen", "1024")
    settings = [
        Setting(name, levels, SettingKind.GAIN, ChangeEffort.RESTART, "", "")
        for name, levels in (("web", ("gunicorn", "uwsgi")), ("listen", ("1024",)))
    ]
    space = Space("test", tuple(settings), (), (("web", "gunicorn"),))
    measured: list[Comparison] = []

    def kept(one: Machine) -> Callable[[Comparison], ComparisonOutcome]:
        def measure(comparison: Comparison) -> ComparisonOutcome:
            measured.append(comparison)
            return one.measure(comparison)

        return measure

    truth = Truth({web: 0.1, queue: 0.2})
    found = run(truth, kept, space=space, suggested=(((web, queue), "test"),))
    assert all(space.is_possible(one) for each in measured for one in (each.a, each.b))
    assert found.changes == (web, queue)
    first, second = found.ablation
    assert (first.is_kept, first.failure) == (True, "without it, the lab does not accept the rest")
    assert second.carries


def test_of_combinations_that_look_equal_the_one_with_the_fewest_changes_wins() -> None:
    """The highest of the four that bring the same is chosen by luck; the plainest mostly wins."""
    plain = 0
    for seed in range(20):
        measure = machine(Truth({FIRST: 0.5}), seed).measure
        winner = tune(space_of(3, levels=2), HOUR, (), measure, lambda _: None).winner
        plain += winner is not None and winner.changes == (FIRST,)
    assert plain >= 10


def test_the_best_of_equal_combinations_looks_better_than_it_is() -> None:
    seen = []
    for seed in range(10):
        winner = tuned(space_of(6), machine(Truth(), seed), seed, HOUR_S).winner
        seen.append(winner.evidence.mean if winner and winner.evidence else 0.0)
    assert np.mean(seen) > 0.01


def test_the_budget_is_kept() -> None:
    for budget_s in (1200.0, HOUR_S, 4 * HOUR_S):
        terms = Terms(budget_s, start_s=START_S, pair_s=PAIR_S)
        found = run(Truth({FIRST: 0.2, SECOND: 0.1}), terms=terms, space=space_of(6))
        assert found.has_gain
        assert found.spent_s <= budget_s


def test_the_least_budget_has_time_for_a_proof() -> None:
    terms = Terms(HOUR_S, start_s=START_S, pair_s=PAIR_S)
    least = replace(terms, budget_s=least_s(terms))
    assert run(Truth({FIRST: 0.3}), terms=least, space=space_of(1, levels=2)).has_gain


def test_the_least_budget_has_time_for_a_proof_of_two_settings() -> None:
    terms = Terms(HOUR_S, start_s=START_S, pair_s=PAIR_S)
    least = replace(terms, budget_s=least_s(terms))
    both = (((FIRST, SECOND), "audit"),)
    truth = Truth({FIRST: 0.3, SECOND: 0.3})
    found = run(truth, terms=least, space=space_of(2, levels=2), suggested=both)
    assert found.winner is not None
    assert found.winner.changes == (FIRST, SECOND)
    assert found.has_gain
    assert found.spent_s <= least.budget_s


def test_costs_are_those_of_the_comparisons_that_were_made() -> None:
    costs = ComparisonDurations(Terms(HOUR_S, start_s=1.0, pair_s=1.0))
    costs.add(machine(Truth()).measure(Comparison(TuningPhase.CHECK, (), (), 6)), 6)
    assert costs.of(10) == pytest.approx(START_S + 10 * PAIR_S)


def test_the_same_outcomes_give_the_same_tuning() -> None:
    kept: list[ComparisonOutcome] = []

    def recorded(one: Machine) -> Callable[[Comparison], ComparisonOutcome]:
        def measure(comparison: Comparison) -> ComparisonOutcome:
            kept.append(one.measure(comparison))
            return kept[-1]

        return measure

    truth = Truth({FIRST: 0.1, THIRD: -0.1})
    first = run(truth, recorded)
    replayed = iter(kept)
    assert run(truth, lambda _: lambda _: next(replayed)) == first


def test_a_combination_that_fails_is_dropped_and_told() -> None:
    def failing(one: Machine) -> Callable[[Comparison], ComparisonOutcome]:
        def measure(comparison: Comparison) -> ComparisonOutcome:
            if SECOND in comparison.b:
                return ComparisonOutcome(None, "uwsgi ended while starting", START_S)
            return one.measure(comparison)

        return measure

    found = run(Truth({FIRST: 0.2}), failing)
    assert found.changes == (FIRST,)
    assert all((SECOND in one.changes) == bool(one.failure) for one in found.trials)


def test_a_default_that_cannot_be_measured_ends_it() -> None:
    with pytest.raises(EnvironmentUnusable, match="the default cannot be measured: no answer"):
        run(Truth(), lambda _: lambda _: ComparisonOutcome(None, "no answer", 1.0))


def test_a_default_that_takes_most_of_the_budget_ends_it_with_the_budget_that_it_needs() -> None:
    """A combination of a cloud is applied in a minute, not in the seconds that were assumed."""
    asked = []

    def slow(one: Machine) -> Callable[[Comparison], ComparisonOutcome]:
        def measure(comparison: Comparison) -> ComparisonOutcome:
            asked.append(comparison.phase)
            outcome = one.measure(comparison)
            return replace(outcome, took_s=9 * outcome.took_s, load_s=9 * outcome.load_s)

        return measure

    with pytest.raises(MeasurementInvalid, match=r"give --budget \d+m or more"):
        run(Truth({FIRST: 0.3}), slow, terms=replace(HOUR, budget_s=1200.0))
    assert asked == [TuningPhase.CHECK]


def test_a_trade_is_no_part_of_the_search_and_of_the_gain() -> None:
    name, level = "conf.simulated.hash", "1"
    space = space_of(2, levels=2)
    trade = Setting(name, (level,), SettingKind.TRADE, ChangeEffort.DATA, "weaker", "")
    space = replace(space, trades=(trade,), default=(*space.default, (name, "0")))
    terms = Terms(HOUR_S, with_trades=True, start_s=START_S, pair_s=PAIR_S)
    found = run(Truth({(name, level): 0.7}), terms=terms, space=space)
    [shown] = found.trades
    assert not found.has_gain
    assert shown.interval is not None
    assert shown.interval.low <= exp(0.7) <= shown.interval.high
    assert all((name, level) not in one.changes for one in found.trials)


def test_advice_about_what_the_audit_found_is_tried_first() -> None:
    def finding(one: Machine) -> Callable[[Comparison], ComparisonOutcome]:
        return lambda comparison: replace(one.measure(comparison), findings=("KS-02", "DB-01"))

    advice = (
        ((FIRST,), "audit KS-01"),
        ((SECOND,), "audit DB-01"),
        ((THIRD,), "audit KS-02, WEB-01"),
    )
    found = run(Truth(), finding, suggested=advice)
    first = [one.changes for one in found.trials if one.origin.startswith("audit")]
    assert first == [(THIRD,), (SECOND,), (FIRST,)]
