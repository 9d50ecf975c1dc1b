"""A task file with servers, from the command line to an empty cloud."""

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from documents import workloads
from fake_cloud import FakeCloud
from fake_keystone import PASSWORD, FakeKeystone
from fake_server import serving

from loadstone.cli import main

TASK = """
version: 2
title: Servers
subtasks:
  - title: Boot
    scenario:
      NovaServers.boot_server: {image: {name: cirros}, flavor: {name: m1.tiny}}
    runner: {constant: {times: 4, concurrency: 2}}
    contexts: {users: {tenants: 2, users_per_tenant: 1}}
    sla: {failure_rate: {max: 0}}
"""


class Cloud(FakeKeystone):
    """A fake Keystone whose tokens open the fake services beside it."""

    def __init__(self):
        super().__init__()
        self.beside = FakeCloud()
        self.booted = threading.Event()  # some servers are there
        self.removing = threading.Event()  # the first deletion of a server has come
        self.may_remove = threading.Event()
        self.may_remove.set()

    def serve(self, request):
        if request.path.split("/")[1] in ("compute", "image", "network"):
            if request.command == "DELETE":
                self.removing.set()
                self.may_remove.wait(timeout=500)
            self.beside.token_is_good = request.headers.get("X-Auth-Token") in self.tokens
            self.beside.serve(request)
            if len(self.beside.servers) > 2:
                self.booted.set()
        else:
            super().serve(request)

    def issue(self, body):
        status, value, *headers = super().issue(body)
        if status == 201:
            value["token"]["catalog"] = self.beside.catalog(self.url)
        return status, value, *headers


@pytest.fixture
def cloud(monkeypatch, tmp_path: Path):
    cloud = Cloud()
    with serving(cloud.handler()) as url:
        cloud.url = url
        monkeypatch.setenv("LOADSTONE_HOME", str(tmp_path / "home"))
        for name, value in {
            "OS_AUTH_URL": f"{url}/v3",
            "OS_USERNAME": "admin",
            "OS_PASSWORD": PASSWORD,
            "OS_USER_DOMAIN_ID": "default",
        }.items():
            monkeypatch.setenv(name, value)
        yield cloud


@pytest.fixture
def loadstone(monkeypatch, capfd):
    def run(*words):
        monkeypatch.setattr("sys.argv", ["loadstone", *words])
        with pytest.raises(SystemExit) as ended:
            main()
        return ended.value.code or 0, *capfd.readouterr()

    return run


def booted_names(cloud: Cloud) -> set[str]:
    """Names of the servers asked for. On a busy machine the client may repeat a request."""
    requests = cloud.beside.requests
    return {
        body["server"]["name"] for _, path, body in requests if path.endswith("/servers") and body
    }


def test_a_task_boots_servers_as_its_users_and_leaves_nothing(cloud, tmp_path: Path, loadstone):
    task = tmp_path / "task.yaml"
    task.write_text(TASK)
    code, shown, told = loadstone("run", str(task), "--json", "-")
    assert code == 0, told
    assert "nova.boot_server" in json.dumps(json.loads(shown))
    assert len(booted_names(cloud)) == 4
    assert cloud.beside.servers == {}
    assert cloud.names("users") == []


def test_what_a_workload_could_not_remove_stays_known_after_the_next_one(
    cloud, tmp_path: Path, loadstone
):
    _, head, subtask = TASK.partition("  - title: Boot")
    task = tmp_path / "task.yaml"
    task.write_text(f"{TASK}{head} again{subtask}")
    cloud.beside.locks_first = True
    code, shown, told = loadstone("run", str(task))
    assert code == 1, shown + told
    (locked,) = cloud.beside.servers.values()
    code, _, told = loadstone("results", "delete", "latest")
    assert code == 2
    assert "results clean" in told
    code, shown, _ = loadstone("results", "clean", "latest")
    assert code == 1
    assert f"1 server left; {locked['name']}: " in shown
    cloud.beside.locks_first = False
    code, shown, told = loadstone("results", "clean", "latest")
    assert code == 0, shown + told
    assert cloud.beside.servers == {}


def test_a_sweep_that_is_cut_short_leaves_the_rest_to_the_admin(
    cloud, tmp_path: Path, loadstone, monkeypatch
):
    # The sweep has no time for its second user, and the first one has no servers.
    for name, value in {"SWEEPERS": 1, "SWEEP_RPS": 0.001, "SWEEP_S": 0.1}.items():
        monkeypatch.setattr(f"loadstone.workload.functions.{name}", value)
    cloud.beside.hides_servers = True
    task = tmp_path / "task.yaml"
    task.write_text(TASK)
    code, shown, told = loadstone("run", str(task))
    assert code == 0, shown + told
    assert len(booted_names(cloud)) == 4
    assert cloud.beside.servers == {}


NETWORKS = """
version: 2
title: Networks
subtasks:
  - title: Log in
    scenario: {Authenticate.keystone: {}}
    runner: {constant: {times: 4, concurrency: 2}}
    contexts:
      users: {tenants: 2, users_per_tenant: 1}
      network: {}
"""


def test_security_groups_of_a_runs_projects_are_removed(
    cloud, tmp_path: Path, loadstone, monkeypatch
):
    monkeypatch.setattr("loadstone.keystone.identity._RETRY_WAITS_S", (0.0,) * 4)
    cloud.beside.ensure_group("somebody's")
    others = dict(cloud.beside.groups)
    cloud.beside.hold_groups = True
    task = tmp_path / "task.yaml"
    task.write_text(NETWORKS)
    code, shown, told = loadstone("run", str(task))
    assert code == 1, shown + told
    assert "security group default of loadstone-" in told
    assert len(cloud.beside.groups) == 3
    assert cloud.beside.networks == {}
    assert cloud.names("projects") == []
    # The projects are gone, and their groups are still known.
    cloud.beside.hold_groups = False
    code, shown, told = loadstone("results", "clean", "latest")
    assert code == 0, shown + told
    assert cloud.beside.groups == others


@pytest.fixture
def killed(cloud, tmp_path: Path):
    """A run that made servers, and was killed in the midst of it."""
    task = tmp_path / "task.yaml"
    task.write_text(TASK.replace("times: 4", "times: 1000"))
    with subprocess.Popen(
        [sys.executable, "-m", "loadstone", "run", str(task)],
        stdout=subprocess.PIPE,
        env=dict(os.environ),
    ) as process:
        assert cloud.booted.wait(timeout=500)
        process.kill()
        # Its end comes when the last worker has let go of it.
        process.stdout.read()
    return next(iter(cloud.beside.servers.values()))["name"]


def test_servers_of_a_killed_run_are_found_by_name_and_removed(
    cloud, killed, loadstone, monkeypatch
):
    monkeypatch.setattr("loadstone.keystone.identity._RETRY_WAITS_S", (0.0,) * 4)
    others = {"s-x": {"id": "s-x", "name": "somebody's", "status": "ACTIVE"}}
    others["s-y"] = {"id": "s-y", "name": f"not-{killed}", "status": "ACTIVE"}
    cloud.beside.servers |= others
    code, _, told = loadstone("results", "delete", "latest")
    assert code == 2
    assert "results clean" in told

    cloud.beside.down.add("compute")
    code, shown, _ = loadstone("results", "clean", "latest")
    assert code == 1
    assert "HTTP 503" in shown
    cloud.beside.down.clear()
    cloud.beside.is_admin = False
    code, shown, _ = loadstone("results", "clean", "latest")
    assert code == 1
    assert "could not list the servers of all projects: HTTP 403" in shown
    # What another service holds back keeps no user.
    assert cloud.names("users") == []

    cloud.beside.is_admin = True
    code, shown, told = loadstone("results", "clean", "latest")
    assert code == 0, shown + told
    assert cloud.beside.servers == others
    assert "left nothing" in loadstone("results", "clean", "latest")[1]


def test_ctrl_c_while_servers_are_removed_ends_the_run_and_leaves_nothing(cloud, tmp_path: Path):
    _, head, subtask = TASK.partition("  - title: Boot")
    task = tmp_path / "task.yaml"
    task.write_text(f"{TASK}{head} again{subtask}")
    cloud.may_remove.clear()
    with subprocess.Popen(
        [sys.executable, "-m", "loadstone", "run", str(task)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=dict(os.environ),
    ) as process:
        assert cloud.removing.wait(timeout=500)
        process.send_signal(signal.SIGINT)
        cloud.may_remove.set()
        shown, told = process.communicate()
    assert process.returncode == 130, shown + told
    assert len(booted_names(cloud)) == 4  # none of the second workload
    assert cloud.beside.servers == {}
    assert cloud.names("users") == []


PLUGIN = """
from loadstone.rally.functions.plugin import scenario


@scenario("Tiny.count")
def count(context, upto: int = 1):
    \"\"\"Count.\"\"\"
    for _ in range(upto):
        with context.action("tiny.count"):
            pass
"""


@pytest.mark.usefixtures("cloud")
def test_an_installed_package_brings_its_scenarios_without_an_option(tmp_path: Path):
    installed = tmp_path / "site"
    (installed / "tiny_package").mkdir(parents=True)
    (installed / "tiny_package" / "__init__.py").touch()
    (installed / "tiny_package" / "scenarios.py").write_text(PLUGIN)
    about = installed / "tiny_package-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: tiny-package\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(
        "[loadstone.scenarios]\ntiny = tiny_package.scenarios\n"
    )

    def loadstone(*words):
        return subprocess.run(
            [sys.executable, "-m", "loadstone", *words],
            capture_output=True,
            text=True,
            timeout=500,
            env={**os.environ, "PYTHONPATH": str(installed)},
            cwd=tmp_path,
            check=False,
        )

    task = tmp_path / "task.yaml"
    task.write_text("Tiny.count: [{args: {upto: two}}]")
    wrong = loadstone("task", "check", str(task))
    assert wrong.returncode == 2
    assert '"upto" must be a whole number' in wrong.stdout
    task.write_text("Tiny.count: [{args: {upto: 2}, runner: {type: serial, times: 3}}]")
    told = loadstone("run", str(task), "--json", "-")
    assert told.returncode == 0, told.stderr
    (workload,) = workloads(json.loads(told.stdout))
    (action,) = workload["actions"]
    assert (action["name"], action["count"], action["repeats"]) == ("tiny.count", 3, 2)
