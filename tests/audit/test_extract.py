"""Documents that no collector has printed cost their own host, and no other."""

import json
from random import Random

import pytest
from audited import CONTEXT, document

from loadstone.audit import data
from loadstone.audit import rule as rules
from loadstone.audit.document import Document
from loadstone.audit.evaluate import RuleState, evaluate
from loadstone.audit.extract import extract
from loadstone.audit.views import browbeat, fix_playbook, junit, markdown, sarif, textfile

VIEWS = (sarif, junit, markdown, textfile, browbeat, fix_playbook)
ODD = (None, [], {}, "x", -1, 10**400, 1e308, float("nan"), True, [1, None], "9" * 400, "nan", "²")
HEALTHY = document().sections


def judged(sections):
    """Judge a host with these sections beside a healthy one, and write all formats."""
    context = {**CONTEXT, "audit.rate_per_s": 10.0, "audit.service_s": 0.1}
    hosts = [extract("odd", Document(sections), context), extract("good", document(), context)]
    audit = evaluate(rules.select(("refarch",)), hosts)
    json.dumps(data.as_tree(audit, rules.Severity.CRITICAL, 0), allow_nan=False)
    for view in VIEWS:
        view.render(audit)
    return audit


def other(value, random):
    """Return JSON with some of its values replaced by odd ones."""
    if random.random() < 0.12:
        return random.choice(ODD)
    if isinstance(value, dict):
        return {key: other(one, random) for key, one in value.items()}
    return [other(one, random) for one in value] if isinstance(value, list) else value


def damaged(text, random):
    signs = list(text)
    for _ in range(len(signs) // 20 + 1):
        place = random.randrange(len(signs) + 1)
        signs[place : place + 1] = random.choice("0 \t\n=[]@!:/\\%é²-\x1b")
    return "".join(signs)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(8))
def test_damaged_documents_end_no_audit_and_change_nothing_for_others(seed):
    random = Random(seed)
    for _ in range(20):
        sections = {
            name: text if random.random() < 0.6 else damaged(text, random)
            for name, text in HEALTHY.items()
        }
        if random.random() < 0.5:
            sections["service"] = json.dumps(other(json.loads(HEALTHY["service"]), random))
        audit = judged(sections)
        states = {
            r.state for r in audit.results if r.host == "good" and "hosts." not in r.rule.check
        }
        assert RuleState.UNKNOWN not in states


def test_a_number_that_no_host_has_makes_the_host_unknown():
    service = json.loads(HEALTHY["service"])
    service["password"]["verify_ms"] = float("nan")
    audit = judged({**HEALTHY, "service": json.dumps(service)})
    [row] = [r for r in audit.results if r.host == "odd"]
    assert (row.rule.id, row.state) == ("HOST-00", RuleState.UNKNOWN)
    assert "keystone.password_check_ms is not a number" in row.message


def test_control_characters_of_a_host_reach_no_terminal():
    conf = {"keystone": {"/etc/k\x1b[31m.conf": "[token]\nprovider = \x1b]0;owned\x07\n"}}
    host = extract("a", document(conf), CONTEXT)
    assert "\x1b" not in repr(sorted(host.facts.values.items())) + repr(host.facts.origins)
    assert host.facts.values["conf.token.provider"] == "?]0;owned?"


def test_variables_in_files_of_apache_are_unknown_and_leave_the_rest_known():
    apache = (
        "WSGIDaemonProcess keystone processes=${WORKERS} threads=2\nWSGIProcessGroup keystone\n"
    )
    running = "900\t1\t60000\t1\t65536\tapache2\t/usr/sbin/apache2\n"
    changes = {"apache": {"/etc/apache2/keystone.conf": apache}, "processes": running, "uwsgi": {}}
    facts = extract("a", document(changes), CONTEXT).facts
    assert facts.values["web.threads"] == 2
    assert "processes=${WORKERS}" in facts.missing["web.processes"]


def test_what_the_slow_programs_did_not_let_end_leaves_the_rest_known():
    """The Python part prints twice; a time-out cuts the second line off, or keeps it away."""
    service = json.loads(HEALTHY["service"])
    slow = {name: service.pop(name) for name in ("doctor", "validator")}
    first = json.dumps(service)
    for second in ("", json.dumps({**service, **slow})[:-9]):
        document_ = Document({**HEALTHY, "service": f"{first}\n{second}"})
        facts = extract("a", document_, CONTEXT).facts
        assert facts.values["db.max_connections"] == 1000
        assert "did not end in time" in facts.missing["keystone.symptoms"]
    whole = f"{first}\n{json.dumps({**service, **slow})}\n"
    facts = extract("a", Document({**HEALTHY, "service": whole}), CONTEXT).facts
    assert facts.values["keystone.symptoms"] == ()


@pytest.mark.parametrize(
    ("system", "said"),
    [
        ("ntp=no\n", "not synchronised"),
        ("ntp=yes\n", "synchronised"),
        ("leap=Normal\noffset=2.5\n", "synchronised, 2.5 s off"),
        ("leap=Not synchronised\n", "not synchronised"),
    ],
)
def test_the_clock_is_described_by_what_is_known_of_it(system, said):
    facts = extract("a", document({"system": system}), CONTEXT).facts
    assert facts.values["host.clock"] == said


def test_settings_are_read_as_oslo_config_reads_them():
    conf = """[token]
provider : "fernet"
expiration = '7200'
[cache]
enabled = "true"
backend: oslo_cache.memcache_pool
backend_argument = url:10.0.0.1:11211,10.0.0.2:11211
backend_argument = distributed_lock:True
memcache_servers = 10.0.0.3:11211,
  10.0.0.4:11211
"""
    facts = extract("a", document({"keystone": {"/etc/k.conf": conf}}), CONTEXT).facts.values
    assert facts["conf.token.provider"] == "fernet"
    assert facts["conf.token.expiration"] == 7200
    assert facts["conf.cache.enabled"] is True
    assert facts["conf.cache.backend"] == "oslo_cache.memcache_pool"
    assert facts["conf.cache_servers"] == ("10.0.0.1:11211", "10.0.0.2:11211")
    assert facts["conf.cache.memcache_servers"] == ("10.0.0.3:11211", "10.0.0.4:11211")


def test_sections_have_any_case_but_default():
    conf = "[Token]\nexpiration = 60\n[DATABASE]\nmax_pool_size = 9\n[default]\ndebug = true\n"
    facts = extract("a", document({"keystone": {"/etc/k.conf": conf}}), CONTEXT).facts
    assert facts.values["conf.token.expiration"] == 60
    assert facts.origins["conf.token.expiration"].line == 2
    assert facts.values["conf.database.max_pool_size"] == 9
    assert facts.values["conf.DEFAULT.debug"] is False


def test_older_names_of_options_count_where_the_newer_are_not_set():
    older = "[assignment]\nlist_limit = 500\ncaching = false\n[profiler]\nprofiler_enabled = true\n"
    facts = extract("a", document({"keystone": {"/etc/k.conf": older}}), CONTEXT).facts
    assert facts.values["conf.resource.list_limit"] == 500
    assert facts.origins["conf.resource.list_limit"].line == 2
    assert facts.values["conf.caching_off"] == ("resource", "assignment")
    assert facts.values["conf.profiler.enabled"] is True
    both = f"{older}[resource]\nlist_limit = 100\ncaching = true\n"
    facts = extract("a", document({"keystone": {"/etc/k.conf": both}}), CONTEXT).facts
    assert facts.values["conf.resource.list_limit"] == 100
    assert facts.values["conf.caching_off"] == ("assignment",)


def test_names_of_other_options_are_replaced_by_their_values():
    conf = (
        "[DEFAULT]\ndebug = ${wsgi.debug_middleware}\nmost = 7\n"
        "[database]\nmax_pool_size = $most\nmax_overflow = $max_pool_size\n"
        "[cache]\nexpiration_time = $token.expiration\n"
        r"memcache_servers = a$$b,a\$b,$unknown" + "\n"
        "[wsgi]\ndebug_middleware = true\n"
    )
    facts = extract("a", document({"keystone": {"/etc/k.conf": conf}}), CONTEXT).facts.values
    assert facts["conf.DEFAULT.debug"] is True
    assert facts["conf.database.max_pool_size"] == 7
    assert facts["conf.cache.expiration_time"] == 3600  # the default of [token] expiration
    assert facts["conf.cache.memcache_servers"] == ("a$b", "a$b", "$unknown")


def test_each_line_of_notification_opt_out_counts():
    conf = "[DEFAULT]\nnotification_opt_out = a\nnotification_opt_out = b\n"
    facts = extract("a", document({"keystone": {"/etc/k.conf": conf}}), CONTEXT).facts.values
    assert facts["conf.DEFAULT.notification_opt_out"] == ("a", "b")


@pytest.mark.parametrize(
    ("drivers", "sent_to", "state"),
    [
        (("messagingv2", "noop"), "messagingv2", RuleState.FAIL),
        (("messagingv2", "log"), "messagingv2, log", RuleState.FAIL),
        (("noop", "noop"), "noop", RuleState.PASS),
    ],
)
def test_each_driver_of_notifications_counts(drivers, sent_to, state):
    lines = "".join(f"driver = {driver}\n" for driver in drivers)
    conf = f"[DEFAULT]\nnotification_opt_out = a\n[oslo_messaging_notifications]\n{lines}"
    host = extract("a", document({"keystone": {"/etc/k.conf": conf}}), CONTEXT)
    assert host.facts.values["conf.oslo_messaging_notifications.driver"] == sent_to
    (result,) = evaluate([rules.find("KS-16")], [host]).results
    assert result.state is state


CLOSED = "cannot be read by uid 1000"


@pytest.mark.parametrize(
    ("rule", "changes", "reason"),
    [
        ("CAP-02", {"service": {"database": {"error": "no driver"}}}, "no driver"),
        ("KS-06", {"fernet": f"! /etc/keystone/fernet-keys {CLOSED}\n"}, CLOSED),
        ("KS-06", {"fernet": "@ /keys 700 0\n0 600 0 90 -\n7 600 0 90 aa\n"}, "show no period"),
        ("KS-24", {"consumers": f"@ /etc/nova/nova.conf\n! {CLOSED}\n"}, CLOSED),
        ("RA-12", {"cron": f"! the cron jobs of user keystone {CLOSED}\n"}, CLOSED),
        ("MC-02", {"service": {"memcached": {"error": "timed out"}}}, "timed out"),
    ],
)
def test_a_rule_whose_facts_cannot_be_read_is_unknown(rule, changes, reason):
    result = judged_rule(rule, changes)
    assert (result.state, reason in result.message) == (RuleState.UNKNOWN, True)


@pytest.mark.parametrize("rule", ["LB-02", "LB-03", "DB-06"])
def test_a_balancer_whose_file_cannot_be_read_is_unknown(rule):
    running = "950\t1\t9000\t1\t65536\thaproxy\thaproxy\t-f\t/etc/haproxy.cfg\n"
    changes = {"processes": running, "haproxy": f"@ /etc/haproxy.cfg\n! {CLOSED}\n"}
    assert judged_rule(rule, changes).state is RuleState.UNKNOWN


def test_keys_that_were_never_rotated_have_no_period_to_check():
    assert judged_rule("KS-06", {}).state is RuleState.SKIP


def test_what_is_wrong_in_one_file_is_told_though_another_cannot_be_read():
    text = f"@ /etc/nova/nova.conf\n! {CLOSED}\n@ /etc/heat/heat.conf\n1\ttoken_cache_time = 5\n"
    result = judged_rule("KS-24", {"consumers": text})
    assert result.state is RuleState.FAIL
    assert "/etc/heat/heat.conf" in result.message


def judged_rule(rule, changes):
    host = extract("a", document(changes), CONTEXT)
    (result,) = evaluate([rules.find(rule)], [host]).results
    return result


@pytest.mark.parametrize(
    ("quota", "cpus", "logins_per_s"),
    [
        ("200000 100000", 2, 10.0),
        ("150000 100000", 2, 7.5),
        ("max 100000", 64, 40.0),
        ("-1 100000", 64, 40.0),
        ("", 64, 40.0),
    ],
)
def test_the_limits_of_a_container_count_for_its_processors(quota, cpus, logins_per_s):
    changes = {
        "cpu": {"cpus": 64, "allowed": "0-63", "quota": quota},
        "service": {"password": {"verify_ms": 200.0}},
    }
    facts = extract("a", document(changes), CONTEXT).facts
    assert facts.values["host.cpus"] == cpus
    assert facts.values["capacity.logins_per_s"] == pytest.approx(logins_per_s)


@pytest.mark.parametrize(("threads", "logins_per_s"), [(1, 10.0), (3, 30.0), (40, 320.0)])
def test_threads_of_one_process_check_passwords_side_by_side(threads, logins_per_s):
    ini = f"[uwsgi]\nmodule = keystone.server.wsgi\nprocesses = 2\nthreads = {threads}\n"
    changes = {
        "cpu": {"cpus": 64, "allowed": "0-63"},
        "uwsgi": {"/etc/keystone/uwsgi.ini": ini},
        "service": {"password": {"verify_ms": 200.0}},
    }
    facts = extract("a", document(changes), CONTEXT).facts
    assert facts.values["capacity.logins_per_s"] == pytest.approx(logins_per_s)


def test_processors_outside_a_cpuset_do_not_count():
    facts = extract("a", document({"cpu": {"cpus": 64, "allowed": "0-2,8"}}), CONTEXT).facts
    assert facts.values["host.cpus"] == 4
    facts = extract("a", document({"cpu": {"cpus": 64, "allowed": ""}}), CONTEXT).facts
    assert facts.values["host.cpus"] == 64


def test_the_limit_of_a_container_counts_for_its_memory():
    machine = "MemTotal: 64000000 kB\nMemAvailable: 60000000 kB\n"
    limited = machine + "CgroupLimit: 1024000 kB\nCgroupUsed: 512000 kB\n"
    facts = extract("a", document({"memory": limited}), CONTEXT).facts.values
    assert (facts["host.memory_mb"], facts["host.available_mb"]) == (1000, 500)
    unlimited = machine + "CgroupLimit: 9007199254740988 kB\nCgroupUsed: 512000 kB\n"
    facts = extract("a", document({"memory": unlimited}), CONTEXT).facts.values
    assert (facts["host.memory_mb"], facts["host.available_mb"]) == (62500, 58593)


def of_domains(files, *settings):
    """Return changes of a node that has files of domains, and these settings of [identity]."""
    conf = "\n".join(("[identity]", *settings))
    return {"keystone": {"/etc/keystone/keystone.conf": conf}, "domains": files}


ENABLED = "domain_specific_drivers_enabled = true"


def test_the_file_of_a_domain_changes_only_its_directory():
    domain = "[token]\nprovider = uuid\n[identity]\ndriver = ldap\n[ldap]\nuse_pool = false\n"
    path = "/etc/keystone/domains/keystone.a.conf"
    facts = extract("a", document(of_domains({path: domain}, ENABLED)), CONTEXT).facts
    assert facts.values["conf.token.provider"] == "fernet"
    assert facts.values["conf.ldap.use_pool"] is False
    assert (facts.origins["conf.ldap.use_pool"].path, facts.values["conf.has_ldap"]) == (path, True)


def test_a_directory_that_no_driver_uses_does_not_count():
    left = {"keystone": {"/etc/k.conf": "[ldap]\nuse_pool = false\n"}}
    assert judged_rule("KS-22", left).state is RuleState.SKIP
    used = {"keystone": {"/etc/k.conf": "[identity]\ndriver = ldap\n[ldap]\nuse_pool = false\n"}}
    assert judged_rule("KS-22", used).state is RuleState.FAIL


def test_arguments_of_memcached_may_be_attached():
    seen = "700\t1\t60000\t9\t65536\tmemcached\tmemcached\t-m1024\t-c4096\n"
    changes = {"processes": seen, "service": {"memcached": {"error": "timed out"}}}
    facts = extract("a", document(changes), CONTEXT).facts.values
    assert (facts["memcached.memory_mb"], facts["memcached.max_connections"]) == (1024, 4096)


def test_the_file_of_a_domain_that_cannot_be_read_hides_only_the_directories():
    changes = of_domains(f"@ /etc/keystone/domains/keystone.a.conf\n! {CLOSED}\n", ENABLED)
    assert judged_rule("KS-22", changes).state is RuleState.UNKNOWN
    assert judged_rule("KS-05", changes).state is RuleState.PASS


@pytest.mark.parametrize(
    ("settings", "state"),
    [
        ((), RuleState.SKIP),
        (("domain_configurations_from_database = true",), RuleState.SKIP),
        ((ENABLED,), RuleState.FAIL),
        ((ENABLED, "domain_configurations_from_database = true"), RuleState.UNKNOWN),
    ],
)
def test_the_files_of_domains_count_only_where_keystone_reads_them(settings, state):
    files = {
        "/etc/keystone/domains/keystone.a.conf": "[identity]\ndriver = ldap\n"
        "[ldap]\nuse_pool = false\n"
    }
    assert judged_rule("KS-22", of_domains(files, *settings)).state is state


@pytest.mark.parametrize(("version", "state"), [("26.1.0", RuleState.FAIL), ("27.0.0", "skip")])
def test_keystone_itself_limits_lists_since_27(version, state):
    service = {"versions": {"keystone": version}, "database": {"users": 20000}}
    assert judged_rule("KS-11", {"service": service}).state == state
