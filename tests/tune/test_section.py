"""A tuning as a report."""

from dataclasses import replace
from pathlib import Path

import numpy as np

from loadstone.report.section import Section
from loadstone.tune.evidence import GainInterval
from loadstone.tune.journal import BegunTuning, ComparisonLoad, TuningJournal
from loadstone.tune.model import ComparisonOutcome, Found, Share, Terms, Tuned, TuningObjective
from loadstone.tune.section import Shown, report_of
from loadstone.tune.space import Space
from loadstone.tune.tuning import tune
from verification.tuning.simulated import MACHINES, PAIR_S, START_S, Machine, Truth, space_of

BOTH = (("conf.simulated.s0", "1"), ("conf.simulated.s1", "1"))


def labels(space: Space, found: Tuned) -> list[str]:
    """Return the labels of the facts of a tuning's report."""
    return [fact.label for fact in section(space, found).facts]


def section(space: Space, found: Tuned) -> Section:
    """Return a tuning's section."""
    begun = BegunTuning(
        space_name="simulated",
        space=space,
        kept=(),
        suggested=(),
        load=ComparisonLoad("issue", (), users=0, concurrency=4, seconds=4.0),
        objective=TuningObjective.N,
        budget_s=3600.0,
        seed=1,
        with_trades=False,
        command="loadstone tune",
        started_at="2026-11-30T09:31:07Z",
        pair_s=PAIR_S,
    )
    report = report_of(Shown(found, TuningJournal(Path("id/comparisons.jsonl"), begun)))
    return report.sections[0]


def test_a_reduction_that_is_not_stated_is_not_shown_as_one() -> None:
    space = space_of(2, levels=2)
    machine = Machine(Truth(dict.fromkeys(BOTH, 0.3)), MACHINES[0], np.random.default_rng(1))
    terms = Terms(3600.0, start_s=START_S, pair_s=PAIR_S)
    found = tune(space, terms, ((BOTH, "test"),), machine.measure, lambda _: None)
    assert found.proof is not None
    again = replace(found.proof, changes=BOTH[:1])
    reduced = replace(found, proof_again=again)
    assert reduced.stated is again
    assert "before the reduction" in labels(space, reduced)
    without_gain = replace(again, interval=GainInterval(1.0, 0.9, 1.1))
    kept = replace(found, proof_again=without_gain)
    assert kept.stated is found.proof
    assert "before the reduction" not in labels(space, kept)


def test_settings_of_which_none_is_missed_alone_are_said_to_be_stated_together() -> None:
    space = space_of(2, levels=2)
    machine = Machine(Truth(dict.fromkeys(BOTH, 0.3)), MACHINES[0], np.random.default_rng(1))
    terms = Terms(3600.0, start_s=START_S, pair_s=PAIR_S)
    found = tune(space, terms, ((BOTH, "test"),), machine.measure, lambda _: None)
    none = tuple(Share(change, None, 0.9) for change in BOTH)
    shown = section(space, replace(found, ablation=none, proof_again=None))
    assert any("all of them are stated" in one.text for one in shown.statements)
    assert [one["failure"] for one in shown.data["ablation"]] == [None, None]


def test_an_n_that_was_not_found_has_no_unit() -> None:
    space = space_of(1, levels=2)
    machine = Machine(Truth({BOTH[0]: 0.3}), MACHINES[0], np.random.default_rng(1))
    terms = Terms(3600.0, start_s=START_S, pair_s=PAIR_S)
    found = tune(space, terms, (), machine.measure, lambda _: None)
    capacities = (Found(None, None, None), Found(8.1, 8.0, 8.2))
    searched = replace(found, capacities=ComparisonOutcome(None, capacities=capacities))
    [shown] = [one.text for one in section(space, searched).facts if one.label == "N"]
    assert shown.startswith("not found with the default, 8.10/s")
