"""No secret of a task is kept, shown, or seen in the list of processes."""

import json
import os
from zipfile import ZipFile

import pytest
from documents import workloads
from fake_keystone import PASSWORD
from secret_watch import files_with, watched

SECRETS = {
    "a template's argument": "argument-hunter2",
    "a file of arguments": "argfile-hunter2",
    "a hook": "hook-hunter2",
    "a header": "header-hunter2",
    "auth": "auth-hunter2",
    "admin_pass": "admin-hunter2",
    "a number": "20261122073",
    "a URL": "url-hunter2",
    "a query": "query-hunter2",
    "the environment": PASSWORD,
}
TASK = """
version: 2
title: "A title with {{ api_token }}"
subtasks:
  - title: Requests
    scenario:
      HttpRequests.check_request:
        url: "URL/v3?token=query-hunter2"
        method: GET
        status_code: 200
        headers: {X-Auth-Token: header-hunter2, Cookie: "session=header-hunter2"}
        auth: [admin, auth-hunter2]
        json: {adminPass: 20261122073, note: "{{ api_token }}"}
    runner: {constant: {times: 4, concurrency: 2}}
    hooks:
      - action: {sys_call: "sh -c 'echo -u admin:hook-hunter2 $OS_PASSWORD header-hunter2; exit 3'"}
        description: "prints {{ api_token }}"
        trigger: {event: {unit: iteration, at: [1]}}
      - action: {sys_call: "curl-that-is-not-there -u admin:hook-hunter2"}
        trigger: {event: {unit: iteration, at: [2]}}
      - action: {sys_call: "cat chart.json"}
        trigger: {event: {unit: iteration, at: [3]}}
  - title: Users
    scenario: {Authenticate.keystone: {}}
    runner: {serial: {times: 2}}
    contexts: {users: {tenants: 1, users_per_tenant: 1, user_password: "{{ user_password }}"}}
  - title: Function
    scenario: {Secretive.fail: {admin_pass: admin-hunter2, url: "http://ann:url-hunter2@x/"}}
    runner: {constant: {times: 2, concurrency: 1}}
    sla: {failure_rate: {max: 100}}
"""
PLUGIN = """
from loadstone.rally.functions.plugin import scenario

@scenario("Secretive.fail")
def fail(context, admin_pass: str, url: str):
    raise RuntimeError(f"no {admin_pass} at {url} with 20261122073: " + 200 * "x " + admin_pass)
"""
CHART = {"title": "of argfile-hunter2", "chart_plugin": "Pie", "data": [["hook-hunter2", 3]]}
REPORTS = ("--json", "--junit", "--rally-json")


@pytest.fixture
def folder(loadstone, write, tmp_path):  # noqa: ARG001  (loadstone sets the environment)
    write(TASK.replace("URL/v3", os.environ["OS_AUTH_URL"]))
    write(PLUGIN, "plugin.py")
    write(json.dumps({"api_token": "argfile-hunter2"}), "arguments.yaml")
    write(json.dumps({"complete": [CHART]}), "chart.json")
    return tmp_path


def test_no_secret_of_a_task_is_kept_or_shown(loadstone, folder):
    reports = folder / "reports"
    reports.mkdir()
    ended = watched([
        *("run", "task.yaml", "--plugin", "plugin.py", "--task-args-file", "arguments.yaml"),
        *("--task-args", '{"user_password": "argument-hunter2", "other": "argument-hunter2"}'),
        *(word for flag in REPORTS for word in (flag, str(reports / f"run{flag}"))),
    ])  # fmt: skip
    code, printed, seen = ended.returncode, ended.printed, ended.command_lines
    assert code == 0, printed
    assert "Secretive.fail" in printed
    shown = loadstone("results", "show", "latest")
    data = loadstone("results", "show", "latest", "--json", "-")
    (reports / "show").write_text(shown.stdout + shown.stderr + data.stdout)
    for form in ("html", "junit", "openmetrics", "rally-json"):
        told = loadstone("report", "latest", "--as", form, "-o", str(reports / f"report.{form}"))
        assert told.returncode == 0, told.stderr
    assert loadstone("results", "export", "latest", str(folder / "run.zip")).returncode == 0
    ZipFile(folder / "run.zip").extractall(reports / "bundle")
    (first, _, third) = workloads(json.loads(data.stdout))
    assert len(first["hooks"]) == 3
    assert third["failures"]
    assert seen, "the watcher saw what was started"
    # The hook's own command line is as the file has it, with the header's secret in it.
    started = [line for line in seen if SECRETS["a hook"].encode() not in line]
    for whence, secret in SECRETS.items():
        assert secret not in printed, whence
        assert files_with(secret, folder / "home", reports) == [], whence
        assert [line for line in started if secret.encode() in line] == [], whence


def test_arguments_on_stdin_are_in_no_command_line(folder):  # noqa: ARG001
    given = "api_token=argfile-hunter2,user_password=argument-hunter2"
    ended = watched(["run", "task.yaml", "--plugin", "plugin.py", "--task-args", "-"], stdin=given)
    assert ended.returncode == 0, ended.printed
    assert not [
        line for line in ended.command_lines if b"hunter2" in line and b"hook-hunter2" not in line
    ]
    assert "argument" not in ended.printed


def test_what_is_wrong_with_a_task_is_said_without_its_secrets(loadstone, write):
    write("KeystoneBasic.create_user: [{args: {enabled: '{{ api_token }}', password: [hunter2]}}]")
    for command in (("run", "task.yaml"), ("task", "check", "task.yaml")):
        told = loadstone(*command, "--task-args", "api_token=argument-hunter2")
        assert told.returncode == 2
        assert "enabled" in told.stdout + told.stderr
        assert "hunter2" not in told.stdout + told.stderr
