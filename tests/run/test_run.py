"""`loadstone run` as its users meet it."""

import json
import os
import re
from xml.etree import ElementTree as Xml

import pytest
from documents import workloads
from fake_keystone import keeping_the_first_domain

from loadstone.cli.stdout import ReaderGone
from loadstone.store import location

ISSUE = """
version: 2
title: Tokens
subtasks:
  - title: Issue tokens
    scenario:
      Authenticate.keystone: {}
    runner:
      constant: {times: {{times|default(6)}}, concurrency: 2}
    contexts:
      users: {tenants: 2, users_per_tenant: 1, user_password: "not-to-be-kept"}
    sla:
      failure_rate: {max: {{most|default(0)}}}
      max_seconds_per_iteration: 60
  - title: Issue and validate
    scenario:
      KeystoneBasic.authenticate_user_and_validate_token: {}
    runner:
      serial: {times: 2}
"""


def failing(fake, every, status=503):
    """Let each so-manieth login of load fail; the admin's and the preparation's go through."""
    seen = []

    def disturb(method, path):
        if (method, path) != ("POST", "/v3/auth/tokens"):
            return None
        seen.append(path)
        return status if len(seen) > 3 and len(seen) % every == 0 else None

    fake.disturb = disturb


def test_a_task_is_carried_out_and_nothing_is_left_in_the_cloud(loadstone, fake, write):
    told = loadstone("run", write(ISSUE))
    assert told.returncode == 0, told.stderr
    for words in ("Authenticate.keystone", "authenticate.keystone", "keystone_v3.validate_token"):
        assert words in told.stdout
    for head in ("median", "90%ile", "99%ile", "success", "count", "throughput"):
        assert head in told.stdout
    assert "failure_rate" in told.stdout
    assert fake.names("users") == fake.names("projects") == fake.names("domains") == []


def test_what_a_run_left_is_stored_until_it_is_removed(loadstone, fake, write, tmp_path):
    def exit_code():
        return json.loads(loadstone("results", "show", "latest", "--json", "-").stdout)["exit_code"]

    fake.disturb = keeping_the_first_domain()
    assert loadstone("run", write(ISSUE)).returncode == 1
    runs, elsewhere = location.usual().folder / "runs", tmp_path / "elsewhere"
    runs.rename(elsewhere)  # as on another machine, which has the database only
    assert exit_code() == 1
    elsewhere.rename(runs)
    fake.disturb = lambda *_: None
    assert loadstone("results", "clean", "latest").returncode == 0
    runs.rename(elsewhere)
    assert exit_code() == 0


def test_a_reader_that_has_gone_costs_no_file(loadstone, write, monkeypatch, tmp_path):
    def gone(*_):
        raise ReaderGone

    monkeypatch.setattr("loadstone.report.terminal.show", gone)
    files = ("--json=a", "--junit=b", "--rally-json=c")
    assert loadstone("run", write(ISSUE), *files).returncode == 141
    assert {"a", "b", "c"} <= {path.name for path in tmp_path.iterdir()}


def test_an_iteration_is_what_its_name_says(loadstone, fake, write):
    told = loadstone("run", write(ISSUE), "--json", "-")
    assert told.returncode == 0, told.stderr
    loads = workloads(json.loads(told.stdout))
    assert [one["total"]["count"] for one in loads] == [6, 2]
    assert [[row["name"] for row in one["actions"]] for one in loads] == [
        ["authenticate.keystone"],
        ["keystone_v3.fetch_token", "keystone_v3.validate_token"],
    ]
    # The admin, each of the three users while it is made, then one for each iteration.
    assert fake.calls["POST", "/v3/auth/tokens"] == 1 + 3 + 6 + 2


def test_rallys_own_requests_are_sent_and_the_result_says_so(loadstone, fake, write, monkeypatch):
    monkeypatch.setenv("OS_PROJECT_NAME", "admin")
    monkeypatch.setenv("OS_PROJECT_DOMAIN_ID", "default")
    told = loadstone("run", write(ISSUE), "--rally-requests", "--generator-cores", one_core())
    assert told.returncode == 0, told.stderr
    assert "Rally's own sequence" in told.stdout
    shown = json.loads(loadstone("results", "show", "latest", "--json", "-").stdout)
    assert [one["requests_as_rally"] for one in workloads(shown)] == [True, True]
    # The admin, the users while they are made, and two for each iteration of the first workload
    # at least, where its name says one.
    assert fake.calls["POST", "/v3/auth/tokens"] >= 1 + 3 + 2 * 6


def one_core():
    return str(min(os.sched_getaffinity(0)))


def test_users_of_a_file_are_taken_and_left_as_they_are(loadstone, fake, write, tmp_path):
    fake.things["domains"]["d1"] = {"id": "d1", "name": "Default", "enabled": True}
    fake.add("projects", "theirs", domain_id="d1")
    fake.add("users", "ann", domain_id="d1", password="not-to-be-kept")
    one = {"username": "ann", "password": "not-to-be-kept", "tenant_name": "theirs"}
    write(json.dumps({"openstack": {"auth_url": "x", "users": [one]}}), "spec.json")
    task = write("Authenticate.keystone: [{runner: {type: constant, times: 3}}]\n")
    told = loadstone("run", task, "--existing-users", "spec.json")
    assert told.returncode == 0, told.stderr
    assert fake.names("users") == ["ann"]
    assert ("POST", "/v3/users") not in fake.calls
    for path in (tmp_path / "home").rglob("*"):
        assert not path.is_file() or b"not-to-be-kept" not in path.read_bytes(), path
    write(json.dumps([one | {"username": "bob"}]), "spec.json")
    told = loadstone("run", task, "--existing-users", "spec.json")
    assert told.returncode == 3
    assert "no user 'bob'" in told.stderr
    write("[{username: ann, password: 'not-shown}]", "spec.json")
    told = loadstone("run", task, "--existing-users", "spec.json")
    assert told.returncode == 2
    assert "not-shown" not in told.stderr
    write("openstack:\n  users:\n  - {username: ann}\n", "spec.json")
    told = loadstone("run", task, "--existing-users", "spec.json")
    assert told.returncode == 2
    assert "spec.json:3: user 1: password must be a text" in told.stderr


def test_steps_go_on_until_a_figure_is_reached_and_each_is_kept(loadstone, fake, write):
    task = write("Authenticate.keystone: [{runner: {type: constant, times: 8, concurrency: 1}}]\n")
    told = loadstone("run", task, "--step", "concurrency=+3", "--until", "success<100%")
    assert told.returncode == 0, told.stderr
    assert "Steps of Authenticate.keystone" in told.stdout
    shown = json.loads(loadstone("results", "show", "latest", "--json", "-").stdout)
    runners = [one["given"]["runner"]["constant"] for one in workloads(shown)]
    # 10 at a time would be more than there are iterations.
    assert [one["concurrency"] for one in runners] == [1, 4, 7]
    assert [one["total"]["count"] for one in workloads(shown)] == [8, 8, 8]
    assert fake.names("users") == []
    failing(fake, every=2)
    told = loadstone(
        "run", task, "--step", "concurrency=+3", "--until", "success<100%", "--json", "-"
    )
    assert len(workloads(json.loads(told.stdout))) == 1


@pytest.mark.parametrize(
    "words",
    [
        ("--step", "concurrency=+3"),
        ("--step", "times=+3", "--until", "success<100%"),
        ("--step", "rps=+3", "--until", "success<100%"),
        ("--step", "concurrency=+3", "--until", "p99>100%"),
        ("--step", "concurrency=+3", "--until", "p99<2s"),
        ("--step", "concurrency=+3", "--until", "success>50%"),
    ],
)
def test_steps_that_mean_nothing_are_refused(loadstone, fake, write, words):
    told = loadstone("run", write(ISSUE), *words)
    assert told.returncode == 2
    assert "step" in told.stderr or "until" in told.stderr
    assert ("POST", "/v3/users") not in fake.calls


def test_what_was_measured_is_kept_and_shown_again(loadstone, write):
    shown = json.loads(loadstone("run", write(ISSUE), "--json", "-").stdout)
    again = json.loads(loadstone("results", "show", "latest", "--json", "-").stdout)
    assert workloads(again) == workloads(shown)
    assert again["kind"] == "task"
    assert again["title"] == "Tokens"
    listed = loadstone("results", "list").stdout
    assert "100 %, held" in listed


def test_a_broken_sla_ends_with_1_and_failures_are_told_apart(loadstone, fake, write):
    failing(fake, every=4)
    told = loadstone("run", write(ISSUE), "--json", "result.json", "--junit", "junit.xml")
    assert told.returncode == 1, told.stderr
    assert "503 Service Unavailable" in told.stdout
    assert "fell short (exit 1): the SLA is broken: failure_rate" in told.stdout
    document = Xml.parse("junit.xml").getroot()
    assert document.attrib["failures"] != "0"
    assert "failure_rate" in document.find(".//failure").get("message")
    with open("result.json") as file:
        workload = workloads(json.load(file))[0]
    assert workload["pass_sla"] is False
    assert workload["total"]["ok"] + sum(one["count"] for one in workload["failures"]) == 6


def test_the_exit_code_can_be_rallys(loadstone, fake, write):
    failing(fake, every=4)
    assert loadstone("run", write(ISSUE), "--exit-code-style", "rally").returncode == 2
    # Rally, too, calls a workload whose contexts fail a broken SLA.
    missing = ISSUE.replace("contexts:\n", "contexts:\n      roles: [nosuch]\n", 1)
    assert loadstone("run", write(missing), "--exit-code-style", "rally").returncode == 2
    fake.disturb = lambda _method, _path: 500
    assert loadstone("run", write(ISSUE), "--exit-code-style", "rally").returncode == 1


def test_template_arguments_fill_the_task(loadstone, write):
    told = loadstone("run", write(ISSUE), "--task-args", "times=3", "--json", "-")
    assert workloads(json.loads(told.stdout))[0]["total"]["count"] == 3


def test_a_rule_that_breaks_ends_the_task(loadstone, fake, write):
    failing(fake, every=1)
    told = loadstone(
        "run", write(ISSUE), "--task-args", "times=100000", "--abort-on-sla-failure", "--json", "-"
    )
    assert told.returncode == 1, told.stderr
    (workload,) = workloads(json.loads(told.stdout))
    assert workload["status"] == "aborted"
    assert workload["total"]["count"] < 100000
    assert workload["sla"][-1]["criterion"] == "aborted_on_sla"
    broke = re.search(
        r"failure_rate broke with iteration (\d+) \(number 1 to end\); (\d+) ended after it, (\d+)",
        workload["sla"][-1]["detail"],
    )
    assert broke is not None
    assert 1 + int(broke[2]) == workload["total"]["count"]
    assert int(broke[3]) <= int(broke[2])
    assert fake.names("users") == []


@pytest.mark.parametrize(
    ("scenario", "rule"),
    [
        ("Authenticate.keystone", "max_avg_duration_per_atomic: {authenticate.keystone: 1.0e-6}"),
        ("Authenticate.keystone", "performance_degradation: {max_degradation: 0.001}"),
        ("Dummy.dummy", "outliers: {max: 0, sigmas: 1}"),
    ],
)
def test_every_rule_of_rallys_ends_the_load_when_it_breaks(loadstone, write, scenario, rule):
    task = write(
        f"{scenario}:\n- runner: {{type: constant_for_duration, duration: 60, concurrency: 2}}\n"
        f"  sla: {{failure_rate: {{max: 0}}, {rule}}}\n"
    )
    told = loadstone("run", task, "--abort-on-sla-failure", "--json", "-")
    (workload,) = workloads(json.loads(told.stdout))
    assert workload["status"] == "aborted"
    assert workload["load_seconds"] < 30
    assert f"{rule.partition(':')[0]} broke with iteration" in workload["sla"][-1]["detail"]


def test_a_workload_that_cannot_be_prepared_fails_and_the_next_is_carried_out(
    loadstone, fake, write
):
    refused = []

    def disturb(method, path):
        if (method, path) == ("POST", "/v3/projects") and not refused:
            refused.append(path)
            return 400
        return None

    fake.disturb = disturb
    told = loadstone("run", write(ISSUE), "--json", "-")
    assert told.returncode == 3, told.stderr
    first, second = workloads(json.loads(told.stdout))
    assert first["status"] == "failed"
    assert first["sla"][-1]["criterion"] == "something_went_wrong"
    assert second["status"] == "finished"
    assert fake.names("domains") == []


def test_a_scenario_that_is_a_function_shows_its_nested_actions_and_its_failures(loadstone, write):
    task = write(
        "Dummy.dummy_random_fail_in_atomic: [{args: {exception_probability: 1}, "
        "runner: {type: constant, times: 4, concurrency: 2}}]\n"
        "Dummy.dummy: [{runner: {type: constant, times: 3}}]\n"
    )
    told = loadstone("run", task, "--json", "-")
    assert told.returncode == 1, told.stderr
    failing, good = workloads(json.loads(told.stdout))
    assert failing["total"]["ok"] == 0
    assert "exception" in failing["failures"][0]["message"]
    assert [row["name"] for row in good["actions"]] == ["foo", "foo/bar"]
    assert good["total"]["count"] == 3


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("version: 2\ntitle: x\n", "subtasks"),
        ("Authenticate.keyston: [{}]\n", "did you mean"),
    ],
)
def test_a_bad_task_is_refused_before_anything_is_sent(loadstone, fake, write, text, said):
    told = loadstone("run", write(text))
    assert told.returncode == 2
    assert said in told.stderr
    assert not fake.calls


def test_a_rate_beyond_the_ceiling_is_refused(loadstone, fake, write):
    task = write("Authenticate.keystone: [{runner: {type: rps, rps: 50, times: 5}}]\n")
    told = loadstone("run", task, "--max-rate", "10")
    assert told.returncode == 2
    assert "--max-rate" in told.stderr
    assert "task.yaml:1" in told.stderr
    assert ("POST", "/v3/users") not in fake.calls


def test_more_at_a_time_than_there_may_be_processes_is_refused(loadstone, fake, write):
    told = loadstone(
        "run", write("Dummy.openstack: [{runner: {type: constant, times: 300, concurrency: 300}}]")
    )
    assert told.returncode == 2
    assert "task.yaml:1: Dummy.openstack: 300 at a time" in told.stderr
    assert "at most 256" in told.stderr
    assert ("POST", "/v3/users") not in fake.calls


def test_what_cannot_be_done_as_existing_users_is_kept_as_the_reason(loadstone, fake, write):
    fake.things["domains"]["d1"] = {"id": "d1", "name": "Default", "enabled": True}
    fake.add("projects", "theirs", domain_id="d1")
    fake.add("users", "ann", domain_id="d1", password="x")
    write("[{username: ann, password: x, project_name: theirs}]", "users.yaml")
    task = write("Authenticate.keystone: [{context: {users: {}, roles: [reader]}}]")
    told = loadstone("run", task, "--existing-users", "users.yaml")
    assert told.returncode == 2
    assert "give them reader yourself" in told.stderr
    shown = json.loads(loadstone("results", "show", "latest", "--json", "-").stdout)
    (workload,) = workloads(shown)
    assert workload["status"] == "failed"
    assert workload["sla"][-1]["criterion"] == "something_went_wrong"


def test_a_ramp_is_made_as_the_file_says_or_as_rally_makes_it(loadstone, write):
    task = write(
        "Authenticate.keystone: [{runner: {type: rps, times: 12, "
        "rps: {start: 20, end: 60, step: 20, duration: 1}}}]\n"
    )
    for words in ((), ("--rally-pacing",)):
        told = loadstone("run", task, *words, "--json", "-")
        assert workloads(json.loads(told.stdout))[0]["total"]["ok"] == 12


def test_no_password_of_a_task_is_kept(loadstone, write, tmp_path):
    assert loadstone("run", write(ISSUE)).returncode == 0
    for path in (tmp_path / "home").rglob("*"):
        assert not path.is_file() or b"not-to-be-kept" not in path.read_bytes(), path


def test_a_task_is_made_smaller_from_outside_and_the_result_says_so(loadstone, fake, write):
    fake.things["domains"]["d1"] = {"id": "d1", "name": "Default", "enabled": True}
    task = write(
        "Authenticate.keystone: [{runner: {type: constant, times: 100, concurrency: 5},"
        " context: {users: {tenants: 3, users_per_tenant: 50}}}]\n"
        "KeystoneBasic.create_tenant_with_users: [{args: {users_per_tenant: 2}}]\n"
    )
    smaller = ("--at-most", "times=2,tenants=1", "--at-most", "users_per_tenant=1")
    told = loadstone("run", task, *smaller)
    assert told.returncode == 0, told.stderr
    reduced = "reduced     by --at-most: times 2 of 100, concurrency 2 of 5, tenants 1 of 3"
    assert reduced in told.stdout
    shown = json.loads(loadstone("results", "show", "latest", "--json", "-").stdout)
    first, second = workloads(shown)
    assert first["total"]["count"] == 2
    assert first["given"]["runner"] == {"constant": {"times": 2, "concurrency": 2}}
    assert first["given"]["contexts"] == {"users": {"tenants": 1, "users_per_tenant": 1}}
    assert {"setting": "times", "asked": 100, "made": 2} in first["reduced"]
    # An argument of the scenario is not a setting of the load.
    assert second["reduced"] == []
    assert second["given"]["scenario"] == {
        "KeystoneBasic.create_tenant_with_users": {"users_per_tenant": 2}
    }
    for words in ("times=0", "rps=2", "times", "times=1.5"):
        told = loadstone("run", task, "--at-most", words)
        assert told.returncode == 2
        assert f"--at-most {words}: write it like times=2,tenants=1" in told.stderr
