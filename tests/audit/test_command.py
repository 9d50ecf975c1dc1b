"""`loadstone audit` on files of facts: exit codes, waivers, mistakes."""

import contextlib
import datetime as dt
import json
import os
import re
import shutil
import socket
import sqlite3
import ssl
import subprocess
import sys
import tempfile
import threading
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import click
import pytest
import yaml
from audited import document
from click.testing import CliRunner
from realistic import keystone

from loadstone.audit import archive, rule, transport
from loadstone.audit.document import parse
from loadstone.audit.evaluate import evaluate
from loadstone.audit.extract import extract
from loadstone.audit.facts import SettingOrigin
from loadstone.audit.readers import sections
from loadstone.audit.readers.schedule import longest_gap_s
from loadstone.audit.transport import COLLECTOR, Collected
from loadstone.audit.views import fix_playbook
from loadstone.cli import loadstone
from loadstone.errors import InvalidInput
from loadstone.lab import deployment
from loadstone.store.store import Store
from loadstone.study.read import builtin
from loadstone.system.certificates import Authority

DEBUG = {"keystone": {"/etc/keystone/keystone.conf": "[DEFAULT]\ndebug = true\n"}}
NO_LOGIN = {"service": {"database": {"error": "OperationalError: Access denied"}}}


@pytest.fixture
def facts(tmp_path):
    """Write a file of facts of one host with these changes; return its path."""

    def write(*changes, name="facts.json"):
        hosts = [Collected(f"control{n}", document(c)) for n, c in enumerate(changes, 1)]
        path = tmp_path / name
        path.write_text(json.dumps(archive.as_tree(hosts, is_lab=False)))
        return str(path)

    return write


def audit(*words):
    done = CliRunner().invoke(loadstone, ["audit", *words], standalone_mode=False)
    if done.exception:
        raise done.exception
    return done.return_value, done.stdout


def states(text):
    return {(r["host"], r["rule"]): r["state"] for r in json.loads(text)["results"]}


def test_a_healthy_node_ends_with_0(facts):
    code, text = audit(facts({}))
    assert code == 0
    assert "fail" not in text


def test_a_critical_finding_ends_with_1_and_others_when_asked(facts):
    debug = facts(DEBUG)  # without any cache, too
    assert audit(debug)[0] == 1
    assert audit(debug, "--rule", "KS-12")[0] == 0
    assert audit(debug, "--rule", "KS-12", "--fail-on", "warning")[0] == 1


def test_what_could_not_be_read_is_unknown_and_ends_with_4(facts):
    code, text = audit(facts(NO_LOGIN), "--json", "-")
    tree = json.loads(text)
    rows = {row["rule"]: row for row in tree["results"]}
    assert rows["CAP-02"]["state"] == "unknown"
    assert "Access denied" in rows["CAP-02"]["message"]
    assert rows["KS-21"]["state"] == "unknown"
    assert "Access denied" in rows["KS-21"]["message"]
    assert (code, tree["exit_code"]) == (4, 4)
    assert tree["summary"]["unknown"] >= 3


def test_two_nodes_must_have_the_same_keys(facts):
    keys = (
        "@ /etc/keystone/fernet-keys 700 0\n0 600 0 1795300000 -\n1 600 0 1795300000 0123456789ab\n"
    )
    _, text = audit(facts({}, {"fernet": keys}), "--rule", "KS-08", "--json", "-")
    assert states(text) == {("control1", "KS-08"): "fail", ("control2", "KS-08"): "fail"}
    assert "different keys on the 2 node(s)" in text


def test_connections_are_summed_over_all_nodes(facts):
    few = {"service": {"database": {"variables": {"max_connections": "25"}}}}
    assert audit(facts(few), "--rule", "CAP-02")[0] == 0  # 8 processes, 16 connections
    assert audit(facts(few, few), "--rule", "CAP-02")[0] == 1


def test_a_sum_over_nodes_is_unknown_while_one_of_them_cannot_be_reached(facts):
    path = Path(facts({}))
    tree = json.loads(path.read_text())
    tree["hosts"].append({"host": "control2", "failure": "no route to host"})
    path.write_text(json.dumps(tree))
    code, text = audit(str(path), "--rule", "CAP-02", "--json", "-")
    assert code == 4
    first, _ = json.loads(text)["results"]
    assert (first["host"], first["state"]) == ("control1", "unknown")
    assert "control2: no route to host" in first["message"]


def test_hosts_of_one_name_are_told_apart(tmp_path):
    """`loadstone audit collect` on each of them calls each of them localhost."""
    paths = []
    for number, name in enumerate(("control1", "control2", "control2")):
        one = Collected(transport.LOCAL, document({"meta": {"name": name}}))
        paths.append(tmp_path / f"{number}.json")
        paths[-1].write_text(json.dumps(archive.as_tree([one], is_lab=False)))
    words = (*map(str, paths), "--rule", "KS-12")
    tree = json.loads(audit(*words, "--json", "-")[1])
    names = ["control1", "control2", "control2 (2)"]
    assert [host["name"] for host in tree["hosts"]] == names
    assert [row["host"] for row in tree["results"]] == names
    assert audit(*words, "--all")[1].count("KS-12") == 3


def test_the_only_file_of_a_machine_that_calls_itself_localhost_keeps_that_name(tmp_path):
    """Waivers and the playbook of fixes name it so."""
    path = tmp_path / "facts.json"
    one = Collected(transport.LOCAL, document({"meta": {"name": "control1"}}))
    path.write_text(json.dumps(archive.as_tree([one], is_lab=False)))
    (host,) = json.loads(audit(str(path), "--json", "-")[1])["hosts"]
    assert host["name"] == "localhost"


def test_a_waiver_holds_until_it_expires(facts, tmp_path):
    waivers = tmp_path / "waivers.yaml"
    path = facts(DEBUG)
    today = dt.datetime.now().astimezone().date()

    def waived(expires, host="control*", before=()):
        rows = [
            {"rule": "ks-12", "host": host, "reason": "a test bed", "expires": day}
            for day in (*before, expires)
        ]
        waivers.write_text(re.sub(r'"(\d+-\d+-\d+)"', r"\1", json.dumps(rows)))
        words = (path, "--rule", "KS-12", "--waivers", str(waivers), "--json", "-")
        code, text = audit(*words, "--fail-on", "warning")
        (row,) = json.loads(text)["results"]
        return code, row["state"], row["message"]

    later, earlier = str(today + dt.timedelta(days=1)), str(today - dt.timedelta(days=1))
    assert waived(later)[:2] == (0, "waived")
    assert f"waived until {later}: a test bed" in waived(later)[2]
    assert waived(later, "compute*")[:2] == (1, "fail")
    assert waived(later, None)[:2] == (0, "waived")  # `host:` without a value
    assert waived(earlier)[:2] == (1, "fail")
    assert f"the waiver expired on {earlier}" in waived(earlier)[2]
    assert waived(later, before=(earlier,))[:2] == (0, "waived")  # renewed


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{}", "must be a list of waivers"),
        ("- {rule: KS-12, expires: 2027-01-01}", "waiver 1: reason is missing"),
        (
            "- {rule: KS-12, reason: x, expires: 2027-01-31 00:00:00}",
            "expires must be a date, as 2027-01-31, not",
        ),
        ("- {rule: KS-12, reason: a, expires: soon}", "expires must be a date"),
        (
            "- reason: a\n  expires: 2027-01-01\n  rule: KS-99",
            "waivers.yaml:3: waiver 1: no rule KS-99",
        ),
        ("- {rule: KS-12, reason: a, until: 2027-01-01}", "and nothing else"),
    ],
)
def test_a_mistake_in_a_waiver_is_told(facts, tmp_path, text, says):
    path = tmp_path / "waivers.yaml"
    path.write_text(text)
    with pytest.raises(InvalidInput, match=says):
        audit(facts({}), "--waivers", str(path))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "not JSON, or cut off"),
        ("[1]", "no facts in it"),
        ('{"loadstone_audit": 1, "hosts": []}', "no hosts in it"),
        ('{"loadstone_audit": 1, "hosts": [{"host": 3}]}', "every host needs"),
        ('{"loadstone_facts": 1, "sections": {}}', "not a complete document"),
        ('{"loadstone_facts": 7, "sections": {}, "complete": true}', "facts of format 7"),
    ],
)
def test_a_mistake_in_a_file_of_facts_is_told(tmp_path, text, says):
    path = tmp_path / "facts.json"
    path.write_text(text)
    with pytest.raises(InvalidInput, match=says) as told:
        audit(str(path))
    assert str(path) in str(told.value)


def test_other_mistakes_are_told(facts):
    with pytest.raises(InvalidInput, match="no pack 'all'; there is refarch"):
        audit(facts({}), "--pack", "all")
    with pytest.raises(InvalidInput, match="no rule XX-01; `loadstone audit rules` lists all"):
        audit(facts({}), "--rule", "XX-01")
    with pytest.raises(InvalidInput, match="not both"):
        audit(facts({}), "--host", "a")
    with pytest.raises(InvalidInput, match="--host -oX: is not the name of a host"):
        audit("--host", "-oX")


@pytest.mark.processes
def test_facts_are_collected_here_and_judged_there(tmp_path):
    path = tmp_path / "facts.json"
    audit("collect", "-o", str(path))
    judged = json.loads(audit(str(path), "--json", "-")[1])
    (host,) = judged["hosts"]
    assert host["failure"] is None
    assert host["facts"]["host.cpus"] >= 1


@pytest.mark.processes
def test_this_machine_is_read_as_root_where_asked(tmp_path, monkeypatch):
    sudo = tmp_path / "sudo"
    sudo.write_text(f'#!/bin/sh\nshift\necho "$@" >>{tmp_path}/used\nexec "$@"\n')
    sudo.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    audit("collect", "--become", "-o", str(tmp_path / "facts.json"))
    assert (tmp_path / "used").read_text() == "sh -s\n"
    for words in (("--docker", "keystone"), ("--lab", "demo")):
        with pytest.raises(
            click.UsageError, match="--become is for hosts over ssh and this machine"
        ):
            audit(*words, "--become")


@pytest.mark.processes
def test_become_in_a_configuration_file_is_for_the_hosts_that_it_applies_to(tmp_path, monkeypatch):
    (tmp_path / "config.toml").write_text("[audit.collect]\nbecome = true\n")
    monkeypatch.setenv("LOADSTONE_CONFIG", str(tmp_path / "config.toml"))
    monkeypatch.setenv("PATH", str(tmp_path))  # without docker
    (host,) = json.loads(audit("collect", "--docker", "keystone")[1])["hosts"]
    assert host["failure"].startswith("cannot run docker")


@pytest.mark.processes
def test_the_script_alone_gives_facts_that_are_read(tmp_path):
    _, script = audit("collect", "--script")
    assert script == COLLECTOR.read_text()
    (tmp_path / "collector.sh").write_text(script)
    variables = {"PATH": "/usr/bin:/bin", "AUDIT_NAME": "far", "AUDIT_ETC": str(tmp_path)}
    ended = subprocess.run(
        ["sh", "collector.sh"], cwd=tmp_path, env=variables, capture_output=True, check=True
    )
    path = tmp_path / "facts.json"
    path.write_bytes(ended.stdout)
    tree = json.loads(audit(str(path), "--json", "-")[1])
    assert tree["hosts"][0]["name"] == "far"
    assert ended.stderr == b""


@pytest.mark.processes
def test_a_memcached_without_a_port_is_asked_on_its_usual_one(tmp_path):
    conf = tmp_path / "keystone.conf"
    servers = ("127.0.0.99", "[::1]", "inet6:[::1]:1", "127.0.0.99:1")
    conf.write_text(
        f"[cache]\nbackend = oslo_cache.memcache_pool\nmemcache_servers = {','.join(servers)}\n"
    )
    variables = {"PATH": "/usr/bin:/bin", "AUDIT_ETC": str(tmp_path), "AUDIT_QUICK": "1"}
    variables |= {"AUDIT_KEYSTONE_CONF": str(conf), "AUDIT_PYTHON": sys.executable}
    ended = subprocess.run(
        ["sh", COLLECTOR], env=variables, capture_output=True, text=True, check=True
    )
    asked = json.loads(parse(ended.stdout).text("service"))["memcached"]["servers"]
    assert [one["name"] for one in asked] == list(servers)
    assert not [one for one in asked if "ValueError" in one.get("error", "")]


@pytest.mark.processes
def test_a_memcached_is_asked_over_tls_where_keystone_asks_it_so(tmp_path):
    authority = Authority.create("memcached")
    pem, ca = tmp_path / "memcached.pem", tmp_path / "ca.pem"
    pem.write_text(authority.issue("memcached", ("127.0.0.1",)).both)
    ca.write_text(authority.certificate)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pem)

    def serve(listening):
        link, _ = listening.accept()
        with contextlib.suppress(OSError), context.wrap_socket(link, server_side=True) as secure:
            while line := secure.recv(1024):
                secure.sendall(
                    b"STAT get_hits 7\r\nEND\r\n" if line == b"stats\r\n" else b"END\r\n"
                )

    with socket.create_server(("127.0.0.1", 0)) as listening:
        address = f"127.0.0.1:{listening.getsockname()[1]}"
        with_conf(
            tmp_path,
            "[cache]\nbackend = dogpile.cache.pymemcache\ntls_enabled = true\n"
            f"tls_cafile = {ca}\nmemcache_servers = {address}\n",
        )
        answering = threading.Thread(target=serve, args=(listening,), daemon=True)
        answering.start()
        values, _ = collected(tmp_path, AUDIT_QUICK="1")
        answering.join(30)
    assert (values["memcached.unreachable"], values["memcached.gets"]) == ((), 7)
    ca.unlink()  # as of a container of this host
    values, printed = collected(tmp_path, AUDIT_QUICK="1")
    assert "memcached.unreachable" not in values
    assert "FileNotFoundError" in printed


@pytest.mark.processes
def test_a_collector_of_root_that_takes_too_long_is_killed_as_root(tmp_path, monkeypatch):
    sudo = tmp_path / "sudo"
    sudo.write_text(
        '#!/bin/sh\nshift\n[ "$1" = sh ] && exec sleep 1000\n'
        f'echo "$@" >{tmp_path}/used\nexec "$@"\n'
    )
    sudo.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    asked = []

    def refuse(group, _signal):
        asked.append(group)
        raise PermissionError

    monkeypatch.setattr(os, "killpg", refuse)
    (slow,) = transport.collect([transport.local(become=True)], timeout_s=1)
    assert slow.failure == "no complete answer within 1 s"
    assert (tmp_path / "used").read_text() == f"kill -KILL -- -{asked[-1]}\n"


@pytest.mark.processes
def test_a_process_that_has_ended_but_is_not_reaped_does_not_count(tmp_path):
    program = tmp_path / "uwsgi"
    shutil.copy(shutil.which("true"), program)
    with subprocess.Popen([program, "keystone-of-this-test"]) as ended:
        os.waitid(os.P_PID, ended.pid, os.WEXITED | os.WNOWAIT)  # it stays as a zombie
        variables = {"PATH": "/usr/bin:/bin", "AUDIT_ETC": str(tmp_path), "AUDIT_PYTHON": "/none"}
        collector = subprocess.run(
            ["sh", COLLECTOR], env=variables, capture_output=True, text=True, check=True
        )
    assert collector.stderr == ""
    table = json.loads(collector.stdout)["sections"]["processes"]
    assert f"{ended.pid}\t" not in table


@pytest.mark.processes
def test_the_tools_of_busybox_are_enough_for_the_collector(tmp_path):
    busybox = shutil.which("busybox")
    if busybox is None and "CI" not in os.environ:
        pytest.skip("apt-get install busybox")
    (tmp_path / "tools").mkdir()
    (tmp_path / "keystone").mkdir()
    (tmp_path / "keystone" / "keystone.conf").write_text("[token]\nprovider = jws\n")
    subprocess.run([busybox, "--install", "-s", tmp_path / "tools"], check=True)
    variables = {"AUDIT_ETC": str(tmp_path), "AUDIT_PYTHON": "/none"}

    def facts(shell, tools):
        command = [shell, COLLECTOR]
        ended = subprocess.run(
            command, env={**variables, "PATH": tools}, capture_output=True, text=True, check=True
        )
        assert ended.stderr == ""
        return extract("a", parse(ended.stdout), {}).facts.values

    def names(values):
        return {name for name in values if name.startswith(("host.", "conf.", "cron."))}

    before = facts("sh", "/usr/bin:/bin")
    small = facts(tmp_path / "tools" / "sh", str(tmp_path / "tools"))
    after = facts("sh", "/usr/bin:/bin")  # some facts come and go while other tests run
    assert small["conf.token.provider"] == "jws"
    assert names(before) & names(after) <= names(small) <= names(before) | names(after)


@pytest.mark.processes
def test_the_collector_drops_secrets_and_comments(tmp_path):
    keystone = tmp_path / "keystone"
    keystone.mkdir()
    secret = "s3cr3t-that-must-not-leave"
    (keystone / "keystone.conf").write_text(
        f"""[DEFAULT]
# connection = mysql://u:{secret}@d/k
admin_token = {secret}
transport_url = rabbit://u:{secret}@r:5672/
[database]
connection = mysql+pymysql://keystone:{secret}@db/keystone
slave_connection: mysql+pymysql://keystone:{secret}@db/keystone
[cache]
backend_argument = url:redis://:{secret}@r:6379
backend_argument = password:{secret}
backend_argument: "username:{secret}"
backend_argument = url:redis://:pa/{secret}@r:6379
backend_argument = url:redis://:p@{secret}@r:6379
memcache_password={secret}
[identity]
driver = ldap
[ldap]
password = first
  {secret}
url = ldap://reader:{secret}@d
tls_req_cert = never
[memcache]
memcache_secret_key = {secret}
[profiler]
hmac_keys = {secret}
connection_string = redis://:{secret}@r:6379
[identity]
password_hash_rounds = 12
  admin_token = {secret}
"""
    )
    (tmp_path / "nova").mkdir()
    (tmp_path / "nova" / "nova.conf").write_text(
        f"[keystone_authtoken]\nauth_url = http://k:5000\npassword = {secret}\n"
        "memcached_servers = a:11211\n"
    )
    variables = {"PATH": "/usr/bin:/bin", "AUDIT_ETC": str(tmp_path), "AUDIT_PYTHON": "/none"}
    ended = subprocess.run(["sh", COLLECTOR], env=variables, capture_output=True, check=True)
    text = ended.stdout.decode()
    assert secret not in text
    assert "mysql+pymysql://***" in text
    assert "password_hash_rounds = 12" in text
    assert "tls_req_cert = never" in text
    assert "memcached_servers = a:11211" in text


def collected(etc, **variables):
    """Return the facts of a host with these files, and all that the collector printed."""
    settings = {"PATH": "/usr/bin:/bin", "AUDIT_ETC": str(etc), "AUDIT_PYTHON": sys.executable}
    # No process counts, and neither do the jobs of this machine.
    settings |= {"AUDIT_PIDS": "0", **variables}
    ended = subprocess.run(
        ["sh", COLLECTOR], env=settings, capture_output=True, text=True, check=True
    )
    return extract("a", parse(ended.stdout), {}).facts.values, ended.stdout


def with_conf(etc, text):
    (etc / "keystone").mkdir()
    (etc / "keystone" / "keystone.conf").write_text(text)


@pytest.mark.processes
def test_a_broker_that_cannot_be_reached_is_told_without_its_password(tmp_path):
    secret = "s3cr3t-that-must-not-leave"
    with socket.create_server(("127.0.0.1", 0)) as alive, socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))  # does not listen
        ports = [one.getsockname()[1] for one in (alive, bound)]
        servers = ",".join(f"u:{secret}@127.0.0.1:{port}" for port in ports)
        text = f"[DEFAULT]\ntransport_url = rabbit://{servers}/v\n"
        text += "[oslo_messaging_notifications]\ndriver = messagingv2\ndriver = noop\n"
        with_conf(tmp_path, text)
        values, printed = collected(tmp_path)
    (unreachable,) = values["messaging.unreachable"]
    assert unreachable.startswith(f"127.0.0.1:{ports[1]} (ConnectionRefusedError")
    assert secret not in printed


@pytest.mark.parametrize(
    "url",
    [
        "rabbit://u:pa,s3cr3t@127.0.0.1:1/",
        "rabbit://u:s3cr3t,pa@127.0.0.1:1/",
        "rabbit://u:pa/s3cr3t@127.0.0.1:1/",
        "rabbit://u:s3cr3t@pa@127.0.0.1:1/",
    ],
)
def test_a_transport_url_that_is_not_understood_is_not_printed(tmp_path, url):
    text = f"[DEFAULT]\ntransport_url = {url}\n"
    with_conf(tmp_path, text + "[oslo_messaging_notifications]\ndriver = messagingv2\n")
    values, printed = collected(tmp_path)
    assert "s3cr3t" not in printed
    assert "messaging.unreachable" not in values


@pytest.mark.processes
def test_a_python_that_does_not_run_keystone_is_named_with_the_package_that_it_lacks(tmp_path):
    with_conf(tmp_path, "[database]\nconnection = mysql+pymysql://u:p@127.0.0.1/k\n")
    without_packages = tmp_path / "python"
    without_packages.write_text(f'#!/bin/sh\nexec {sys.executable} -I -S "$@"\n')
    without_packages.chmod(0o755)
    _, printed = collected(tmp_path, AUDIT_PYTHON=str(without_packages))
    assert "has no package sqlalchemy: is it the Python that runs Keystone?" in printed
    assert "ModuleNotFoundError" not in printed


def test_an_audit_of_this_machine_names_the_running_labs(monkeypatch):
    lab = SimpleNamespace(name="demo", is_running=True)
    stopped = SimpleNamespace(name="old", is_running=False)
    monkeypatch.setattr(deployment, "every", lambda: (lab, stopped))
    monkeypatch.setattr(transport, "collect", lambda _hosts, _timeout_s: ())
    done = CliRunner().invoke(loadstone, ["audit"], standalone_mode=False)
    assert done.stderr.count("loadstone audit --lab demo") == 1
    assert "old" not in done.stderr


@pytest.mark.parametrize("name", ["-x", "--kubeconfig=/tmp/a/b", "-"])
def test_a_pod_whose_name_would_be_an_option_of_kubectl_is_refused(name):
    done = CliRunner().invoke(loadstone, ["audit", f"--kubectl={name}"], standalone_mode=False)
    assert isinstance(done.exception, InvalidInput)
    assert str(done.exception) == f"--kubectl {name}: a pod's name does not begin with -"


@pytest.mark.processes
def test_no_broker_is_asked_for_where_no_notification_is_sent(tmp_path):
    with_conf(tmp_path, "[DEFAULT]\ntransport_url = rabbit://u:p@127.0.0.1:1/\n")
    values, _ = collected(tmp_path)
    assert "messaging.unreachable" not in values


@pytest.fixture
def closed_etc():
    """A folder in place of /etc whose files of nova and cinder another user may not read."""
    with tempfile.TemporaryDirectory() as name:
        etc = Path(name)
        etc.chmod(0o755)
        for service, conf in (("nova", 0o000), ("cinder", 0o644), ("ssl", 0o000)):
            (etc / service).mkdir()
            (etc / service / f"{service}.conf").write_text("[keystone_authtoken]\n")
            (etc / service / f"{service}.conf").chmod(conf)
        (etc / "cinder").chmod(0o000)
        yield etc
        (etc / "cinder").chmod(0o755)


@pytest.mark.processes
def test_files_of_services_that_this_user_may_not_read_are_told(closed_etc):
    ended = subprocess.run(
        ["sh", "-s"],
        input=COLLECTOR.read_text(),
        env={"PATH": "/usr/bin:/bin", "AUDIT_ETC": str(closed_etc), "AUDIT_PYTHON": "/none"},
        capture_output=True,
        text=True,
        check=True,
        cwd="/",
        **({"user": 65534, "group": 65534, "extra_groups": []} if os.getuid() == 0 else {}),
    )
    host = extract("a", parse(ended.stdout), {})
    assert ended.stderr == ""
    assert "consumer" in host.facts.roles
    why = host.facts.missing["consumers."]
    assert why.startswith(f"{closed_etc}/nova/nova.conf cannot be read by uid")
    assert "ssl.conf" not in ended.stdout
    assert "cinder/cinder.conf" in ended.stdout


@pytest.mark.processes
@pytest.mark.parametrize(
    "files",
    [
        {
            "cpu.max": "50000 100000",
            "memory.max": str(300 * 2**20),
            "memory.current": str(250 * 2**20),
            "memory.stat": f"anon 1\ninactive_file {100 * 2**20}\n",
        },
        {
            "cpu/cpu.cfs_quota_us": "50000",
            "cpu/cpu.cfs_period_us": "100000",
            "memory/memory.limit_in_bytes": str(300 * 2**20),
            "memory/memory.usage_in_bytes": str(250 * 2**20),
            "memory/memory.stat": f"total_inactive_file {100 * 2**20}\n",
        },
    ],
    ids=["cgroup v2", "cgroup v1"],
)
def test_the_limits_of_a_control_group_are_read(tmp_path, files):
    for name, text in files.items():
        path = tmp_path / "cgroup" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{text}\n")
    values, _ = collected(tmp_path, AUDIT_CGROUPS=str(tmp_path / "cgroup"), AUDIT_QUICK="1")
    assert (values["host.cpus"], values["host.cpu_quota"]) == (1, 0.5)
    assert (values["host.memory_mb"], values["host.available_mb"]) == (300, 150)


@pytest.mark.processes
def test_a_service_that_names_no_keystone_validates_no_tokens(tmp_path):
    for name, text in (("aodh", ""), ("heat", "auth_type: password\n")):
        (tmp_path / name).mkdir()
        sample = f"[keystone_authtoken]\n# memcached_servers = a\n{text}[other]\nauth_url = x\n"
        (tmp_path / name / f"{name}.conf").write_text(sample)
    values, _ = collected(tmp_path, AUDIT_QUICK="1")
    assert values["consumers.without_memcached"] == (f"{tmp_path}/heat/heat.conf",)


@pytest.mark.processes
@pytest.mark.parametrize(
    ("environment", "provider"),
    [
        ({"OS_KEYSTONE_CONFIG_FILES": "{0}/b.conf;{0}/a.conf"}, "a"),
        ({"OS_KEYSTONE_CONFIG_FILES": "{0}/a.conf;{0}/b.conf"}, "b"),
        ({"OS_KEYSTONE_CONFIG_DIR": "{0}"}, "of the folder"),
        ({"OS_KEYSTONE_CONFIG_DIR": "{0}", "OS_KEYSTONE_CONFIG_FILES": "b.conf; a.conf"}, "a"),
    ],
)
def test_keystones_environment_names_its_files_in_their_order(tmp_path, environment, provider):
    for name, text in (("a", "a"), ("b", "b"), ("keystone", "of the folder")):
        (tmp_path / f"{name}.conf").write_text(f"[token]\nprovider = {text}\n")
    program = tmp_path / "uwsgi"
    shutil.copy(shutil.which("sh"), program)
    variables = {name: text.format(tmp_path) for name, text in environment.items()}
    words = [program, "-c", "read x", "keystone"]
    with subprocess.Popen(words, stdin=subprocess.PIPE, env=variables) as running:
        values, _ = collected(tmp_path, AUDIT_PIDS=str(running.pid), AUDIT_QUICK="1")
        running.stdin.close()
    assert values["conf.token.provider"] == provider


@pytest.mark.processes
def test_settings_of_the_environment_count_more_than_files(tmp_path):
    keys = tmp_path / "keys"
    keys.mkdir()
    (keys / "0").write_text("key")
    with_conf(tmp_path, "[token]\nexpiration = 60\n[DEFAULT]\ndebug = true\n")
    program = tmp_path / "uwsgi"
    shutil.copy(shutil.which("sh"), program)
    variables = {
        "OS_TOKEN__EXPIRATION": "90",
        "OS_DEFAULT__INSECURE_DEBUG": "true",
        "OS_FERNET_TOKENS__KEY_REPOSITORY": str(keys),
        "OS_DATABASE__CONNECTION": f"sqlite:///{tmp_path}/s3cr3t.db",
        "OS_LDAP__PASSWORD": "s3cr3t",
    }
    others = {"OS_TOKEN__PROVIDER": "jws"}
    with contextlib.ExitStack() as stack:
        pids = []
        for service, environment in (("keystone", variables), ("nova", others)):
            words = [program, "-c", "read x", service]
            running = stack.enter_context(
                subprocess.Popen(words, stdin=subprocess.PIPE, env=environment)
            )
            stack.callback(running.stdin.close)
            pids.append(str(running.pid))
        _, printed = collected(tmp_path, AUDIT_PIDS=" ".join(pids), AUDIT_QUICK="1")
    host = extract("a", parse(printed), {"audit.is_lab": False})
    values = host.facts.values
    assert (values["conf.token.expiration"], values["conf.token.provider"]) == (90, "fernet")
    assert (values["conf.DEFAULT.debug"], values["conf.DEFAULT.insecure_debug"]) == (True, True)
    assert values["fernet.keys"] == 1
    assert "no such file" in printed  # the database of the environment
    assert "s3cr3t" not in printed
    origin = host.facts.origins["conf.DEFAULT.insecure_debug"]
    assert origin.path == f"/proc/{pids[0]}/environ"
    audit = evaluate([rule.find("KS-12")], [host])
    (play,) = yaml.safe_load(fix_playbook.render(audit))
    paths = [task.get("community.general.ini_file", {}).get("path") for task in play["tasks"]]
    assert origin.path not in paths


@pytest.mark.processes
def test_the_limits_of_the_control_groups_of_keystone_are_read(tmp_path):
    program, root = tmp_path / "uwsgi", tmp_path / "cgroups"
    shutil.copy(shutil.which("sh"), program)
    words = [program, "-c", "read x", "keystone"]
    with subprocess.Popen(words, stdin=subprocess.PIPE) as running:
        for line in Path(f"/proc/{running.pid}/cgroup").read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            for kind in {"", "cpu", "memory"} & set(controllers.split(",")):
                group = root / kind / path.lstrip("/")
                group.mkdir(parents=True, exist_ok=True)
                (group / "cpu.max").write_text("150000 100000\n")
                (group / "memory.max").write_text("1073741824\n")
        settings = {"AUDIT_PIDS": str(running.pid), "AUDIT_CGROUPS": str(root)}
        values, _ = collected(tmp_path, AUDIT_QUICK="1", **settings)
        running.stdin.close()
    assert (values["web.cpu_quota"], values["web.memory_limit_mb"]) == (1.5, 1024)


# Takes a name of a server, and the files of another folder for its own, as in a container.
IN_CONTAINER = """
import ctypes, os, sys
ctypes.CDLL(None).prctl(15, sys.argv[2].encode(), 0, 0, 0)
os.chroot(sys.argv[1])
print(flush=True)
sys.stdin.read()
"""


@pytest.mark.processes
@pytest.mark.skipif(os.getuid() != 0, reason="only root enters containers")
def test_files_in_containers_of_the_host_are_read(tmp_path):
    etc = tmp_path / "root" / "etc"
    for path, text in {
        "keystone/keystone.conf": "[token]\nprovider = jws\n[DEFAULT]\ndebug = true\n"
        "[identity]\ndomain_specific_drivers_enabled = true\n",
        "keystone/domains/keystone.a.conf": "[identity]\ndriver = ldap\n[ldap]\npool_size = 3\n",
        "keystone/uwsgi.ini": "[uwsgi]\nmodule = keystone.server.wsgi\nprocesses = 1\n",
        "keystone/fernet-keys/1": "x",
        "haproxy/haproxy.cfg": "listen keystone\n balance source\n server a 10.0.0.1:5000\n",
    }.items():
        (etc / path).parent.mkdir(parents=True, exist_ok=True)
        (etc / path).write_text(text)
    (tmp_path / "empty").mkdir()
    haproxy = ("haproxy", "-f", "/etc/haproxy/haproxy.cfg")
    with contextlib.ExitStack() as stack:
        pids = []
        for root, words in (
            ("root", ("uwsgi", "--ini", "/etc/keystone/uwsgi.ini")),
            ("empty", haproxy),  # a worker, by `chroot` in the settings of haproxy
            ("root", haproxy),
        ):
            python = [sys.executable, "-c", IN_CONTAINER, tmp_path / root]
            pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
            running = stack.enter_context(subprocess.Popen([*python, *words], **pipes))
            stack.callback(running.stdin.close)
            running.stdout.readline()
            pids.append(str(running.pid))
        _, printed = collected("/etc", AUDIT_PIDS=" ".join(pids), AUDIT_QUICK="1")
    host = extract("control1", parse(printed), {"audit.is_lab": False})
    values = host.facts.values
    assert values["conf.token.provider"] == "jws"
    assert values["conf.ldap.pool_size"] == 3
    assert values["web.processes"] == 1
    assert values["fernet.keys"] == 1
    assert values["haproxy.balance"] == "source"
    origin = host.facts.origins["conf.DEFAULT.debug"]
    assert origin == SettingOrigin(f"/proc/{pids[0]}/root/etc/keystone/keystone.conf", 4)
    chosen = [rule.find(name) for name in ("KS-12", "WEB-01")]
    (play,) = yaml.safe_load(fix_playbook.render(evaluate(chosen, [host])))
    tasks = [task["name"] for task in play["tasks"] if "fix" in task["tags"]]
    assert sorted(tasks) == ["KS-12: by hand", "WEB-01: by hand"]


@pytest.mark.processes
def test_the_files_of_a_folder_of_haproxy_are_read_in_their_order(tmp_path):
    folder = tmp_path / "services.d"
    folder.mkdir()
    main = tmp_path / "z.cfg"
    main.write_text("global\n maxconn 40000\ndefaults\n maxconn 10000\n")
    (folder / "mariadb.cfg").write_text("listen mariadb\n server a 10.0.0.1:3306 check\n")
    servers = "server-template node 3 keystone:5000 maxconn 90"
    (folder / "keystone.cfg").write_text(f"listen keystone\n {servers}\n")
    (folder / "notes.txt").write_text("listen other\n server a 10.0.0.1:3306\n")
    program = tmp_path / "haproxy"
    shutil.copy(shutil.which("sh"), program)
    words = [program, "-c", "read x", "-f", main, "-f", f"{folder}/"]
    with subprocess.Popen(words, stdin=subprocess.PIPE) as running:
        _, printed = collected(tmp_path, AUDIT_PIDS=str(running.pid), AUDIT_QUICK="1")
        running.stdin.close()
    facts = extract("a", parse(printed), {}).facts
    files = [file.path for file in sections.files(parse(printed).text("haproxy"))]
    assert files == [str(main), f"{folder}/keystone.cfg", f"{folder}/mariadb.cfg"]
    assert facts.values["haproxy.frontend_maxconn"] == 10000
    assert facts.values["haproxy.database_writers"] == 1
    assert facts.values["haproxy.server_maxconn"] == 90
    assert facts.origins["haproxy.balance"].path == f"{folder}/keystone.cfg"
    assert facts.origins["haproxy.global_maxconn"] == SettingOrigin(str(main), 2)


@pytest.mark.processes
def test_comments_behind_lines_of_haproxy_do_not_count(tmp_path):
    main = tmp_path / "haproxy.cfg"
    main.write_text(
        "listen mariadb\n server a 10.0.0.1:3306 check # takes writes, was hidden:pw\n"
        " server b 10.0.0.2:3306 check # not a backup any more\n"
    )
    program = tmp_path / "haproxy"
    shutil.copy(shutil.which("sh"), program)
    words = [program, "-c", "read x", "-f", main]
    with subprocess.Popen(words, stdin=subprocess.PIPE) as running:
        _, printed = collected(tmp_path, AUDIT_PIDS=str(running.pid), AUDIT_QUICK="1")
        running.stdin.close()
    assert extract("a", parse(printed), {}).facts.values["haproxy.database_writers"] == 2
    assert "hidden" not in printed


@pytest.mark.processes
def test_the_collector_reads_directives_as_apache_does(tmp_path):
    site = tmp_path / "keystone.conf"
    site.write_text(
        """# WSGIDaemonProcess keystone \\
WSGIDaemonProcess abandoned processes=9
wsgidaemonprocess keystone \\
    processes=8 \\
    threads=1
<VirtualHost *:5000>
  WSGIProcessGroup keystone
  WSGIScriptAlias / /usr/bin/keystone-wsgi-public
</VirtualHost>
"""
    )
    program = tmp_path / "apache2"
    shutil.copy(shutil.which("sh"), program)
    words = [program, "-c", "read x", "-f", site]
    with subprocess.Popen(words, stdin=subprocess.PIPE) as running:
        _, printed = collected(tmp_path, AUDIT_PIDS=str(running.pid), AUDIT_QUICK="1")
        running.stdin.close()
    facts = extract("a", parse(printed), {}).facts
    assert (facts.values["web.processes"], facts.values["web.threads"]) == (8, 1)
    assert facts.origins["web.processes"] == SettingOrigin(str(site), 3)
    assert "abandoned" not in printed


@pytest.mark.processes
def test_the_collector_reads_settings_as_oslo_config_does(tmp_path):
    keys = tmp_path / "keys"
    keys.mkdir()
    (keys / "0").write_text("key")
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    with_conf(
        tmp_path,
        f"""[Fernet_Tokens]
key_repository: "{keys}"
[Database]
connection: "sqlite:///{tmp_path}/none.db"
[cache]
backend = 'oslo_cache.memcache_pool'
backend_argument = url:127.0.0.1:{port},
  localhost:{port}
backend_argument = distributed_lock:True
""",
    )
    values, printed = collected(tmp_path, AUDIT_QUICK="1")
    assert values["fernet.keys"] == 1
    assert [name.partition(" ")[0] for name in values["memcached.unreachable"]] == [
        f"127.0.0.1:{port}",
        f"localhost:{port}",
    ]
    assert "no such file" in printed  # the database of `connection`


@pytest.mark.processes
@pytest.mark.parametrize("name", ["$state/pa$$s.db", r"${DEFAULT.state}/pa\$s.db"])
def test_the_collector_fills_in_names_of_options_as_oslo_config_does(tmp_path, name):
    with contextlib.closing(sqlite3.connect(tmp_path / "pa$s.db")) as database, database:
        database.execute("CREATE TABLE user (id INTEGER)")
    with_conf(
        tmp_path, f"[DEFAULT]\nstate = {tmp_path}\n[database]\nconnection = sqlite:///{name}\n"
    )
    _, printed = collected(tmp_path, AUDIT_QUICK="1")
    service = json.loads(json.loads(printed)["sections"]["service"])
    assert service["database"]["kind"] == "sqlite"


@pytest.mark.processes
def test_files_of_domains_are_read_from_the_folder_that_keystone_reads(tmp_path):
    folder = tmp_path / "domains"
    folder.mkdir()
    (folder / "keystone.corp.conf").write_text(
        "[identity]\ndriver = ldap\n[ldap]\nuse_pool = false\npassword = s3cr3t\n"
    )
    enabled = "[identity]\ndomain_specific_drivers_enabled = true\n"
    with_conf(tmp_path, f"{enabled}domain_config_dir = {folder}\n")
    values, printed = collected(tmp_path, AUDIT_QUICK="1")
    assert (values["conf.has_ldap"], values["conf.ldap.use_pool"]) == (True, False)
    assert "s3cr3t" not in printed


@pytest.mark.processes
def test_the_schedule_of_the_rotation_and_the_modes_of_the_keys_are_read(tmp_path):
    keys = tmp_path / "keys"
    keys.mkdir()
    for name, mode in (("0", 0o600), ("1", 0o640)):
        (keys / name).write_text("key")
        (keys / name).chmod(mode)
    (keys / "2").symlink_to(keys / "0")  # as in a volume of Kubernetes
    with_conf(tmp_path, f"[fernet_tokens]\nkey_repository = {keys}\n")
    assert "fernet.job_period_s" not in collected(tmp_path)[0]
    (tmp_path / "cron.d").mkdir()
    (tmp_path / "cron.d" / "keystone").write_text(
        "# 1 * * * * keystone keystone-manage fernet_rotate\n"
        "5 * * * * keystone keystone-manage trust_flush\n"
        "30 4 * * 0 keystone keystone-manage fernet_rotate --token s3cr3t\n"
    )
    values, printed = collected(tmp_path)
    assert values["fernet.open_modes"] == ("1 (640)",)
    assert values["fernet.public"] == ()
    assert values["fernet.job_period_s"] == 7 * 86400
    assert "s3cr3t" not in printed


@pytest.mark.parametrize(
    ("text", "days"),
    [
        ("@hourly", 1 / 24),
        ("weekly", 7),
        ("0 * * * *", 1 / 24),
        ("0 */6 * * *", 1),
        ("0 0 * * 0,3", 7),
        ("0 0 1,15 * *", 62),
        ("Mon *-*-* 00:00:00", 7),
        ("*-*-* 02:00:00", 1),
        ("*-*-01 02:00:00", 62),
    ],
)
def test_the_longest_time_between_two_runs_of_a_job_is_known(text, days):
    assert longest_gap_s(text) == days * 86400


@pytest.mark.parametrize("text", ["", "@reboot", "0 0 1 1 *", "0 0 1 * 1", "a b", "2027-01-01"])
def test_a_schedule_of_another_form_has_no_period(text):
    assert longest_gap_s(text) is None


@pytest.mark.processes
def test_the_costs_of_stored_hashes_are_read_without_salt_and_digest(tmp_path):
    path = tmp_path / "keystone.db"
    with_conf(tmp_path, f"[database]\nconnection = sqlite:///{path}\n")
    hashes = (
        "$2b$12$s3cr3t",
        "$bcrypt-sha256$v=2,t=2b,r=10$s3cr3t",
        "$bcrypt-sha256$v=2,t=2b,r=4$s3cr3t",
        "$scrypt$ln=16,r=8,p=1$s3cr3t",
    )
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE password (password_hash TEXT)")
        connection.executemany("INSERT INTO password VALUES (?)", [(one,) for one in hashes])
    values, printed = collected(tmp_path, AUDIT_QUICK="1")
    assert sorted(values["keystone.stored_costs"]) == [4, 10, 12]
    assert "s3cr3t" not in printed


@pytest.mark.processes
def test_events_that_the_last_revocation_should_have_deleted_are_counted(tmp_path):
    path = tmp_path / "keystone.db"
    with_conf(tmp_path, f"[database]\nconnection = sqlite:///{path}\n")
    now = dt.datetime.now(dt.UTC).replace(tzinfo=None)

    def counts(*ages_h):
        with contextlib.closing(sqlite3.connect(path)) as connection, connection:
            connection.execute("DROP TABLE IF EXISTS revocation_event")
            connection.execute("CREATE TABLE revocation_event (revoked_at TEXT)")
            rows = [(str(now - dt.timedelta(hours=age)),) for age in ages_h]
            connection.executemany("INSERT INTO revocation_event VALUES (?)", rows)
        values, _ = collected(tmp_path, AUDIT_QUICK="1")
        names = ("events", "expired", "left_over")
        return tuple(values[f"revocation.{name}"] for name in names)

    # A token lives for an hour; its event is kept for another half.
    assert counts() == (0, 0, 0)
    assert counts(100, 101) == (2, 2, 0)  # no revocation since
    assert counts(100, 1, 0.5) == (3, 1, 1)
    assert counts(1, -24) == (2, 0, 0)  # events of the lab lie ahead


def test_workers_are_computed_from_what_was_measured(facts, tmp_path):
    run, samples = keystone()
    with Store.open(tmp_path / "store") as store:
        store.begin(replace(run, status="running"))
        for index, one in enumerate(run.measurements):
            for trial in one.trials:
                store.keep_trial(run.run_id, index, trial, samples[index, trial.number])
        store.finish(run)
    words = ("--rule", "CAP-04", "--store", str(tmp_path / "store"), "--json", "-")

    def judged(rate):
        code, text = audit(facts({}), *words, "--rate", str(rate), "--result", run.run_id)
        (row,) = json.loads(text)["results"]
        return code, row

    # One token issue takes 0.278 s (the realistic run's): 8 workers at 70 % serve 20 a second.
    _, row = judged(15)
    assert row["state"] == "pass"
    assert row["found"]["audit.service_s"] == pytest.approx(0.278, rel=0.15)
    _, row = judged(30)
    assert row["state"] == "fail"
    assert "8 are there" in row["message"]
    _, text = audit(facts({}), *words, "--rate", "30")
    (row,) = json.loads(text)["results"]
    assert row["state"] == "skip"
    with pytest.raises(click.UsageError, match="--result needs --rate"):
        audit(facts({}), *words, "--result", run.run_id)


def test_rules_are_listed_and_shown():
    _, listed = audit("rules")
    assert [line.split()[0] for line in listed.splitlines()] == [r.id for r in rule.every()]
    _, shown = audit("rules", "web-06")
    assert shown.startswith("# WEB-06: uWSGI's listen queue")
    assert "netdata" in shown
    (as_data,) = json.loads(audit("rules", "WEB-06", "--json", "-")[1])
    assert as_data["check"] == "uwsgi.listen >= 1024 and uwsgi.listen <= host.somaxconn"


def test_every_study_that_a_rule_names_exists():
    named = {one.study for one in rule.every() if one.study}
    assert named <= set(builtin())
