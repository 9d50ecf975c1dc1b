"""What `audit prove` measures, and the facts that measurements keep."""

import pytest
import yaml
from audited import AUDIT, CONTEXT, document
from known_service import known_service

from loadstone.audit import kept, proof
from loadstone.audit import rule as rules
from loadstone.audit.evaluate import RuleState
from loadstone.audit.extract import extract
from loadstone.cloud.cloud import Endpoint
from loadstone.errors import MeasurementInvalid
from loadstone.keystone.scenarios import is_named
from loadstone.lab.keystone import settings
from loadstone.target.choice import NamedTarget

LAB = (("workers", "2"), ("port", "5000"), ("cache", "local"))
PROVABLE = [rule for rule in rules.every() if rule.proof]


def test_a_deployment_that_breaks_the_rule_is_mended():
    found = proof.sides(rules.find("KS-01"), LAB, RuleState.FAIL, cpus=4)
    assert dict(found.before) == {"workers": "2", "cache": "local"}
    assert dict(found.after) == {"workers": "2", "cache": "memcached"}
    assert found.changes == ("cache=memcached",)


def test_one_that_keeps_it_is_measured_against_one_that_breaks_it():
    found = proof.sides(rules.find("WEB-01"), LAB, RuleState.PASS, cpus=4)
    assert (dict(found.before)["workers"], dict(found.after)["workers"]) == ("1", "2")
    assert "breaks it on purpose" in found.note


def test_one_that_could_not_be_judged_is_made_both_ways_with_the_processors_of_the_machine():
    found = proof.sides(rules.find("WEB-01"), LAB, None, cpus=4)
    assert (dict(found.before)["workers"], dict(found.after)["workers"]) == ("1", "8")


def test_a_rule_that_something_else_than_its_setting_breaks_or_keeps_is_not_measured():
    """Two deployments with the same settings would show that the fix brings nothing."""
    with pytest.raises(MeasurementInvalid, match=r"breaks the rule although .*revocation-events=0"):
        proof.sides(rules.find("KS-18"), LAB, RuleState.FAIL, cpus=2)
    with pytest.raises(MeasurementInvalid, match=r"keeps the rule although .*cache=local"):
        proof.sides(rules.find("KS-01"), LAB, RuleState.PASS, cpus=2)


def test_a_rule_whose_fix_is_no_setting_of_the_lab_is_not_measured():
    with pytest.raises(MeasurementInvalid, match=r"HOST-01: not measured.*WEB-01") as refused:
        proof.sides(rules.find("HOST-01"), LAB, None, cpus=4)
    assert refused.value.exit_code == 4
    assert rules.find("HOST-01").effect == "not measured"


@pytest.mark.parametrize("rule", PROVABLE, ids=lambda rule: rule.id)
def test_every_proof_differs_in_settings_that_the_lab_knows(rule):
    found = proof.sides(rule, LAB, None, cpus=2)
    assert settings.read(found.before) != settings.read(found.after)
    assert found.changes
    assert is_named(rule.proof.scenario)


def test_measurements_keep_settings_and_no_counters_places_or_secrets():
    found = dict(kept.of_host(extract("control1", document(), CONTEXT)))
    assert found["web.processes"] == "8"
    assert found["conf.token.provider"] == "fernet"
    assert {"fernet.keys", "host.cpus", "db.max_connections"} <= found.keys()
    unwanted = ("memcached.gets", "host.available_mb", "fernet.digest", "conf.file", "host.name")
    assert not found.keys() & set(unwanted)
    assert len(repr(found)) < 6000  # with every measurement


def test_what_the_rules_find_is_kept_the_most_severe_first():
    fixture = yaml.safe_load((AUDIT / "fixtures" / "WEB-01.yaml").read_text())["bad"]
    context = {**CONTEXT, **fixture.pop("context", {})}
    found = kept.findings(extract("control1", document(fixture), context))
    assert "WEB-01" in [one.rule for one in found]
    ranks = [rules.Severity(one.severity).rank for one in found]
    assert ranks == sorted(ranks, reverse=True)
    assert all(one.sentence and one.advice for one in found)
    assert kept.findings(extract("control1", document(), CONTEXT)) == ()


@pytest.mark.processes
def test_a_service_that_is_no_keystone_of_this_machine_keeps_no_facts():
    with known_service() as known:
        here = kept.audited(NamedTarget(), Endpoint.parse(known.url))
    elsewhere = kept.audited(NamedTarget(), Endpoint.parse("http://192.0.2.1:5000/v3"))
    assert here == elsewhere == kept.Kept()
