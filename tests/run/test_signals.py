"""Ctrl-C and SIGTERM in mid-load: kept, cleaned up, the status right."""

import json
import os
import signal
import subprocess
import sys
import threading

import pytest
from documents import workloads

TASK = """
Authenticate.keystone:
  - runner: {type: constant_for_duration, duration: 600, concurrency: 2}
    context: {users: {tenants: 1, users_per_tenant: 2}}
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_keeps_what_was_measured_and_removes_the_users(loadstone, fake, write, number):
    enough = threading.Event()

    def count(_method, _path):
        # The admin, two users, and some of the load.
        if fake.calls["POST", "/v3/auth/tokens"] > 20:
            enough.set()

    fake.disturb = count
    with subprocess.Popen(
        [sys.executable, "-m", "loadstone", "run", write(TASK)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=dict(os.environ),
    ) as process:
        assert enough.wait(timeout=500)
        process.send_signal(number)
        shown, told = process.communicate(timeout=500)
    assert process.returncode == 128 + number, told
    assert "Traceback" not in told
    assert "authenticate.keystone" in shown
    assert fake.names("users") == fake.names("domains") == []
    kept = json.loads(loadstone("results", "show", "latest", "--json", "-").stdout)
    assert kept["status"] == "interrupted"
    assert workloads(kept)[0]["status"] == "interrupted"
    assert workloads(kept)[0]["total"]["count"] > 5
