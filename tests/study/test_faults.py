"""Studies of faults."""

from dataclasses import replace

import pytest
from realistic import keystone
from scripted import Scripted, simulated

from loadstone.analysis.fault import Injection, UnmeasuredFault
from loadstone.analysis.fault_effect import effect
from loadstone.analysis.interval import Interval
from loadstone.compare.answer import ComparisonAnswer
from loadstone.errors import InvalidInput
from loadstone.study.cell import config_of
from loadstone.study.figure import of_turn
from loadstone.study.model import LevelComparison
from loadstone.study.order import turns
from loadstone.study.read import StudySource
from loadstone.study.table import Difference
from loadstone.study.wording import conclusion

KILL = "kill mysql service on one node"
STUDY = f"""
title: t
factors: {{workers: [1]}}
measurement:
  kind: faults
  do: ["{KILL}"]
  figures: [downtime_s, failed_share, detected_s]
  times: 3
  users: 0
published:
  - {{cell: {{workers: 1}}, step: "{KILL}: downtime (first to last error), s", value: 14.7}}
quick: {{words: "once", times: 1}}
"""
DOWNTIME = f"{KILL}: downtime (first to last error), s"
SHARE = f"{KILL}: failed share, %"
DETECTED = f"{KILL}: until haproxy noticed, s"


def study(text=STUDY, *, quick=False):
    return StudySource("mine.yaml", text).study(quick=quick)


def test_each_figure_of_each_fault_is_a_row():
    found = study()
    assert found.steps == (DOWNTIME, SHARE, DETECTED)
    assert found.published[0].is_of(found.cells[0], DOWNTIME)
    assert (found.measurement.terms.repeats, study(quick=True).measurement.terms.repeats) == (3, 1)


def test_less_downtime_is_better_and_not_faster():
    one = Difference(
        LevelComparison("workers", "1", "2"),
        DOWNTIME,
        (),
        Interval(0.5, 0.4, 0.6, 3),
        0.01,
        "pairs",
    )
    known = replace(one, p_holm=0.01, answer=ComparisonAnswer.FASTER)
    assert conclusion(known, study()) == "better, p = 0.01"


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("downtime_s,", "uptime,", 'there is no figure "uptime"'),
        (f'do: ["{KILL}"]', 'do: ["kil mysql"]', "is not a sentence like"),
        ("times: 1", "times: 1, budget_s: 30", "faults have no budget_s"),
        ("users: 0\n", "users: 0\n  rate_rps: 2\n", "mine.yaml:10: rate_rps 2 for baseline_s 10s"),
    ],
)
def test_what_is_wrong_is_said(old, new, words):
    with pytest.raises(InvalidInput, match=words):
        study(STUDY.replace(old, new), quick=True)


def test_a_mistake_is_said_in_the_names_of_a_study():
    once = STUDY.replace(f'do: ["{KILL}"]', 'do: ["upgrade keystone to 30.0.0"]')
    with pytest.raises(InvalidInput, match=r"mine\.yaml:8: .*happens once; times 1"):
        study(once)


def test_rows_have_the_means_over_repeats():
    run, _ = keystone()
    [first, *_] = run.measurements
    faults = [
        effect(simulated(Scripted("dark", 10.0, s), 1), Injection(KILL, 10.0, 10.0 + s))
        for s in (1.0, 2.0)
    ]
    trials = tuple(replace(first.trials[0], faults=(one,)) for one in faults)
    measured = replace(run, measurements=(replace(first, policy="fixed", trials=trials),))
    rows = of_turn(measured, study().measurement)
    assert rows[DOWNTIME].estimate.value == pytest.approx(1.5, abs=0.05)
    assert rows[DOWNTIME].estimate.low < 1.5 < rows[DOWNTIME].estimate.high
    assert 5 < rows[SHARE].estimate.value < 15
    assert rows[DETECTED].estimate is None
    assert rows[DETECTED].shortcoming == "not reached in any repeat"


def test_a_recovery_that_is_not_shown_has_no_time():
    run, _ = keystone()
    [first, *_] = run.measurements
    few = effect(simulated(Scripted("dark", 10.0, 1.0), 1, 5.0), Injection(KILL, 10.0, 11.0))
    trials = (replace(first.trials[0], faults=(few,)),)
    measured = replace(run, measurements=(replace(first, policy="fixed", trials=trials),))
    found = study(STUDY.replace("detected_s]", "detected_s, mttr_s]"))
    row = of_turn(measured, found.measurement)[f"{KILL}: until recovered, s"]
    assert row.estimate is None
    assert row.shortcoming == "recovery is not shown in 1 of 1 repeats"


def test_a_repeat_without_figures_leaves_its_rows_without_a_mean():
    run, _ = keystone()
    [first, *_] = run.measurements
    dark = simulated(Scripted("dark", 10.0, 1.0), 1)
    known = replace(first.trials[0], faults=(effect(dark, Injection(KILL, 10.0, 11.0)),))
    missing = replace(first.trials[0], unmeasured_faults=(UnmeasuredFault(KILL, "too few"),))
    trials = (known, missing, known)
    measured = replace(run, measurements=(replace(first, policy="fixed", trials=trials),))
    row = of_turn(measured, study().measurement)[DOWNTIME]
    assert row.estimate is None
    assert row.shortcoming == "1 of 3 repeats has no figures: too few"


@pytest.mark.parametrize(
    ("rate_rps", "sentence", "most_rps"),
    [
        (8000, KILL, 8000.0),
        (2000, "overload 3x for 5 seconds", 6000.0),
        (20, KILL, 5000.0),
    ],
)
def test_a_rate_or_an_overload_above_the_limit_of_a_search_is_sent(rate_rps, sentence, most_rps):
    text = STUDY.replace("users: 0", f"users: 0\n  rate_rps: {rate_rps}")
    found = study(text.replace(KILL, sentence))
    config = config_of(found, "20261121-0931-000000", turns(found, 1)[0], "")
    assert config.max_rate_rps == most_rps
