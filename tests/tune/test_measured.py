"""A tuning gives the comparisons of a slow service more time."""

from pathlib import Path

import pytest

from loadstone.lab.keystone.settings import LabSettings
from loadstone.result.observer import Display
from loadstone.run.backend import REAL
from loadstone.store import location
from loadstone.store.store import Store
from loadstone.system.redaction import Redaction
from loadstone.tune.evidence import Evidence
from loadstone.tune.journal import Begun, Load, TuningJournal
from loadstone.tune.measured import LONGER, RealMeasure
from loadstone.tune.model import Comparison, Objective, Outcome, Phase, TriedCombination, Tuned
from loadstone.tune.section import Shown, report_of
from loadstone.tune.space import Space


class Silent(Display):
    def begin(self, load_s: float) -> None:
        """Show nothing."""

    def say(self, line: str) -> None:
        """Show nothing."""

    def hide(self, redaction: Redaction) -> None:
        """Show nothing."""


COMPARISON = Comparison(Phase.CHECK, (), (), 4)


def begun() -> Begun:
    space = Space("none", (), (), LabSettings().pairs())
    load = Load("issue", (), 0, 8, 3.0)
    return Begun("lab", space, (), (), load, Objective.N, 3600, 1, False, "", "", pair_s=4.0)


def test_without_a_proof_no_gain_is_printed(tmp_path: Path) -> None:
    """Not even a gain of 1, which was measured nowhere."""
    journal = TuningJournal(tmp_path / "ID/comparisons.jsonl", begun())
    winner = TriedCombination((("cache", "memcached"),), "search", Evidence(0.1, 0.01, 4))
    tuned = Tuned(Outcome(Evidence(0.0, 0.01, 6)), (winner,), winner)
    [section] = report_of(Shown(tuned, journal)).sections
    assert (section.answer.text, section.answer.unit, section.answer.value) == (
        "not found",
        "",
        None,
    )
    assert "left no time to prove cache=memcached" in section.answer.sentence


@pytest.mark.parametrize(
    ("load_s", "later"),
    [(92.0, [LONGER]), (20.0, [1.0])],
    ids=["a slow service", "a busy moment"],
)
def test_more_time_is_given_for_good_to_a_slow_service_only(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, load_s: float, later: list[float]
) -> None:
    asked = []
    answers = [Outcome(None, "failed"), *[Outcome(Evidence(0.1, 0.01, 4), load_s=load_s)] * 2]

    def compared(_: RealMeasure, __: Comparison, longer: float) -> Outcome:
        asked.append(longer)
        return answers[len(asked) - 1]

    monkeypatch.setattr(RealMeasure, "_compared", compared)
    journal = TuningJournal(tmp_path / "ID/comparisons.jsonl", begun())
    with Store.open(location.read(str(tmp_path))) as store:
        measure = RealMeasure(journal, store, Silent(), REAL)
        measure(COMPARISON)
        measure(COMPARISON)
    assert asked == [1.0, LONGER, *later]
