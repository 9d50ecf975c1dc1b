"""A task file with servers, from the command line to an empty cloud."""

import json
from pathlib import Path

import pytest
from fake_cloud import FakeCloud
from fake_keystone import PASSWORD, FakeKeystone, serving

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

    def serve(self, request):
        if request.path.split("/")[1] in ("compute", "image"):
            self.beside.token_is_good = request.headers.get("X-Auth-Token") in self.tokens
            self.beside.serve(request)
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


def test_a_task_boots_servers_as_its_users_and_leaves_nothing(
    cloud, tmp_path: Path, monkeypatch, capfd
):
    task = tmp_path / "task.yaml"
    task.write_text(TASK)
    monkeypatch.setattr("sys.argv", ["loadstone", "run", str(task), "--json", "-"])
    with pytest.raises(SystemExit) as ended:
        main()
    shown, told = capfd.readouterr()
    assert (ended.value.code or 0) == 0, told
    assert "nova.boot_server" in json.dumps(json.loads(shown))
    booted = [body for method, path, body in cloud.beside.requests if path.endswith("/servers")]
    assert len([body for body in booted if body]) == 4
    assert cloud.beside.servers == {}
    assert cloud.names("users") == []
