"""The compute cloud beside Keystone."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from loadstone.keystone import deployment
from loadstone.keystone.deployment import Deployment
from loadstone.lab import processes
from loadstone.target import connect, from_environment

pytestmark = [pytest.mark.live, pytest.mark.slow, pytest.mark.timeout(900)]

BOOTS = 25  # at each concurrency


def boots(concurrency: int) -> dict[str, object]:
    """Return a subtask that boots servers."""
    workload = {
        "scenario": {
            "NovaServers.boot_and_list_server": {
                "image": {"name": "tiny"},
                "flavor": {"name": "m1.nano"},
            }
        },
        "runner": {"constant": {"times": BOOTS, "concurrency": concurrency}},
        "contexts": {"users": {"tenants": 2, "users_per_tenant": 2}},
        "sla": {"failure_rate": {"max": 0}},
    }
    return {"title": f"{concurrency} at a time", "workloads": [workload]}


def carry_out(lab: Deployment, task: dict[str, object], folder: Path) -> dict[str, object]:
    """Run a task against the lab; return its result."""
    file, result = folder / "task.json", folder / "result.json"
    file.write_text(json.dumps({"version": 2, "title": "Servers", **task}))
    done = subprocess.run(
        (
            *(sys.executable, "-m", "loadstone", "run", str(file), "--lab", lab.name),
            *("--store", str(folder / "store"), "--json", str(result)),
        ),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    found: dict[str, object] = json.loads(result.read_text())
    return found


def test_servers_boot_and_nothing_is_left(start: Callable[..., Deployment], tmp_path: Path) -> None:
    lab = start("compute=nova", "database=mariadb")
    facts = dict(lab.facts())
    assert facts["compute"].startswith("nova (nova 34")
    assert (facts["middleware cache"], facts["service tokens"]) == ("local", "on")
    found = carry_out(lab, {"subtasks": [boots(2), boots(8)]}, tmp_path)
    assert [(one["total"]["count"], one["total"]["ok"]) for one in found["workloads"]] == [
        (BOOTS, BOOTS),
        (BOOTS, BOOTS),
    ]
    with connect(from_environment(lab.environment_variables())) as access:
        servers = access.session.get(f"{access.service_url('compute')}/servers?all_tenants=1")
        users = access.session.get(f"{access.identity_url}/users")
    assert servers.json()["servers"] == []
    names = {user["name"] for user in users.json()["users"]}
    assert names == {"admin", "nova", "placement", "glance", "neutron"}
    deployment.down(lab.name, purge=True)
    assert processes.marked(lab.folder) == ()
    assert not lab.folder.exists()
