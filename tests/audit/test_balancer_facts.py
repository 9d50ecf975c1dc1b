"""Facts of a haproxy that balances Keystone and other services."""

import pytest
from audited import CONTEXT, document

from loadstone.audit.extract import extract

RUNNING = "950\t1\t9000\t1\t65536\thaproxy\thaproxy\t-f\t/etc/haproxy/haproxy.cfg\n"
TWO_DEFAULTS = """global
 maxconn 40000
defaults http
 maxconn 10000
frontend identity
 bind *:5000
 default_backend keystone
backend keystone
 server a 10.0.0.1:5000 check
defaults tcp
 maxconn 2000
 balance source
 option httpchk
listen galera
 server a 10.0.0.1:3306 check
"""
STATISTICS = """global
 maxconn 40000
defaults
 maxconn 10000
listen stats
 maxconn 10
 bind *:1984
listen keystone_external
 server a 10.0.0.1:5000 check
"""


def facts_of(text):
    changes = {"processes": RUNNING, "haproxy": {"/etc/haproxy/haproxy.cfg": text}}
    return extract("a", document(changes), CONTEXT).facts


def test_a_section_starts_from_the_defaults_before_it():
    facts = facts_of(TWO_DEFAULTS)
    assert facts.values["haproxy.frontend_maxconn"] == 10000
    assert facts.values["haproxy.default_maxconn"] == 10000
    assert facts.values["haproxy.balance"] == "roundrobin"
    assert facts.values["haproxy.has_http_check"] is False
    assert facts.values["haproxy.database_maxconn"] == 2000
    assert facts.origins["haproxy.frontend_maxconn"].line == 4


def test_a_section_starts_from_the_defaults_that_it_names():
    text = TWO_DEFAULTS.replace("frontend identity", "frontend other")
    text = text.replace("default_backend keystone", "default_backend horizon")
    text += "listen keystone_admin from http\n server a 10.0.0.1:35357\n"
    assert facts_of(text).values["haproxy.frontend_maxconn"] == 10000


def test_the_limit_of_a_page_of_statistics_is_none_of_keystones():
    facts = facts_of(STATISTICS)
    assert facts.values["haproxy.frontend_maxconn"] == 10000
    assert facts.values["haproxy.default_maxconn"] == 10000
    assert facts.values["haproxy.frontends_sum"] == 10


def test_servers_of_other_kinds_of_sections_are_none_of_keystones():
    text = STATISTICS + " option httpchk GET /healthcheck\n"
    assert facts_of(text).values["haproxy.has_http_check"] is True
    peers = "peers others\n server b 10.0.0.2:1024\n"
    assert facts_of(text + peers).values["haproxy.has_http_check"] is True


TWO_DATABASES = """listen mysql-read
 server a 10.0.0.1:3306 check
 server b 10.0.0.2:3306 check
listen mysql-write
 maxconn 3000
 server a 10.0.0.1:3306 check
 server b 10.0.0.2:3306 check backup
"""


def test_sections_of_the_database_that_serve_reads_have_no_writers():
    facts = facts_of(TWO_DATABASES)
    assert facts.values["haproxy.database_writers"] == 1
    assert facts.values["haproxy.database_maxconn"] == 3000
    both = TWO_DATABASES.replace(" backup", "")
    assert facts_of(both).values["haproxy.database_writers"] == 2
    assert facts_of(both).origins["haproxy.database_writers"].line == 4
    split = TWO_DATABASES.replace("-read", "_read_only").replace("-write", "_read_write")
    assert facts_of(split).values["haproxy.database_writers"] == 1
    assert facts_of(split).values["haproxy.database_maxconn"] == 3000


@pytest.mark.parametrize(
    ("first", "second", "others", "writers"),
    [
        ("check", "check", "", 2),
        ("check", "check backup", "", 1),
        ("check", "check disabled", "", 1),
        ("check weight 100", "check weight 0", "", 1),
        ("check", "check", " stick on dst\n stick-table type ip size 2\n", 1),
        ("check backup", "check backup", "", 1),  # haproxy uses the first of them
        ("check backup", "check backup", " option allbackups\n", 2),
        ("check", "check", " stick on src\n", 2),
    ],
)
def test_writers_are_the_servers_that_get_connections_at_the_same_time(
    first, second, others, writers
):
    text = f"listen galera\n{others} server a 10.0.0.1:3306 {first}\n"
    facts = facts_of(f"{text} server b 10.0.0.2:3306 {second}\n")
    assert facts.values["haproxy.database_writers"] == writers


TWO_KEYSTONES = """defaults
 option httpchk GET /healthcheck
backend keystone_public
 balance leastconn
 server a 10.0.0.1:5000 check maxconn 300
backend keystone_admin
 balance source
 server a 10.0.0.1:35357 maxconn 100
"""


def test_of_several_backends_of_keystone_the_worst_counts():
    facts = facts_of(TWO_KEYSTONES)
    assert facts.values["haproxy.balance"] == "source"
    assert facts.origins["haproxy.balance"].line == 7
    assert facts.values["haproxy.has_http_check"] is False
    assert facts.origins["haproxy.has_http_check"].line == 6
    assert facts.values["haproxy.server_maxconn"] == 100
    good = TWO_KEYSTONES.replace("source", "random(2)").replace("35357", "35357 check")
    assert facts_of(good).values["haproxy.balance"] == "leastconn"
    assert facts_of(good).values["haproxy.has_http_check"] is True


def test_an_algorithm_counts_without_its_parameters():
    text = TWO_KEYSTONES.replace("leastconn", "random(2)").replace("source", "random(2)")
    assert facts_of(text).values["haproxy.balance"] == "random"


def test_a_template_stands_for_all_of_its_servers():
    text = "listen keystone\n option httpchk\n server-template node 3 keystone:5000 maxconn 90"
    facts = facts_of(f"{text}\n")
    assert facts.values["haproxy.has_keystone"] is True
    assert facts.values["haproxy.server_maxconn"] == 90
    assert facts.values["haproxy.has_http_check"] is False
    assert facts_of(f"{text} check\n").values["haproxy.has_http_check"] is True
    for count, writers in (("3", 3), ("2-3", 2), ("$NODES", 1), ("1-999999999", 1000)):
        galera = f"listen galera\n server-template node {count} database:3306 check\n"
        assert facts_of(galera).values["haproxy.database_writers"] == writers
