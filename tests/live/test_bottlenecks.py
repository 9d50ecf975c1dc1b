"""Targets that are limited on purpose: what gives way is known from outside."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from documents import only, workloads

from loadstone.lab.deployment import Deployment

pytestmark = [pytest.mark.live, pytest.mark.verify, pytest.mark.timeout(900)]

TASK = """\
version: 2
title: Logins
subtasks:
  - title: Logins
    scenario: {{Authenticate.keystone: {{}}}}
    runner: {runner}
    contexts: {{users: {{tenants: 1, users_per_tenant: 2}}}}
"""


def measured(deployment: Deployment, runner: str, folder: Path) -> dict:
    """Load logins; return the workload as data."""
    task, found = folder / "task.yaml", folder / "found.json"
    task.write_text(TASK.format(runner=runner))
    command = [sys.executable, "-m", "loadstone", "run", task, "--lab", deployment.name]
    command += ["--store", folder / "store", "--json", found]
    subprocess.run(command, check=True, capture_output=True, timeout=500)
    return workloads(json.loads(found.read_text()))[0]


def test_a_balancer_that_lets_few_requests_through_is_named(start, tmp_path):
    deployment = start("nodes=2", "workers=2", "maxconn=1", "database=mariadb")
    runner = "{constant_for_duration: {duration: 10, concurrency: 16}}"
    found = measured(deployment, runner, tmp_path)
    assert (found["bottleneck"]["kind"], found["bottleneck"]["role"]) == ("balancer", "balancer")
    assert "sessions" in found["bottleneck"]["sentence"]
    assert found["findings"][0]["id"] == "balancer-maxconn"


def test_a_service_that_has_little_to_do_has_no_bottleneck(start, tmp_path):
    deployment = start("workers=4", "database=mariadb")
    runner = "{rps: {times: 10, rps: 1}}"
    found = measured(deployment, runner, tmp_path)
    assert found["bottleneck"]["kind"] == "none", found["bottleneck"]["sentence"]
    assert found["resources"]
    assert found["not_watched"] == []
    # Each login writes and reads; the database's own counters say how often.
    assert found["resource_figures"]["statements_per_request"] > 10


def test_capacity_is_predicted_from_a_low_load_and_compared_with_the_measured_one(start, tmp_path):
    deployment = start("workers=1", "hash-rounds=10")
    found = tmp_path / "found.json"
    command = [sys.executable, "-m", "loadstone", "capacity", "--lab", deployment.name]
    command += ["--predict", "first", "--budget", "20s", "--users", "0", "--json", found]
    subprocess.run(
        [*command, "--store", tmp_path / "store"], check=True, capture_output=True, timeout=500
    )
    data = only(json.loads(found.read_text()))
    predicted = data["predicted"]
    assert predicted["low_rps"] < predicted["rate_rps"] < predicted["high_rps"]
    assert predicted["at_rps"] < 0.6 * predicted["rate_rps"]  # it was a low load
    # What it really did in its fastest trial is of the same size. How exact predictions are is
    # measured by verification/diagnosis/prediction.py, on a machine with nothing else to do.
    fastest_rps = max(one["throughput_rps"] for one in data["trials"])
    assert fastest_rps / 2 < predicted["rate_rps"] < fastest_rps * 2
    assert any("measured N" in line for line in data["words"])


def test_a_profile_finds_the_password_hash_in_the_workers(start, tmp_path):
    deployment = start("workers=2", "hash-rounds=12")
    (tmp_path / "task.yaml").write_text(
        TASK.format(runner="{constant_for_duration: {duration: 8, concurrency: 2}}")
    )
    store, found = tmp_path / "store", tmp_path / "found.json"
    command = [sys.executable, "-m", "loadstone", "run", tmp_path / "task.yaml"]
    command += ["--lab", deployment.name, "--profile", "--store", store, "--json", found]
    subprocess.run(command, check=True, capture_output=True, timeout=500)
    data = json.loads(found.read_text())
    (workload,) = workloads(data)
    parts = workload["profile"]["parts"]
    assert max(parts, key=parts.get) == "password hashing", parts
    kept = store / "runs" / data["run_id"] / workload["profile"]["file"]
    assert "password_hashers/bcrypt.py" in kept.read_text()
