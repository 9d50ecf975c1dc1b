"""What a stored proof of a rule brought, beside the rule's findings."""

import json
from dataclasses import replace

import pytest
from audited import document
from click.testing import CliRunner
from made_stats import stats_of
from realistic import keystone

from loadstone.audit import archive, proof
from loadstone.audit import rule as rules
from loadstone.audit.evaluate import RuleState
from loadstone.audit.transport import Collected
from loadstone.cli import loadstone
from loadstone.compare import disturbance
from loadstone.compare.measure import MOST_PAIRS, PAIRED, SIDE
from loadstone.store.store import Store

RATES = {"before": (3.1, 3.0, 3.2, 3.0, 3.1, 3.1), "after": (6.1, 6.0, 6.2, 6.1, 6.2, 6.0)}
ONE_WORKER = {"uwsgi": {"/etc/keystone/uwsgi.ini": "[uwsgi]\nprocesses = 1\n"}}


def proven(label, rates, started_at="2026-11-21T09:31:07Z", rule="WEB-01"):
    """Return both runs of a proof, as `audit prove` leaves them in the store."""
    template, _ = keystone()
    known = (("workers", "2"), ("port", "5000"))
    measured = proof.sides(rules.find(rule), known, RuleState.PASS, cpus=2)
    for side, own in rates.items():
        trial = template.measurements[0].trials[0]
        trials = tuple(
            replace(trial, number=n, stats=stats_of(10.0, round(rate * 10), 1.0))
            for n, rate in enumerate(own, 1)
        )
        kept = ((PAIRED, label), (SIDE, side), (MOST_PAIRS, "16"))
        measurement = replace(
            template.measurements[0],
            policy="fixed",
            capacity=None,
            trials=trials,
            parameters=(*kept, *proof.parameters(rules.find(rule), measured, "demo")),
        )
        yield replace(
            template,
            run_id=f"{label}-{side}",
            kind="compare",
            started_at=started_at,
            measurements=(measurement,),
        )


@pytest.fixture
def audited(tmp_path):
    """Return what audits a node with one worker, with these runs in the store."""
    facts = tmp_path / "facts.json"
    node = Collected("control1", document(ONE_WORKER))
    facts.write_text(json.dumps(archive.as_tree([node], is_lab=False)))

    def audit(*runs, words=("--json", "-")):
        with Store.open(tmp_path / "store") as store:
            for run in runs:
                store.begin(replace(run, status="running"))
                store.finish(run)
        given = ("audit", str(facts), "--rule", "WEB-01", "--store", str(tmp_path / "store"))
        done = CliRunner().invoke(loadstone, [*given, *words], standalone_mode=False)
        assert done.exception is None
        return json.loads(done.stdout)["results"][0] if words[0] == "--json" else done.stdout

    return audit


def test_a_stored_proof_is_quoted_with_its_interval(audited):
    row = audited(*proven("p1", RATES))
    gain = row["gain"]
    assert gain["ratio"] == pytest.approx(2, rel=0.05)
    assert 1.5 < gain["low"] < gain["ratio"] < gain["high"] < 2.7
    assert (gain["pairs"], gain["runs"]) == (6, ["p1-before", "p1-after"])
    assert gain["changes"] == "workers 1 -> 2"
    assert row["effect"].startswith("measured: throughput of token issue")
    assert "on lab deployment demo, 2026-11-21" in row["effect"]
    for words in (("--markdown", "-"), ("--sarif", "-")):
        assert "throughput of token issue 1.9" in audited(words=words)


def test_the_newest_proof_counts_and_a_half_of_one_does_not(audited):
    older, newer = proven("old", RATES), proven("new", RATES, "2026-11-22T09:31:07Z")
    half = next(proven("half", RATES, "2026-11-23T09:31:07Z"))
    assert audited(*older, *newer, half)["gain"]["measured_on"] == "2026-11-22"


def test_a_proof_that_was_broken_off_gives_way_to_an_older_one(audited):
    failed = "the service went away"
    broken_off = [
        replace(run, measurements=(replace(run.measurements[0], failure=failed),))
        for run in proven("new", RATES, "2026-11-22T09:31:07Z")
    ]
    row = audited(*proven("old", RATES), *broken_off)
    assert row["gain"]["measured_on"] == "2026-11-21"


def test_a_proof_whose_samples_are_deleted_gives_way_to_an_older_one(audited):
    in_turns = (
        replace(run, measurements=(replace(run.measurements[0], policy="turns"),))
        for run in proven("new", RATES, "2026-11-22T09:31:07Z")
    )
    row = audited(*proven("old", RATES), *in_turns)
    assert row["gain"]["measured_on"] == "2026-11-21"


def test_a_proof_without_an_answer_says_so(audited):
    row = audited(*proven("p1", {"before": (3.0, 5.0, 4.0, 3.5), "after": (4.5, 3.0, 4.0, 5.0)}))
    assert row["gain"]["is_sure"] is False
    assert "no difference that is sure" in row["effect"]


def test_what_was_not_measured_says_so_and_what_would_measure_it(audited):
    row = audited()
    assert row["gain"] is None
    assert row["effect"].startswith("not measured (`loadstone audit prove WEB-01` or ")
    assert audited(*proven("p1", RATES, rule="KS-12"))["gain"] is None


def test_work_of_others_during_a_comparison_is_told():
    runs = list(proven("p1", RATES))
    assert list(disturbance.notes(runs)) == []
    [measurement] = runs[0].measurements
    usage = replace(measurement.trials[0].usage, machine_busy=1.0, service_cpu_s=0.0)
    trials = tuple(replace(one, usage=usage) for one in measurement.trials)
    busy = [replace(run, measurements=(replace(measurement, trials=trials),)) for run in runs]
    [note] = disturbance.notes(busy)
    assert "of the machine's 2 cores" in note
