"""An audit in each format, read as its readers read it."""

import io
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import jsonschema
import pytest
import yaml
from audited import CONTEXT, document
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics_of
from prometheus_client.parser import text_string_to_metric_families as prometheus_of
from rich.console import Console

from loadstone.audit import rule as rules
from loadstone.audit.document import Document
from loadstone.audit.evaluate import evaluate
from loadstone.audit.extract import extract
from loadstone.audit.facts import HostFacts
from loadstone.audit.views import (
    browbeat,
    fix_playbook,
    junit,
    markdown,
    sarif,
    table,
    textfile,
)
from loadstone.diagnosis.finding import Severity

BAD = {
    "keystone": {
        "/etc/keystone/keystone.conf": "[DEFAULT]\ndebug = true\n[cache]\nenabled = true\n"
    },
    "uwsgi": {"/etc/keystone/uwsgi.ini": "[uwsgi]\nprocesses = 1\nlisten = 10\n"},
    "sysctl": {"net/core/somaxconn": 128},
}
SCHEMA = Path(__file__).parent.parent / "data" / "sarif-2.1.0-used.schema.json"


@pytest.fixture(scope="module")
def audit():
    hosts = [
        extract("control1", document(BAD), CONTEXT),
        HostFacts("control2", failure="no complete answer within 60 s <&>\x1b"),
    ]
    return evaluate(rules.select(()), hosts)


def test_sarif_is_valid_and_points_to_the_line(audit):
    log = json.loads(sarif.render(audit))
    jsonschema.validate(log, json.loads(SCHEMA.read_text()))
    (run,) = log["runs"]
    found = {r["ruleId"]: r for r in run["results"] if r["properties"]["host"] == "control1"}
    place = found["WEB-06"]["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == "file:///etc/keystone/uwsgi.ini"
    assert place["region"]["startLine"] == 3
    assert found["WEB-01"]["level"] == "error"
    assert found["WEB-06"]["level"] == "warning"
    assert found["KS-05"]["kind"] == "pass"
    assert run["tool"]["driver"]["rules"][found["KS-01"]["ruleIndex"]]["id"] == "KS-01"
    assert run["invocations"][0]["executionSuccessful"] is False


def test_a_host_without_an_identity_service_does_not_pass_in_silence():
    texts = []
    for found in (Document({"meta": "name=a\n", "cpu": "cpus=2\n"}), document()):
        console = Console(file=io.StringIO(), width=200)
        host = extract("a", found, CONTEXT)
        table.render(evaluate(rules.select(()), [host]), console, all_states=False)
        texts.append(console.file.getvalue())
    assert table.NOTHING_FOUND in texts[0]
    assert table.NOTHING_FOUND not in texts[1]


def test_junit_has_a_case_per_rule_and_host(audit):
    suites = ElementTree.fromstring(junit.render(audit))
    control1, control2 = suites
    assert control1.attrib["name"] == "control1"
    assert int(control1.attrib["tests"]) == len(rules.select(()))
    failed = {
        case.attrib["name"].split()[0]: case.find("failure").attrib["type"]
        for case in control1
        if case.find("failure") is not None
    }
    assert failed["WEB-01"] == "critical"
    assert failed["KS-12"] == "warning"
    assert (control2.attrib["errors"], control2.attrib["tests"]) == ("1", "1")


@pytest.mark.parametrize("parser", [openmetrics_of, prometheus_of])
def test_the_textfile_is_read_by_prometheus(audit, parser):
    families = {family.name: family for family in parser(textfile.render(audit))}
    reached = families["loadstone_audit_host_reached"].samples
    assert {s.labels["host"]: s.value for s in reached} == {"control1": 1, "control2": 0}
    states = families["loadstone_audit_rule_state"].samples
    of_rule = [s.labels for s in states if s.labels["rule"] == "WEB-01"]
    assert of_rule == [
        {"host": "control1", "rule": "WEB-01", "state": "fail", "severity": "critical"}
    ]


def test_markdown_names_findings_with_their_fix(audit):
    text = markdown.render(audit)
    assert "## control1" in text
    assert "### WEB-06 (warning): uWSGI's listen queue is long enough for a burst" in text
    assert "`/etc/keystone/uwsgi.ini:3`" in text
    assert "HOST-00: no complete answer within 60 s \\<&>" in text


def test_markdown_does_not_let_a_host_write_markup():
    host = HostFacts("x", failure="<script>alert(1)</script> [a](http://b)\n# c")
    text = markdown.render(evaluate(rules.select(()), [host]))
    assert "\\<script>" in text
    assert "\n# c" not in text
    assert "\\[a](" in text


def test_markdown_does_not_let_the_name_of_a_file_end_its_code():
    files = {"keystone": {"/etc/`<b>`.conf": "[DEFAULT]\ndebug = true\n"}}
    host = extract("control1", document(files), CONTEXT)
    text = markdown.render(evaluate([rules.find("KS-12")], [host]))
    assert "`/etc/?<b>?.conf:2`" in text


def test_browbeats_report_has_its_form(audit):
    text = browbeat.render(audit)
    assert text.startswith("# Browbeat generated bug report\n---")
    assert "| Issues for host : control1\n" in text
    bug = text[text.index("Bug: bz1347305") :].split("\n\n")[0].splitlines()
    names = [line.split(":")[0] for line in bug]
    assert names == ["Bug", "Description", "URL", "Severity", "Impact"]
    assert bug[3] == "Severity: Critical"
    assert set(re.findall(r"^Severity: (.*)$", text, re.MULTILINE)) == {"Critical", "Suggestion"}


def test_the_playbook_changes_files_that_it_first_copies(audit):
    (play,) = yaml.safe_load(fix_playbook.render(audit))
    assert play["hosts"] == "control1"
    tasks = play["tasks"]
    changed = [t["community.general.ini_file"] for t in tasks if "community.general.ini_file" in t]
    wanted = {"path": "/etc/keystone/uwsgi.ini", "section": "uwsgi", "option": "processes"}
    assert {**wanted, "value": "16"} in changed
    copies = [t["ansible.builtin.copy"] for t in tasks if "ansible.builtin.copy" in t]
    kept = {c["src"]: c["dest"] for c in copies if not c["force"]}
    back = {c["src"]: c["dest"] for c in copies if c["force"]}
    assert set(kept) == {c["path"] for c in changed}
    assert back == {copy: path for path, copy in kept.items()}
    assert all("never" in t["tags"] for t in tasks if "undo" in t["tags"])
    kernel = [t["ansible.posix.sysctl"] for t in tasks if "ansible.posix.sysctl" in t]
    assert {k["name"]: k["value"] for k in kernel} == {"net.core.somaxconn": "4096"}
    # The last file counts, and /etc/sysctl.conf is 99-sysctl.conf.
    assert {k["sysctl_file"] for k in kernel} == {"/etc/sysctl.d/99-zz-loadstone-audit.conf"}


def test_the_playbook_changes_the_name_of_a_setting_that_is_written():
    conf = "[cache]\nenabled = true\nbackend = oslo_cache.memcache_pool\nsocket_timeout = 5\n"
    path = "/etc/keystone/keystone.conf"
    host = extract("control1", document({"keystone": {path: conf}}), CONTEXT)
    audit = evaluate([rules.find("MC-04")], [host])
    assert (audit.results[0].origin.path, audit.results[0].origin.line) == (path, 4)
    (play,) = yaml.safe_load(fix_playbook.render(audit))
    changed = [t.get("community.general.ini_file", {}) for t in play["tasks"]]
    assert {"socket_timeout": "0.5"}.items() <= {
        one.get("option"): one.get("value") for one in changed
    }.items()
    assert "memcache_socket_timeout" not in [one.get("option") for one in changed]


def test_the_playbook_changes_the_file_that_decides():
    main, other = "/etc/keystone/keystone.conf", "/etc/keystone/keystone.conf.d/50-debug.conf"
    first, last = "/etc/keystone/uwsgi.ini", "/etc/keystone/workers.ini"
    words = f"/usr/bin/uwsgi\t--ini\t{first}\t--ini\t{last}"
    changes = {
        "keystone": {
            main: "[DEFAULT]\ninsecure_debug = false\n",
            other: "[DEFAULT]\ninsecure_debug = true\n",
        },
        "uwsgi": {
            first: "[uwsgi]\nmodule = keystone.server.wsgi:initialize_public_application()\n",
            last: "[uwsgi]\nprocesses = 1\n",
        },
        "processes": f"900\t1\t60000\t1\t65536\tuwsgi\t{words}\n",
    }
    host = extract("control1", document(changes), CONTEXT)
    (play,) = yaml.safe_load(fix_playbook.render(evaluate(rules.select(()), [host])))
    tasks = play["tasks"]
    changed = {
        (task["community.general.ini_file"]["path"], task["community.general.ini_file"]["option"])
        for task in tasks
        if "community.general.ini_file" in task
    }
    assert (other, "insecure_debug") in changed
    assert (main, "debug") in changed
    assert (last, "processes") in changed
    assert (first, "listen") in changed
    copies = [task["ansible.builtin.copy"] for task in tasks if "ansible.builtin.copy" in task]
    kept = {copy["src"] for copy in copies if not copy["force"]}
    assert kept == {path for path, _ in changed} == {main, other, first, last}


def test_nothing_that_a_host_says_is_evaluated_by_ansible():
    evil = "{{ lookup('pipe', 'id') }}"
    files = {"keystone": {f"/etc/{evil}.conf": "[DEFAULT]\ndebug = true\n"}}
    host = extract(evil, document(files), CONTEXT)
    playbook = fix_playbook.render(evaluate(rules.select(()), [host]))
    assert "KS-" in playbook
    assert "{{" not in playbook


def test_a_setting_of_uwsgis_arguments_is_changed_by_hand():
    file = "/etc/keystone/uwsgi.ini"
    words = f"/usr/bin/uwsgi\t--ini\t{file}\t--processes\t1"
    changes = {
        "uwsgi": {file: "[uwsgi]\nmodule = keystone.server.wsgi\nprocesses = 8\n"},
        "processes": f"900\t1\t60000\t1\t65536\tuwsgi\t{words}\n",
    }
    host = extract("control1", document(changes), CONTEXT)
    (play,) = yaml.safe_load(fix_playbook.render(evaluate([rules.find("WEB-01")], [host])))
    (by_hand,) = [task for task in play["tasks"] if "fix" in task["tags"]]
    assert by_hand["name"] == "WEB-01: by hand"


@pytest.mark.processes
def test_promtool_finds_nothing_wrong_with_the_textfile(audit):
    promtool = shutil.which("promtool")
    if promtool is None and "CI" not in os.environ:
        pytest.skip("apt-get install prometheus")
    text = textfile.render(audit)
    command = [promtool, "check", "metrics"]
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.processes
def test_ansible_reads_the_playbook(audit, tmp_path):
    """Modules of collections, which ansible-core does not have, are there by name only."""
    for collection, module in (("community/general", "ini_file"), ("ansible/posix", "sysctl")):
        folder = tmp_path / "ansible_collections" / collection / "plugins" / "modules"
        folder.mkdir(parents=True)
        (folder / f"{module}.py").write_text("")
    playbook = tmp_path / "fixes.yaml"
    playbook.write_text(fix_playbook.render(audit))
    program = Path(sys.executable).parent / "ansible-playbook"
    variables = {"ANSIBLE_COLLECTIONS_PATH": str(tmp_path), "ANSIBLE_HOME": str(tmp_path)}
    command = [program, "-i", "control1,", "--syntax-check", playbook]
    done = subprocess.run(
        command, env=os.environ | variables, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stderr


def test_a_host_without_facts_is_said_whatever_the_rules():
    dead = HostFacts("control2", failure="no route to host")
    audit = evaluate([rules.find("KS-01")], [extract("control1", document(BAD), CONTEXT), dead])
    assert [(one.host, one.rule.id) for one in audit.results] == [
        ("control1", "KS-01"),
        ("control2", "HOST-00"),
    ]
    assert audit.is_incomplete(Severity.CRITICAL)
