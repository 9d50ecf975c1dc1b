"""The compute cloud beside Keystone."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from loadstone.keystone import deployment
from loadstone.keystone.deployment import Deployment
from loadstone.lab import processes
from loadstone.target import connect, from_environment

pytestmark = [pytest.mark.live, pytest.mark.slow, pytest.mark.timeout(900)]

BOOTS = 25  # at each concurrency
# A slow machine: services validate Nova's own token again when 300 s have passed, in each of them.
OF_SERVICES = 6
DATA = Path(__file__).parent.parent / "data" / "rally"


def boots(title: str, times: int, concurrency: int, **contexts: object) -> dict[str, object]:
    """Return a subtask that boots servers."""
    workload = {
        "scenario": {
            "NovaServers.boot_and_list_server": {
                "image": {"name": "tiny"},
                "flavor": {"name": "m1.nano"},
            }
        },
        "runner": {"constant": {"times": times, "concurrency": concurrency}},
        "contexts": {"users": {"tenants": 2, "users_per_tenant": 2}, **contexts},
        "sla": {"failure_rate": {"max": 0}},
    }
    return {"title": title, "workloads": [workload]}


def counted(workload: dict[str, Any]) -> tuple[int, int]:
    """Return how often Keystone was asked for a login and a validation."""
    kinds = {one["kind"]: one["count"] for one in workload["identity_requests"]["kinds"]}
    return kinds["login"], kinds["validation"]


def carry_out(lab: Deployment, task: Path, folder: Path, **arguments: object) -> list[Any]:
    """Run a task against the lab; return its workloads."""
    result = folder / "result.json"
    done = subprocess.run(
        (
            *(sys.executable, "-m", "loadstone", "run", str(task), "--lab", lab.name),
            *("--store", str(folder / "store"), "--json", str(result)),
            *("--task-args", json.dumps(arguments)),
        ),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    found: list[Any] = json.loads(result.read_text())["workloads"]
    return found


def test_servers_boot_cost_known_requests_and_leave_nothing(
    start: Callable[..., Deployment], tmp_path: Path
) -> None:
    lab = start("compute=nova", "database=mariadb")
    facts = dict(lab.facts())
    assert facts["compute"].startswith("nova (nova 34")
    assert (facts["middleware cache"], facts["service tokens"]) == ("local", "on")
    task = tmp_path / "boots.json"
    anew = {"login": {"every_iteration": True}}
    subtasks = [boots("tokens kept", BOOTS, 2), boots("new tokens", BOOTS, 8, **anew)]
    task.write_text(json.dumps({"version": 2, "title": "Servers", "subtasks": subtasks}))
    kept, new = carry_out(lab, task, tmp_path)
    for one in (kept, new):
        assert (one["total"]["count"], one["total"]["ok"]) == (BOOTS, BOOTS)
    # A token is issued once, and validated once by each of Nova, Glance and Neutron.
    logins, validations = counted(new)
    assert logins == BOOTS
    assert 0 <= validations - 3 * BOOTS <= OF_SERVICES
    assert new["identity_requests"]["per_iteration"] == (logins + validations) / BOOTS
    assert sum(counted(kept)) < 3 * BOOTS
    names = {"image_name": "tiny", "flavor_name": "m1.nano"}
    carry_out(lab, DATA / "nova-boot-list-cc.yml", tmp_path, **names, times=4, concurrency=2)
    carry_out(lab, DATA / "nova-reliability.yaml", tmp_path, **names, duration=5)
    with connect(from_environment(lab.environment_variables())) as access:
        for place, key in (("compute", "servers"), ("network", "networks")):
            path = {"servers": "/servers?all_tenants=1", "networks": "/v2.0/networks"}[key]
            found = access.session.get(f"{access.service_url(place)}{path}")
            assert found.json()[key] == []
        users = access.session.get(f"{access.identity_url}/users")
    known = {user["name"] for user in users.json()["users"]}
    assert known == {"admin", "nova", "placement", "glance", "neutron"}
    deployment.down(lab.name, purge=True)
    assert processes.marked(lab.folder) == ()
    assert not lab.folder.exists()


def test_servers_boot_with_a_process_for_each_service_and_a_broker(
    start: Callable[..., Deployment], tmp_path: Path
) -> None:
    lab = start("compute=nova-split", "middleware-cache=memcached", "service-tokens=off")
    task = tmp_path / "boots.json"
    anew = {"login": {"every_iteration": True}}
    subtasks = [boots("warm-up", 2, 1), boots("new tokens", 4, 2, **anew)]
    task.write_text(json.dumps({"version": 2, "title": "Servers", "subtasks": subtasks}))
    _, new = carry_out(lab, task, tmp_path)
    assert new["total"]["ok"] == 4
    # All services share what one of them knows of a token.
    logins, validations = counted(new)
    assert logins == 4
    assert 0 <= validations - 4 <= OF_SERVICES
    deployment.down(lab.name, purge=True)
    assert processes.marked(lab.folder) == ()
    assert not lab.folder.exists()
