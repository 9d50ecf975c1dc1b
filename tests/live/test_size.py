"""`loadstone size` on a real Keystone: what a login costs, against the kernel's own account."""

import json
import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from lab_client import token_of

from loadstone.lab.deployment import Deployment

pytestmark = [pytest.mark.live, pytest.mark.verify, pytest.mark.timeout(900)]
LOGINS = 150


def cpu_s(deployment: Deployment) -> float:
    """Return the CPU seconds that the deployment's processes have used."""
    times = [psutil.Process(pid).cpu_times() for pid in deployment.pids()]
    return sum(one.user + one.system for one in times)


def call(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "loadstone", *words, "--store", str(folder / "store")],
        capture_output=True,
        text=True,
        check=False,
        timeout=500,
    )


def test_the_cores_that_logins_take_are_those_that_the_kernel_accounts(start, tmp_path):
    deployment = start("workers=2", "hash-rounds=8")
    words = ("--lab", deployment.name, "--users", "2", "--budget", "25s")
    measured = call(tmp_path, "capacity", *words)
    assert measured.returncode == 0, measured.stderr
    variables = deployment.environment_variables()
    token_of(variables)
    before_s = cpu_s(deployment)
    for _ in range(LOGINS):
        token_of(variables)
    truth_s = (cpu_s(deployment) - before_s) / LOGINS
    sized = call(tmp_path, "size", "--logins", "100/s", "--json", "-")
    assert sized.returncode == 0, sized.stderr
    found = json.loads(sized.stdout)
    # One login after the other costs less than many at once: caches of the processor are warm.
    assert found["cores"]["keystone"]["value"] == pytest.approx(100 * truth_s / 0.6, rel=0.35)
    assert found["nodes"]["value"] >= 100 * truth_s / (os.cpu_count() or 1)
    assert found["database"] is None  # SQLite is no server
