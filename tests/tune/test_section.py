"""A tuning as a report."""

from dataclasses import replace
from pathlib import Path

import numpy as np

from loadstone.tune.evidence import GainInterval
from loadstone.tune.journal import BegunTuning, ComparisonLoad, TuningJournal
from loadstone.tune.model import Terms, Tuned, TuningObjective
from loadstone.tune.section import Shown, report_of
from loadstone.tune.space import Space
from loadstone.tune.tuning import tune
from verification.tuning.simulated import MACHINES, PAIR_S, START_S, Machine, Truth, space_of

BOTH = (("conf.simulated.s0", "1"), ("conf.simulated.s1", "1"))


def labels(space: Space, found: Tuned) -> list[str]:
    """Return the labels of the facts of a tuning's report."""
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
    return [fact.label for fact in report.sections[0].facts]


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
