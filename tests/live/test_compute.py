"""The compute cloud beside Keystone."""

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from documents import workloads
from realistic import keystone

from loadstone.cloud import connect, from_environment
from loadstone.lab import deployment, processes
from loadstone.lab.deployment import Deployment
from loadstone.store.store import Store

pytestmark = [pytest.mark.live, pytest.mark.verify, pytest.mark.timeout(900)]

BOOTS = 25  # at each concurrency
# A slow machine: services validate Nova's own token again when 300 s have passed, in each of them.
OF_SERVICES = 6
# N of logins and validations per second, for how many boots Keystone sustains.
CAPACITIES = {"Authenticate.keystone": 8.0, "Keystone.validate_token": 60.0}
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


def logged(lab: Deployment, workload: dict[str, Any]) -> tuple[int, int]:
    """Return the same from Keystone's access log, for the time from the load's begin to its end.

    A line is: milliseconds since 1970, method, path, status, User-Agent.
    """
    began_ms = 1000 * workload["start_time"]
    ended_ms = began_ms + 1000 * workload["load_seconds"]
    [log] = lab.access_logs()
    lines = [line.split(" ", 4) for line in log.read_text().splitlines()]
    tokens = [
        (method, agent)
        for at_ms, method, path, _, agent in lines
        if began_ms <= float(at_ms) <= ended_ms and path.partition("?")[0] == "/v3/auth/tokens"
    ]
    logins = [agent for method, agent in tokens if method == "POST"]
    ours = sum(agent.startswith("loadstone ") for agent in logins)  # others: the services' own
    return ours, sum(method == "GET" for method, _ in tokens)


def keep_capacities(lab: Deployment, folder: Path) -> None:
    """Put two searches of this very configuration into the store, as `capacity --lab` would."""
    result, _ = keystone()
    like, *_ = result.measurements
    assert like.capacity is not None
    environment = replace(result.environment, target=lab.facts())
    with Store.open(folder / "store") as store:
        for day, (scenario, rate_rps) in enumerate(CAPACITIES.items(), 1):
            capacity = replace(like.capacity, rate_rps=rate_rps)
            measurement = replace(like, scenario=scenario, capacity=capacity)
            run_id = f"2026110{day}-0931-ab12cd"
            store.begin(
                replace(result, run_id=run_id, measurements=(measurement,), environment=environment)
            )


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
    found: list[Any] = workloads(json.loads(result.read_text()))
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
    keep_capacities(lab, tmp_path)
    kept, new = carry_out(lab, task, tmp_path)
    for one in (kept, new):
        assert (one["total"]["count"], one["total"]["ok"]) == (BOOTS, BOOTS)
        assert counted(one) == logged(lab, one)
    # A token is issued once, and validated once by each of Nova, Glance and Neutron.
    logins, validations = counted(new)
    assert logins == BOOTS
    assert 0 <= validations - 3 * BOOTS <= OF_SERVICES
    assert new["identity_requests"]["per_iteration"] == (logins + validations) / BOOTS
    assert sum(counted(kept)) < 3 * BOOTS
    # Each login takes 1/8 of a second of Keystone, each validation 1/60.
    bears_rps = BOOTS / (logins / 8.0 + validations / 60.0)
    assert new["identity_requests"]["bound_rps"] == pytest.approx(bears_rps)
    names = {"image_name": "tiny", "flavor_name": "m1.nano"}
    carry_out(lab, DATA / "nova-boot-list-cc.yml", tmp_path, **names, times=4, concurrency=2)
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


def assert_scheduler_may_be_cut_off(lab: Deployment, folder: Path) -> None:
    """A published task file with its fault; only its times are shorter."""
    text = (DATA / "nova-disconnect-scheduler.yaml").read_text()
    task = folder / "nova-disconnect-scheduler.yaml"
    task.write_text(text.replace("duration: 600", "duration: 10").replace("at: [50]", "at: [3]"))
    [workload] = carry_out(lab, task, folder)
    assert workload["total"]["ok"] == workload["total"]["count"] > 0
    [[result]] = [hook["results"] for hook in workload["hooks"]]
    assert result["status"] == "success"
    assert deployment.find(lab.name).failure() is None


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
    assert_scheduler_may_be_cut_off(lab, tmp_path)
    deployment.down(lab.name, purge=True)
    assert processes.marked(lab.folder) == ()
    assert not lab.folder.exists()
