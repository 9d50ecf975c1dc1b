"""Every rule, against a node that is as it should be and one that is not."""

import pytest
import yaml
from audited import AUDIT, CONTEXT, document

from loadstone.audit import rule as rules
from loadstone.audit.evaluate import RuleState, evaluate
from loadstone.audit.extract import extract

FIXTURES = AUDIT / "fixtures"


def judged(rule, changes):
    changes = dict(changes)
    context = {**CONTEXT, **changes.pop("context", {})}
    (result,) = evaluate([rule], [extract("control1", document(changes), context)]).results
    return result


def fixtures(kind):
    """Return each rule with its good or bad changes; a fixture may have a list of them."""
    found = []
    for rule in rules.every():
        changes = yaml.safe_load((FIXTURES / f"{rule.id}.yaml").read_text())[kind]
        every = changes if isinstance(changes, list) else [changes]
        found += [pytest.param(rule, one, id=f"{rule.id}-{n}") for n, one in enumerate(every)]
    return found


@pytest.mark.parametrize(("rule", "changes"), fixtures("good"))
def test_the_good_fixture_passes(rule, changes):
    result = judged(rule, changes)
    assert (result.state, result.message) == (RuleState.PASS, rule.title)


@pytest.mark.parametrize(("rule", "changes"), fixtures("bad"))
def test_the_bad_fixture_is_found(rule, changes):
    result = judged(rule, changes)
    expected = RuleState.WARN if rule.severity is rules.Severity.INFO else RuleState.FAIL
    if rule.critical_if and result.severity is rules.Severity.CRITICAL:
        expected = RuleState.FAIL
    assert result.state is expected, result.message
    assert result.severity.rank >= rule.severity.rank
    assert "{" not in result.message
    assert result.message != rule.title


def test_every_fixture_belongs_to_a_rule():
    assert {path.stem for path in FIXTURES.iterdir()} == {rule.id for rule in rules.every()}


def test_a_healthy_node_has_no_finding():
    host = extract("control1", document(), CONTEXT)
    audit = evaluate(rules.select(()), [host])
    wrong = {RuleState.FAIL, RuleState.WARN, RuleState.UNKNOWN}
    assert [(r.rule.id, r.message) for r in audit.results if r.state in wrong] == []


@pytest.mark.parametrize(
    ("rule_id", "changes", "here", "elsewhere"),
    [
        ("DB-02", {"innodb_buffer_pool_size": "33554432"}, "the server has", "is not the server"),
        (
            "DB-04",
            {"wsrep_on": "ON", "wsrep_slave_threads": "1"},
            "on 8 CPUs",
            "on an unknown number of CPUs",
        ),
    ],
)
def test_cpus_and_memory_are_those_of_the_database_only_on_its_host(
    rule_id, changes, here, elsewhere
):
    of_database = {"service": {"database": {"variables": changes}}}
    server = {"processes": "700\t1\t60000\t9\t65536\tmariadbd\t/usr/sbin/mariadbd\n"}
    assert elsewhere in judged(rules.find(rule_id), of_database).message
    assert here in judged(rules.find(rule_id), {**of_database, **server}).message


@pytest.mark.parametrize(
    ("rule_id", "line"), [("KS-01", 3), ("KS-12", 5), ("KS-13", 7), ("MC-04", 10)]
)
def test_the_line_of_a_finding_is_the_setting_that_breaks_the_rule(rule_id, line):
    conf = """[cache]
enabled = true
backend = dogpile.cache.null
[DEFAULT]
insecure_debug = true
[database]
connection_trace = true
[cache]
memcache_dead_retry = 45
memcache_socket_timeout = 3
"""
    if rule_id == "MC-04":
        conf = conf.replace("dogpile.cache.null", "oslo_cache.memcache_pool")
    result = judged(rules.find(rule_id), {"keystone": {"/etc/k.conf": conf}})
    assert result.state is RuleState.FAIL
    assert (result.origin.path, result.origin.line) == ("/etc/k.conf", line)


@pytest.mark.parametrize(("cache", "line"), [("[cache]\nenabled = true\n", 4), ("", 1)])
def test_the_line_of_an_unset_setting_is_one_of_its_group_or_the_first(cache, line):
    conf = f"[DEFAULT]\ndebug = false\n{cache}"
    result = judged(rules.find("KS-01"), {"keystone": {"/etc/k.conf": conf}})
    assert result.state is RuleState.FAIL, result.message
    assert result.origin.line == line
