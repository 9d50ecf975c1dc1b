"""Many hosts over ssh, some of them hostile."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest
from click.testing import CliRunner
from ssh_hosts import is_installed, ssh_hosts, with_settings

from loadstone.cli import loadstone
from loadstone.errors import InvalidInput

pytestmark = pytest.mark.skipif(
    "CI" not in os.environ and not is_installed(), reason="apt-get install openssh-server"
)
GOOD = (
    "[cache]\nbackend = oslo_cache.memcache_pool\n[database]\nconnection = mysql://u:hidden@d/k\n"
)
FAULTS = {
    "KS-01": "[cache]\nenabled = true\n",
    "KS-02": GOOD + "[role]\ncaching = false\n",
    "KS-03": GOOD + "[token]\ncache_on_issue = false\n",
    "KS-05": GOOD + "[token]\nprovider = uuid\n",
    "KS-12": GOOD + "[DEFAULT]\ninsecure_debug = true\n",
    "KS-13": GOOD + "[database]\nconnection_trace = true\n",
    "KS-16": GOOD + "[DEFAULT]\nnotification_opt_out = x\n"
    "[oslo_messaging_notifications]\ndriver = messagingv2\n",
}


def audited(*words):
    done = CliRunner().invoke(loadstone, ["audit", *words, "--json", "-"], standalone_mode=False)
    return done.return_value, json.loads(done.stdout)


def host_with(folder, name, text):
    """Return the command of a host with this keystone.conf and no service running."""
    etc = folder / name
    (etc / "keystone").mkdir(parents=True)
    (etc / "keystone" / "keystone.conf").write_text(text)
    settings = {"AUDIT_ETC": str(etc), "AUDIT_NAME": name, "AUDIT_PYTHON": "/nonexistent/python"}
    return with_settings(settings)


@pytest.mark.processes
def test_eight_hosts_are_audited_each_by_its_own_settings(tmp_path):
    texts = {rule.lower(): text for rule, text in FAULTS.items()} | {"healthy": GOOD}
    commands = {name: host_with(tmp_path, name, text) for name, text in texts.items()}
    with ssh_hosts(tmp_path, commands) as hosts:
        inventory = tmp_path / "hosts.ini"
        inventory.write_text("[identity]\n" + "\n".join(hosts.names) + "\n")
        _, tree = audited("--inventory", str(inventory), "--ssh-config", str(hosts.config))
    found = {
        (row["host"], row["rule"])
        for row in tree["results"]
        if row["state"] in ("fail", "warn") and row["rule"] in FAULTS
    }
    assert found == {(rule.lower(), rule) for rule in FAULTS}
    assert [host["name"] for host in tree["hosts"]] == [*texts]
    assert "hidden" not in json.dumps(tree)
    settings = [row for row in tree["results"] if row["rule"] == "KS-02" and row["file"]]
    assert [(row["file"], row["line"]) for row in settings] == [
        (str(tmp_path / "ks-02" / "keystone" / "keystone.conf"), 6)
    ]


def inventory_of(hosts, folder):
    # These hosts have no sftp, and end when no connection is left.
    variables = {
        "ansible_ssh_args": f"-F {hosts.config} -o ControlMaster=no",
        "ansible_ssh_transfer_method": "piped",
    }
    inventory = folder / "hosts.yaml"
    known = dict.fromkeys(hosts.names)
    inventory.write_text(json.dumps({"all": {"hosts": known, "vars": variables}}))
    return inventory


@pytest.mark.processes
def test_hosts_of_an_inventory_are_read_through_ansible(tmp_path):
    texts = {"ks-02": FAULTS["KS-02"], "healthy": GOOD, "broken": GOOD}
    commands = {name: host_with(tmp_path, name, text) for name, text in texts.items()}
    commands["broken"] = "sh -c 'exit 7'"
    handlers = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    with ssh_hosts(tmp_path, commands) as hosts:
        inventory = inventory_of(hosts, tmp_path)
        _, tree = audited("--inventory", str(inventory), "--via", "ansible")
    assert handlers == [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    found = {(row["host"], row["state"]) for row in tree["results"] if row["rule"] == "KS-02"}
    assert found == {("ks-02", "fail"), ("healthy", "pass")}
    [failed] = [host for host in tree["hosts"] if host["failure"]]
    assert failed["name"] == "broken"
    assert "hidden" not in json.dumps(tree)


@pytest.mark.processes
def test_ctrl_c_ends_an_audit_through_ansible(tmp_path):
    reached = tmp_path / "reached"
    with ssh_hosts(tmp_path, {"slow": f"sh -c 'touch {reached}; sleep 5'"}) as hosts:
        inventory = inventory_of(hosts, tmp_path)
        words = ("audit", "--inventory", str(inventory), "--via", "ansible")
        process = subprocess.Popen([sys.executable, "-m", "loadstone", *words])
        while not reached.exists():
            assert process.poll() is None
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=30) == 130


def test_ansible_without_an_inventory_is_refused(tmp_path):
    for words in (["--host", "a"], ["--inventory", str(tmp_path / "none.ini")]):
        done = CliRunner().invoke(loadstone, ["audit", *words, "--via", "ansible"])
        assert isinstance(done.exception, InvalidInput)


NOT_A_DOCUMENT = '{"loadstone_facts": 1, "sections": [], "complete": true}'
ANSWERING = {
    "truncated": ('sh -c "$SSH_ORIGINAL_COMMAND" | head -c 900', "cut off or damaged"),
    "junk": ("head -c 100000000 /dev/urandom", "longer than 8 MB"),
    "chatter": ("yes", "longer than 8 MB"),
    "wrong": (f"echo '{NOT_A_DOCUMENT}'", "not a complete document"),
    "deep": ("cat {folder}/deep.json", "cut off or damaged"),
    "other": ("echo Authorized users only; cat >/dev/null", "no facts in it: Authorized users"),
    "refusing": ("sh -c 'echo no shell for you >&2; exit 7'", "ended with 7: no shell for you"),
}
SILENT = {  # they cost the time-out
    "hanging": ("sleep 1000", "no complete answer within 20 s"),
    "deaf": ("sh -c 'echo; exec sleep 1000'", "no complete answer within 20 s"),
}


@pytest.mark.processes
@pytest.mark.parametrize(
    "hostile",
    [
        pytest.param(ANSWERING, id="answering"),
        pytest.param(SILENT, id="silent", marks=pytest.mark.verify),
    ],
)
def test_a_hostile_host_is_unknown_and_costs_the_others_nothing(tmp_path, hostile):
    (tmp_path / "deep.json").write_text('{"loadstone_facts": ' + "[" * 1_000_000)
    commands = {
        name: command.replace("{folder}", str(tmp_path)) for name, (command, _) in hostile.items()
    }
    commands["healthy"] = host_with(tmp_path, "healthy", FAULTS["KS-03"])
    with ssh_hosts(tmp_path, commands) as hosts:
        words = [word for name in (*hosts.names, "nowhere") for word in ("--host", name)]
        config = ["--ssh-config", str(hosts.config)]
        code, tree = audited(
            *words, *config, "--timeout", "20", "--rule", "KS-03", "--rule", "HOST-00"
        )
    rows = {(row["host"], row["rule"]): row for row in tree["results"]}
    for name, (_, reason) in hostile.items():
        row = rows[name, "HOST-00"]
        assert (row["state"], row["severity"]) == ("unknown", "critical")
        assert reason in row["message"], name
        assert (name, "KS-03") not in rows
    assert rows["nowhere", "HOST-00"]["state"] == "unknown"
    assert rows["healthy", "HOST-00"]["state"] == "pass"
    assert rows["healthy", "KS-03"]["state"] == "fail"
    assert code == 4  # hosts of which nothing is known


@pytest.mark.processes
def test_a_healthy_host_alone_ends_with_0(tmp_path):
    with ssh_hosts(tmp_path, {"a": host_with(tmp_path, "a", GOOD)}) as hosts:
        words = ["--host", "a", "--ssh-config", str(hosts.config), "--rule", "KS-01"]
        assert audited(*words)[0] == 0
