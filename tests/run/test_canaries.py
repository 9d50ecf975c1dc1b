"""Two hundred secrets, each in another place of the input, are neither kept nor shown."""

import json
import os
from urllib.parse import urlencode
from zipfile import ZipFile

import pytest
import yaml
from canaries import COMMANDS, HEADERS, NAMES, PRINTED, SCHEMES, Canaries, basic
from documents import workloads
from fake_keystone import PASSWORD
from secret_watch import files_with, watched

LEAST = 200
PLUGIN = """
from loadstone.rally.functions.plugin import scenario


@scenario("Canaries.fail")
def fail(context, **more):
    raise RuntimeError(f"could not: {more}")
"""
INVENTORY = """
[all]
127.0.0.1 ansible_password={password} ansible_become_password={become}
[all:vars]
ansible_ssh_pass={ssh}
"""
FAULTS = """
keystone:
  hosts: [here]
  freeze: {{do: "true --password {do}", undo: "true -u ann:{undo}"}}
"""
FORMATS = ("html", "junit", "openmetrics", "rally-json")


def http_request(url, **more):
    settings = {"url": url, "method": "GET", "status_code": 200, **more}
    return {
        "title": "Requests",
        "scenario": {"HttpRequests.check_request": settings},
        "runner": {"constant": {"times": 2, "concurrency": 1}},
    }


def hook(command, description=""):
    trigger = {"event": {"unit": "iteration", "at": [1]}}
    return {"action": {"sys_call": command}, "trigger": trigger, "description": description}


def hooks(canaries, folder):
    """Return hooks with secrets in their commands, and such that print secrets of a file."""
    found = [hook(form.format(canaries.new(f"hook: {form}"))) for form in COMMANDS]
    lines = [form.format(canaries.new(f"printed by a hook: {form}")) for form in PRINTED]
    (folder / "printed").write_text("\n".join(lines))
    (folder / "fails.sh").write_text("cat printed >&2\nexit 3\n")
    chart = {"title": f"pin={canaries.new('title of a chart')}", "chart_plugin": "Pie"}
    chart["data"] = [[f"password: {canaries.new('label of a chart')}", 3]]
    (folder / "chart.json").write_text(json.dumps({"complete": [chart]}))
    described = f"with password={canaries.new('description of a hook')}"
    injected = hook("true") | {"action": {"fault_injection": "freeze keystone service"}}
    return [
        *found,
        hook("cat printed", described),
        hook("sh fails.sh"),
        hook("cat chart.json"),
        injected,
    ]


def task(canaries, url, folder):
    c = canaries
    headers = {name: c.new(f"header {name}") for name in HEADERS}
    headers |= {f"X-Scheme-{n}": f"{s} {c.new(f'{s} in a header')}" for n, s in enumerate(SCHEMES)}
    query = urlencode([(name, c.new(f"query {name}")) for name in NAMES])
    body = {name: c.new(f"body {name}") for name in NAMES}
    body |= {"user": {"pin": c.number("pin, a number"), "totp": c.number("totp, a number")}}
    form = urlencode([(name, c.new(f"form {name}")) for name in NAMES])
    params = {name: c.new(f"params {name}") for name in NAMES}
    arguments = {name: c.new(f"argument {name}") for name in ("password", "admin_pass", "token")}
    arguments["url"] = f"http://ann:{c.new('URL of an argument')}@host/"
    first = http_request(f"{url}?{query}", headers=headers, json=body)
    first["hooks"] = hooks(c, folder)
    users = {"tenants": 1, "users_per_tenant": 1, "user_password": c.new("user_password")}
    return {
        "version": 2,
        "title": "Canaries {{ api_token }}",
        "subtasks": [
            first,
            http_request(url, data=form, auth=["ann", c.new("auth")]),
            http_request(url, params=params),
            {
                "title": "Function",
                "scenario": {"Canaries.fail": arguments},
                "runner": {"constant": {"times": 1, "concurrency": 1}},
                "sla": {"failure_rate": {"max": 100}},
            },
            {
                "title": "Users",
                "scenario": {"Authenticate.keystone": {}},
                "runner": {"serial": {"times": 1}},
                "contexts": {"users": users},
            },
        ],
    }


@pytest.fixture
def canaries():
    found = Canaries()
    found.by_place["OS_PASSWORD"] = PASSWORD
    return found


@pytest.fixture
def folder(loadstone, canaries, tmp_path, monkeypatch):  # noqa: ARG001  (loadstone sets OS_*)
    """The input: files, environment and clouds.yaml."""
    c = canaries
    url = os.environ["OS_AUTH_URL"]
    (tmp_path / "task.yaml").write_text(yaml.safe_dump(task(c, url, tmp_path), width=10_000))
    (tmp_path / "plugin.py").write_text(PLUGIN)
    (tmp_path / "arguments.yaml").write_text(json.dumps({"api_token": c.new("file of arguments")}))
    secrets = {name: c.new(f"inventory: {name}") for name in ("password", "become", "ssh")}
    (tmp_path / "inventory").write_text(INVENTORY.format(**secrets))
    commands = {name: c.new(f"faults: {name}") for name in ("do", "undo")}
    (tmp_path / "faults.yaml").write_text(FAULTS.format(**commands))
    (tmp_path / "monitor").write_text(c.new("password of a monitor"))
    for name in ("LOADSTONE_API_KEY", "LOADSTONE_TEST_SECRET"):
        monkeypatch.setenv(name, c.new(name))
    return tmp_path


def shown(loadstone, folder):
    """Write what is printed, and every format, into a folder."""
    places = folder / "reports"
    places.mkdir(exist_ok=True)
    data = loadstone("results", "show", "latest", "--json", "-")
    printed = loadstone("results", "show", "latest")
    listed = loadstone("results", "list")
    (places / "shown").write_text(
        "".join(one.stdout + one.stderr for one in (data, printed, listed))
    )
    for form in FORMATS:
        made = loadstone("report", "latest", "--as", form, "-o", str(places / f"report.{form}"))
        assert made.returncode == 0, made.stderr
    exported = loadstone("results", "export", "latest", str(folder / "run.zip"))
    assert exported.returncode == 0, exported.stderr
    ZipFile(folder / "run.zip").extractall(places / "bundle")
    return places


def test_no_secret_of_any_place_is_kept_or_shown(loadstone, folder, canaries):
    c = canaries
    monitor = f"prometheus=http://127.0.0.1:9,user=ann,password-file={folder / 'monitor'}"
    given = c.new("--task-args")
    ended = watched([
        *("run", "task.yaml", "--plugin", "plugin.py", "--task-args-file", "arguments.yaml"),
        *("--task-args", json.dumps({"other": given}), "--monitor", monitor),
        *("--faults", "faults.yaml", "--yes-break-this-target"),
    ])  # fmt: skip
    assert ended.returncode == 1, ended.printed  # requests without a good answer
    searched = shown(loadstone, folder)
    data = json.loads(loadstone("results", "show", "latest", "--json", "-").stdout)
    assert len(workloads(data)) == 5
    assert len(workloads(data)[0]["hooks"]) == len(COMMANDS) + 4
    assert ended.command_lines
    assert len(c.by_place) >= LEAST
    found = {}
    for place, secret in c.by_place.items():
        spellings = {secret, basic("ann", secret)}
        if any(one in ended.printed for one in spellings):
            found[place] = "printed"
        places = (folder / "home", searched)
        if kept := [path for one in spellings for path in files_with(one, *places)]:
            found[place] = [str(path.relative_to(folder)) for path in kept]
        # The user's commands run as the files have them, and children inherit the environment.
        is_own = place.startswith(("hook: ", "faults: ")) or place == "--task-args"
        if not is_own and any(secret.encode() in line for line in ended.command_lines):
            found[place] = "arguments of a child"
        is_inherited = is_own or place.startswith(("OS_", "LOADSTONE_"))
        if not is_inherited and any(secret.encode() in one for one in ended.environments):
            found[place] = "environment of a child"
    assert found == {}


@pytest.mark.parametrize(
    ("words", "exit_code"),
    [
        (("capacity", "--monitor", "prometheus=http://ann:{}@127.0.0.1:9"), 2),
        (("monitor", "--for", "1s", "--monitor", "prometheus=http://x:9?token={}"), 2),
        (("monitor", "--for", "1s", "--monitor", "mariadb://ann:{}@127.0.0.1"), 2),
        (("capacity", "--fleet", "tls://ann:{}@127.0.0.1:8786"), 2),
        (("run", "gone.yaml", "--task-args", "password={}"), 2),
        (("results", "list", "--store", "postgresql://ann:{}@127.0.0.1:9/x"), 3),
        (("capacity", "--scenario", "KeystoneBasic.create_user", "--arg", "password=[{}]"), 2),
    ],
)
def test_a_secret_on_the_command_line_is_not_repeated(loadstone, canaries, words, exit_code):
    secret = canaries.new("command line")
    told = loadstone(*(word.format(secret) for word in words))
    assert told.returncode == exit_code, told.stderr
    assert secret not in told.stdout + told.stderr


def test_the_password_of_clouds_yaml_is_not_kept(loadstone, canaries, tmp_path, monkeypatch):
    secret = canaries.new("clouds.yaml")
    cloud = {"auth_url": "http://127.0.0.1:9/v3", "username": "ann", "password": secret}
    cloud |= {"user_domain_id": "default", "project_name": "p", "project_domain_id": "default"}
    (tmp_path / "clouds.yaml").write_text(yaml.safe_dump({"clouds": {"mine": {"auth": cloud}}}))
    monkeypatch.setenv("OS_CLIENT_CONFIG_FILE", str(tmp_path / "clouds.yaml"))
    told = loadstone("capacity", "--cloud", "mine")
    assert told.returncode == 3
    assert secret not in told.stdout + told.stderr
    assert not files_with(secret, tmp_path / "home")


def test_secrets_of_an_inventory_are_not_shown(loadstone, folder, canaries, monkeypatch):
    programs = folder / "programs"
    programs.mkdir()
    (programs / "ssh").write_text("#!/bin/sh\necho refused >&2\nexit 255\n")
    (programs / "ssh").chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    ended = watched(["audit", "--inventory", "inventory"])
    assert ended.returncode == 4, ended.printed
    for place, secret in canaries.by_place.items():
        assert secret not in ended.printed, place
        if place.startswith("inventory"):
            assert not any(secret.encode() in line for line in ended.command_lines), place
    assert loadstone("results", "list").returncode == 0
