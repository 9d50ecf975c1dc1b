"""Faults of real deployments: carried out, measured, undone."""

import json
import os
import signal
import subprocess
import sys
from dataclasses import replace

import psutil
import pytest
import requests
from documents import only, workloads
from lab_client import quietly, token_of, until

from loadstone.errors import InvalidInput
from loadstone.faults import balancer
from loadstone.faults.inject import LabInjector
from loadstone.faults.journal import of_lab
from loadstone.faults.sentence import read
from loadstone.lab import deployment
from loadstone.lab.keystone import settings

pytestmark = [pytest.mark.live, pytest.mark.timeout(900)]

# Carries a fault out and holds it until it is killed.
HOLDS = """
import sys
from pathlib import Path
from loadstone.faults.inject import LabInjector
from loadstone.faults.sentence import read
from loadstone.faults.journal import Owner, of_lab
from loadstone.faults.watcher import watched
lab = Path(sys.argv[1])
with watched(of_lab(lab), Owner.this()):
    LabInjector(lab, of_lab(lab)).inject(read(sys.argv[2]))
"""
SENTENCES = (
    "kill keystone service on one node for 0.5 seconds",
    "freeze keystone service on node 2 for 0.5 seconds",
    "take one node out for 0.5 seconds",
    "rolling restart of keystone with token.expiration=7200",
    "disconnect network on one node for 0.5 seconds",
    "delay network on one node by 50 ms for 0.5 seconds",
    "lose 20% of packets on one node for 0.5 seconds",
    "reload haproxy",
    "restart memcached service on one node",
    "flush memcached",
    "kill mysql service on one node for 0.5 seconds",
    "make database read-only for 0.5 seconds",
    "rotate fernet keys for 0.5 seconds",
    "expire certificate for 0.5 seconds",
    "steal cpu for 0.5 seconds",
    "reboot one node for 0.5 seconds",
)
KILLED = (
    "freeze keystone service for 100 seconds",
    "kill keystone service on one node for 100 seconds",
    "terminate keystone service on node 2",  # it takes its time to end
    "take one node out for 100 seconds",
    "make database read-only for 100 seconds",
    "expire certificate for 100 seconds",
    "steal cpu for 100 seconds",
)


@pytest.fixture
def two_nodes(start):
    return start("nodes=2", "workers=1", "database=mariadb", "cache=memcached", "tls=on")


def serves(lab):
    try:
        token_of(lab.environment_variables())
    except (AssertionError, requests.exceptions.SSLError):
        return False
    return True


def assert_whole(lab):
    """All parts run, none is stopped, haproxy sends to both nodes, nothing is left to undo."""
    found = deployment.load(lab.name)
    balancer.await_all(lab.folder)
    # After a restart of memcached Keystone answers with errors for a while.
    until(lambda: serves(found), "a token is issued again")
    assert found.failure() is None
    states = {psutil.Process(pid).status() for pid in found.pids()}
    assert psutil.STATUS_STOPPED not in states
    assert not of_lab(lab.folder).path.exists()
    assert not (lab.folder / "keys" / "fernet.before").exists()
    assert not (lab.folder / "keystone.before").exists()


def assert_undone(lab, sentences):
    injector = LabInjector(lab.folder, of_lab(lab.folder))
    injector.over.set()  # what lasts to the load's end is undone at once
    for sentence in sentences:
        injector.check(read(sentence))
        done = injector.inject(read(sentence))
        assert done.failure == "", (sentence, done)
        assert_whole(lab)


def test_every_fault_is_undone_also_after_a_kill(two_nodes):
    assert_undone(two_nodes, SENTENCES)
    injector = LabInjector(two_nodes.folder, of_lab(two_nodes.folder))
    with pytest.raises(InvalidInput, match="no postgres"):
        injector.check(read("kill postgres service"))
    with pytest.raises(InvalidInput, match="needs --with token=uuid"):
        injector.check(read("flush tokens"))
    with pytest.raises(InvalidInput, match="no node 3"):
        injector.check(read("kill keystone on node 3"))
    assert_undone_after_a_kill(two_nodes, KILLED)


def assert_undone_after_a_kill(lab, sentences):
    for sentence in sentences:
        words = (sys.executable, "-c", HOLDS, str(lab.folder), sentence)
        with subprocess.Popen(words) as process:
            until(of_lab(lab.folder).path.exists, sentence)
            process.send_signal(signal.SIGKILL)
        until(lambda: not of_lab(lab.folder).path.exists(), sentence)
        assert_whole(lab)


@pytest.mark.verify
def test_the_effect_of_faults_is_measured(two_nodes, tmp_path):
    assert_measured(two_nodes, tmp_path)
    assert_clients_are_told_of_the_expiry(two_nodes, tmp_path)
    assert_task(two_nodes, tmp_path)


def loadstone(*words):
    ended = subprocess.run(
        (sys.executable, "-m", "loadstone", *words),
        env=os.environ,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "Traceback" not in ended.stderr
    return ended


def found_by(ended):
    """The data of a run whose exit code agrees with them."""
    found = json.loads(ended.stdout)
    measurements = found["measurements"]
    verdicts = {trial["verdict"] for one in measurements for trial in one["trials"]}
    assert "invalid" not in verdicts, ended.stderr
    assert ended.returncode == (1 if "degraded" in verdicts else 0), ended.stderr
    return found


def assert_measured(lab, tmp_path):
    ended = loadstone(
        *("fault", "--lab", lab.name, "--do", "freeze haproxy service for 1 seconds"),
        # On a busy machine nobody gives up, either.
        *("--rate", "12", "--users", "0", "--repeats", "1", "--timeout", "60s"),
        *("--baseline", "5s", "--observe", "8s", "--store", str(tmp_path), "--json", "-"),
    )
    found = only(found_by(ended))
    [fault] = found["faults"]
    assert fault["action"] == "freeze haproxy service for 1 seconds"
    assert fault["targets"] == ["haproxy"]
    assert 5 <= fault["at_s"] < 6
    assert 1 <= fault["undone_s"] - fault["at_s"] < 3
    # Nobody is answered for a second, and nobody is told so: it is a backlog.
    assert fault["downtime_s"] == 0
    assert fault["backlog"] >= 8
    assert fault["mttr_s"] > 0.9
    [summary] = found["faults_summary"]
    assert summary["backlog"]["mean"] == fault["backlog"]
    assert_whole(lab)


def assert_clients_are_told_of_the_expiry(lab, tmp_path):
    ended = loadstone(
        *("fault", "--lab", lab.name, "--do", "expire certificate for 1 seconds"),
        *("--rate", "12", "--users", "0", "--repeats", "1", "--timeout", "60s"),
        *("--baseline", "5s", "--observe", "4s", "--store", str(tmp_path), "--json", "-"),
    )
    [fault] = only(found_by(ended))["faults"]
    assert "certificate expired" in {one["kind"] for one in fault["errors"]}
    assert fault["downtime_s"] > 0
    assert_as_logged(fault)
    assert_whole(lab)


def assert_as_logged(fault):
    """Failures are those in haproxy's own log, but for those that it does not log."""
    failed = fault["failed"] + fault["baseline_failed"]
    closed = [one["count"] for one in fault["errors"] if one["kind"] == "connection closed early"]
    assert fault["logged_failures"] == failed - sum(closed), fault


def assert_task(lab, tmp_path):
    """A task file with the hook of os-faults, in the old form in which it was published."""
    hook = {
        "name": "fault_injection",
        "args": {"action": "restart memcached service on one node"},
        "trigger": {"name": "event", "args": {"unit": "iteration", "at": [60]}},
    }
    workload = {
        "runner": {"type": "constant_for_duration", "duration": 8, "concurrency": 2},
        "context": {"users": {"tenants": 1, "users_per_tenant": 1}},
        "hooks": [hook],
    }
    task = tmp_path / "task.json"
    task.write_text(json.dumps({"Authenticate.keystone": [workload]}))
    ended = loadstone("run", str(task), "--lab", lab.name, "--store", str(tmp_path), "--json", "-")
    [workload] = workloads(json.loads(ended.stdout))
    # Iterations may fail meanwhile; then the SLA that Rally implies does not hold.
    assert ended.returncode == (0 if workload["pass_sla"] else 1), ended.stderr
    [[result]] = [hook["results"] for hook in workload["hooks"]]
    assert result["status"] == "success"
    [fault] = workload["faults"]
    assert fault["targets"] == ["memcached"]
    assert "plan_mttr_s" in fault
    assert_as_logged(fault)
    assert_whole(lab)


@pytest.mark.verify
@pytest.mark.timeout(900)  # on a busy machine an upgrade beside a load takes minutes
@pytest.mark.parametrize("database", ["mariadb", "postgres"])
def test_an_upgrade_loses_what_haproxy_says(start, tmp_path, database):
    lab = start("release=29.1.0", "nodes=2", "workers=1", f"database={database}")
    ended = loadstone(
        *("fault", "--lab", lab.name, "--do", "kill keystone service for 3 seconds"),
        *("--do", "upgrade keystone to 30.0.0", "--rate", "3", "--users", "0", "--repeats", "1"),
        *("--baseline", "20s", "--timeout", "60s", "--store", str(tmp_path), "--json", "-"),
    )
    killed, upgraded = [one["faults"][0] for one in found_by(ended)["measurements"]]
    assert killed["failed"] > 0
    for fault in (killed, upgraded):
        assert_as_logged(fault)
    assert [one["words"] for one in upgraded["phases"]] == [
        "the schema was expanded",
        "the data were migrated",
        "node 1 was out",
        "node 2 was out",
        "the schema was contracted",
    ]
    assert dict(deployment.load(lab.name).state.settings)["release"] == "30.0.0"
    assert_whole(lab)
    with pytest.raises(InvalidInput, match="already"):
        LabInjector(lab.folder, of_lab(lab.folder)).check(read("upgrade keystone to 30.0.0"))
    # The data are found under the name of the new release.
    done = LabInjector(lab.folder, of_lab(lab.folder)).inject(
        read("make database read-only for 0.5 seconds")
    )
    assert done.failure == ""
    assert_whole(lab)
    assert_goes_on_as_the_new_release(lab)


def assert_goes_on_as_the_new_release(lab):
    before = settings.read(deployment.load(lab.name).state.settings)
    deployment.down(lab.name)
    with pytest.raises(InvalidInput, match=r"upgraded to 30\.0\.0.*--with release=30\.0\.0"):
        deployment.up(lab.name, replace(before, release="29.1.0"), quietly, owned=True)
    again = deployment.up(lab.name, before, quietly, owned=True)
    assert dict(again.facts())["release"].startswith("keystone 30.0.0")
    assert_whole(again)
