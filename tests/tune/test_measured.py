"""The comparisons of a tuning: their results, their failures and their duration."""

import json
from dataclasses import replace
from math import exp, isnan, log, nan
from pathlib import Path
from statistics import fmean, stdev

import pytest

from loadstone.compare.answer import Criteria, compare
from loadstone.compare.metrics import THROUGHPUT
from loadstone.lab.keystone.settings import LabSettings
from loadstone.report import figures
from loadstone.report.data import as_data
from loadstone.result.observer import Display
from loadstone.run.backend import REAL
from loadstone.store import location
from loadstone.store.store import Store
from loadstone.system.redaction import Redaction
from loadstone.tune.budget import FIRST_PAIRS, ComparisonDurations
from loadstone.tune.evidence import GainEvidence, pooled
from loadstone.tune.journal import BegunTuning, ComparisonLoad, TuningJournal
from loadstone.tune.measured import LONGER, RealMeasure, evidence_of
from loadstone.tune.model import (
    Comparison,
    ComparisonOutcome,
    Proof,
    Trade,
    TriedCombination,
    Tuned,
    TuningObjective,
    TuningPhase,
)
from loadstone.tune.section import Shown, report_of
from loadstone.tune.space import ChangeEffort, Setting, SettingKind, Space


class Silent(Display):
    def begin(self, load_s: float) -> None:
        """Show nothing."""

    def say(self, line: str) -> None:
        """Show nothing."""

    def hide(self, redaction: Redaction) -> None:
        """Show nothing."""


COMPARISON = Comparison(TuningPhase.CHECK, (), (), 4)


def begun() -> BegunTuning:
    space = Space("none", (), (), LabSettings().pairs())
    load = ComparisonLoad("issue", (), 0, 8, 3.0)
    return BegunTuning(
        "lab", space, (), (), load, TuningObjective.N, 3600, 1, False, "", "", pair_s=4.0
    )


def test_without_a_proof_no_gain_is_printed(tmp_path: Path) -> None:
    """Not even a gain of 1, which was measured nowhere."""
    journal = TuningJournal(tmp_path / "ID/comparisons.jsonl", begun())
    winner = TriedCombination((("cache", "memcached"),), "search", GainEvidence(0.1, 0.01, 4))
    tuned = Tuned(ComparisonOutcome(GainEvidence(0.0, 0.01, 6)), (winner,), winner)
    [section] = report_of(Shown(tuned, journal)).sections
    assert (section.answer.text, section.answer.unit, section.answer.value) == (
        "not found",
        "",
        None,
    )
    assert "left no time to prove cache=memcached" in section.answer.sentence
    assert (section.certainty.exit_code, section.certainty.reason) == (
        4,
        "the budget left no time to prove cache=memcached",
    )


def test_a_winner_that_cannot_be_measured_again_is_no_answer(tmp_path: Path) -> None:
    journal = TuningJournal(tmp_path / "ID/comparisons.jsonl", begun())
    winner = TriedCombination((("cache", "memcached"),), "search", GainEvidence(0.1, 0.01, 4))
    failed = Proof(winner.changes, ComparisonOutcome(None, "it does not start"), None)
    tuned = Tuned(ComparisonOutcome(GainEvidence(0.0, 0.01, 6)), (winner,), winner, proof=failed)
    [section] = report_of(Shown(tuned, journal)).sections
    why = "cache=memcached could not be measured again: it does not start"
    assert (section.certainty.exit_code, section.certainty.reason) == (4, why)
    assert section.answer.sentence.endswith(why)


@pytest.mark.parametrize(
    ("load_s", "later"),
    [(92.0, [LONGER]), (20.0, [1.0])],
    ids=["a slow service", "a busy moment"],
)
def test_more_time_is_given_for_good_to_a_slow_service_only(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, load_s: float, later: list[float]
) -> None:
    asked = []
    answers = [
        ComparisonOutcome(None, "failed"),
        *[ComparisonOutcome(GainEvidence(0.1, 0.01, 4), load_s=load_s)] * 2,
    ]

    def compared(_: RealMeasure, __: Comparison, longer: float) -> ComparisonOutcome:
        asked.append(longer)
        return answers[len(asked) - 1]

    monkeypatch.setattr(RealMeasure, "_compared", compared)
    journal = TuningJournal(tmp_path / "ID/comparisons.jsonl", begun())
    with Store.open(location.read(str(tmp_path))) as store:
        measure = RealMeasure(journal, store, Silent(), REAL)
        measure(COMPARISON)
        measure(COMPARISON)
    assert asked == [1.0, LONGER, *later]


def test_few_pairs_scatter_as_much_as_they_do() -> None:
    """The first round of a search may have two or three."""
    ratios = [1.03, 0.99, 1.06, 1.01, 0.98, 1.04]

    def seen(some: list[float]) -> GainEvidence:
        [row] = compare({THROUGHPUT: [(100.0, 100.0 * one) for one in some]}, Criteria(len(some)))
        return evidence_of(row)

    logs = [log(one) for one in ratios]
    assert seen(ratios[:2]).deviation == pytest.approx(stdev(logs[:2]))
    for rounds in ([ratios], [ratios[:2], ratios[2:]], [ratios[:1], ratios[1:4], ratios[4:]]):
        whole = pooled(map(seen, rounds))
        assert (whole.mean, whole.deviation) == pytest.approx((fmean(logs), stdev(logs)))
    first = pooled([seen(ratios[:2])]).interval(0.05)
    assert first.low < 1.0 < first.high
    assert isnan(pooled([seen(ratios[:1])]).deviation)


def test_pauses_stay_in_the_evidence_of_several_rounds() -> None:
    """The trimmed mean of a round leaves them out; the interval reaches to the mean with them."""
    rounds = [GainEvidence(0.1, 0.01, 8, of_all=0.02), GainEvidence(0.1, 0.01, 4)]
    whole = pooled(rounds)
    assert whole.of_all == pytest.approx((8 * 0.02 + 4 * 0.1) / 12)
    assert whole.interval(0.05).low <= exp((8 * 0.02 + 4 * 0.1) / 12)
    assert pooled(rounds[1:]).of_all is None


def test_a_gain_of_a_single_pair_has_no_interval(tmp_path: Path) -> None:
    """The load time of a slow service may end before there are more."""
    evidence = GainEvidence(0.1, nan, 1)
    changes = (("cache", "memcached"),)
    proof = Proof(changes, ComparisonOutcome(evidence), evidence.interval(0.025))
    trade = Trade(("hash-rounds", "4"), evidence, evidence.interval(0.05))
    tuned = Tuned(
        ComparisonOutcome(evidence),
        (TriedCombination(changes, "search", evidence),),
        proof=proof,
        trades=(trade,),
    )
    setting = Setting("hash-rounds", ("4",), SettingKind.TRADE, ChangeEffort.DATA, "", "")
    asked = begun()
    asked = replace(asked, space=replace(asked.space, trades=(setting,)))
    report = report_of(Shown(tuned, TuningJournal(tmp_path / "ID/comparisons.jsonl", asked)))
    [section] = report.sections
    assert "1.105 times that of the default (too few pairs for an interval)" in report.title
    assert (section.answer.low, section.answer.high, section.answer.confidence) == (None, None, 0.0)
    [brings] = [one.rows[0].cells for one in section.tables if one.title.startswith("Trades")]
    assert brings[1:3] == ("1.105", figures.MISSING)
    assert json.dumps(as_data(report), allow_nan=False)
    costs = ComparisonDurations(asked.terms)
    costs.learn_scatter(evidence)
    assert costs.first_pairs == FIRST_PAIRS
