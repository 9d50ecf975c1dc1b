"""N of any scenario that the engine sends by itself, and of a task's workload."""

import json

import pytest
from command_line import PASSWORD
from documents import only
from known_service import known_service

from loadstone.rally.task.read import check_tree
from loadstone.rally.task.tree import parse
from loadstone.workload.capacity import of_task

TASK = """
version: 2
title: Logins at {{ office }}
subtasks:
  - title: First
    scenario: {Dummy.dummy: {sleep: 0.1}}
  - title: Second
    workloads:
      - scenario: {Authenticate.keystone: {}}
        runner: {constant: {times: 3, concurrency: 2}}
      - scenario: {Authenticate.keystone: {}}
        runner: {rps: {times: 3, rps: 1}}
        contexts:
          users: {tenants: 2, users_per_tenant: 2, user_password: hunter2-of-the-users}
          roles: [reader]
        sla:
          failure_rate: {max: 5}
          max_avg_duration: 20
          outliers: {max: 1}
        hooks:
          - action: {sys_call: "touch was-run"}
            trigger: {event: {unit: iteration, at: [1]}}
      - scenario: {KeystoneBasic.authenticate_user_and_validate_token: {}}
"""
AUTH = {
    "identity": {
        "methods": ["password"],
        "password": {"user": {"name": "known", "domain": {"id": "default"}, "password": PASSWORD}},
    }
}


def searched(loadstone, known, *words):
    ended = loadstone("capacity", "--budget", "20s", "--json", "-", *words, url=known.url)
    assert "Traceback" not in ended.stderr
    return ended, only(json.loads(ended.stdout))


@pytest.fixture
def service():
    """Two workers of 10 ms: 200 requests a second."""
    with known_service(2, 0.01) as known:
        yield known


@pytest.mark.verify
def test_a_scenario_of_task_files_is_searched_by_its_name(loadstone, service):
    name = "KeystoneBasic.authenticate_user_and_validate_token"
    _, found = searched(loadstone, service, "--scenario", name, "--users", "2")
    assert found["scenario"] == found["title"] == name
    assert found["parameters"]["users"] == "2"


def test_a_scenario_of_any_url_takes_its_arguments_and_hides_their_secrets(loadstone, service):
    ended, found = searched(
        *(loadstone, service, "--scenario", "HttpRequests.check_request"),
        *("--arg", f"url={service.url}/auth/tokens", "--arg", "method=POST"),
        *("--arg", "status_code=201", "--arg", f"json={json.dumps({'auth': AUTH})}"),
    )
    assert found["title"].startswith(f"HttpRequests.check_request (url={service.url}/auth/tokens")
    assert found["parameters"]["arguments"].startswith("url=http")
    assert "status_code=201" in found["parameters"]["arguments"]
    assert found["parameters"]["users"] == "none"
    assert PASSWORD not in ended.stdout + ended.stderr
    files = [path for path in loadstone.home.rglob("*") if path.is_file()]
    assert files
    for path in files:
        assert PASSWORD.encode() not in path.read_bytes(), path
    listed = loadstone("results", "list").stdout
    assert "HttpRequests.check_request" in listed
    loadstone("report", "latest", "-o", "page.html")
    assert "status_code=201" in (loadstone.home / "page.html").read_text()


@pytest.mark.verify
def test_a_workload_is_searched_with_its_users_roles_and_rules(loadstone, service):
    (loadstone.home / "logins.yaml").write_text(TASK)
    ended, found = searched(
        *(loadstone, service, "--task", "logins.yaml", "--workload", "3"),
        *("--task-args", "office: Bonn"),
    )
    assert found["scenario"] == "Authenticate.keystone"
    parameters = found["parameters"]
    assert parameters["task"] == "logins.yaml, workload 3 of 4"
    assert parameters["users"] == "4"
    assert parameters["objectives"] == "errors<=5%, mean<20000ms"
    assert parameters["SLA rules not applied"] == "outliers"
    assert parameters["runner of the task"] == (
        "rps: {times: 3, rps: 1}; not used, the search chooses the load"
    )
    assert parameters["hooks of the task"] == "1, not run"
    assert not (loadstone.home / "was-run").exists()
    assert "creating 4 users in 2 projects" in ended.stderr
    assert "removed all that the run made" in ended.stderr
    for path in loadstone.home.rglob("*"):
        if path.is_file() and path.name != "logins.yaml":
            assert b"hunter2-of-the-users" not in path.read_bytes(), path


@pytest.mark.verify
def test_a_plugin_s_requests_can_be_searched(loadstone, service):
    (loadstone.home / "mine.py").write_text(PLUGIN)
    words = ("--scenario", "Mine.validate", "--plugin", "mine.py", "--users", "2")
    ended = loadstone("capacity", "--budget", "20s", "--json", "-", *words, url=service.url)
    found = only(json.loads(ended.stdout))
    assert "issuing 2 tokens" in ended.stderr
    assert found["title"] == "Mine.validate"
    assert found["trials"]
    assert not any(trial["errors"] for trial in found["trials"])


PLUGIN = """
from loadstone.keystone.scenarios.model import ADMIN_TOKEN, SUBJECT_TOKEN, Scenario
from loadstone.plan.script import Step, text

HEADERS = (("X-Auth-Token", (ADMIN_TOKEN,)), ("X-Subject-Token", (SUBJECT_TOKEN,)))
STEP = Step("validate", "GET", text("/auth/tokens"), HEADERS, expect_status=(200,))
VALIDATE = Scenario("Mine.validate", "own validation", "GET /v3/auth/tokens", (STEP,))
"""
CREATE_USER = ("capacity", "--scenario", "KeystoneBasic.create_user", "--arg")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (
            (*CREATE_USER, "enabeld=true"),
            '--arg: scenario KeystoneBasic.create_user has no "enabeld"; did you mean "enabled"?',
        ),
        ((*CREATE_USER, "zzz=1"), "default_role, domain_name, enabled, name_length, password"),
        ((*CREATE_USER, "enabled=maybe"), '"enabled" must be true or false, not "maybe"'),
        ((*CREATE_USER, "password=1234567"), "must be text, not a value of type int"),
        ((*CREATE_USER, "enabled"), "--arg must be NAME=VALUE, not 'enabled'"),
        ((*CREATE_USER, "enabled=[1"), "--arg enabled:1: not YAML or JSON"),
        ((*CREATE_USER, "enabled=true", "--arg", "enabled=no"), "--arg enabled is given twice"),
        (
            ("capacity", "--scenario", "KeystoneBasic.create_tenant_with_users"),
            'KeystoneBasic.create_tenant_with_users needs "users_per_tenant"',
        ),
        (("capacity", "--arg", "a=1"), "scenario issue takes no arguments"),
        (
            ("capacity", "--scenario", "KeystoneBasic.create_usr"),
            "no scenario 'KeystoneBasic.create_usr'; did you mean 'KeystoneBasic.create_user'?",
        ),
        (("capacity", "--scenario", "qqq"), "no scenario 'qqq'; choose from access-rules-life, "),
        (
            ("capacity", "--scenario", "Dummy.dummy"),
            "--scenario Dummy.dummy is a Python function: N can be searched only for scenarios",
        ),
        (
            (
                *("capacity", "--users", "0"),
                *("--scenario", "KeystoneBasic.create_and_list_ec2credentials"),
            ),
            "needs --users 1 or more: the EC2 credentials",
        ),
        (
            ("capacity", "--users", "0", "--scenario", "app-credential"),
            "needs --users 1 or more: the application credentials",
        ),
        (
            ("capacity", "--users", "0", "--scenario", "mix:issue=9,user-life=1"),
            "needs --users 1 or more: the users",
        ),
        (("capacity", "--workload", "2"), "--workload needs --task"),
        (("capacity", "--task", "gone.yaml"), "gone.yaml: cannot be read: No such file"),
    ],
)
def test_a_mistaken_scenario_is_one_line(at_once, words, told):
    ended = at_once(*words)
    assert ended.returncode == 2
    assert told in ended.stderr
    assert "Traceback" not in ended.stderr
    assert "1234567" not in ended.stderr


@pytest.mark.processes
@pytest.mark.parametrize(
    ("words", "told"),
    [
        (
            (),
            "the task has several workloads; choose one with --workload, or --all: 1 Dummy.dummy, "
            "2 Authenticate.keystone, 3 Authenticate.keystone, "
            "4 KeystoneBasic.authenticate_user_and_validate_token",
        ),
        (("--workload", "5"), "--workload 5: the task has no such workload; choose from 1 Dummy"),
        (("--workload", "0"), "--workload 0: the task has no such workload"),
        (
            ("--workload", "Authenticate.keystone"),
            "several workloads have this scenario; choose by number: 1 Dummy.dummy, 2 Auth",
        ),
        (("--workload", "1"), "logins.yaml:5: Dummy.dummy is a Python function"),
        (("--users", "3"), "--users does not go with --task, whose file chooses this"),
        (("--arg", "a=b"), "--arg does not go with --task"),
        (("--scenario", "issue"), "--scenario does not go with --task"),
    ],
)
def test_a_mistaken_workload_is_one_line(at_once, tmp_path, words, told):
    (tmp_path / "logins.yaml").write_text(TASK)
    ended = at_once("capacity", "--task", "logins.yaml", "--task-args", "office: B", *words)
    assert ended.returncode == 2
    assert told in ended.stderr


def test_a_workload_is_found_by_its_scenario_and_may_have_no_rules():
    task = check_tree(parse(TASK.replace("{{ office }}", "Bonn"), "logins.yaml"))
    found = of_task(task, "KeystoneBasic.authenticate_user_and_validate_token")
    assert dict(found.parameters) == {
        "task": "logins.yaml, workload 4 of 4",
        "runner of the task": "serial: {}; not used, the search chooses the load",
    }
    assert found.users == "1"
    assert found.rules == ()
