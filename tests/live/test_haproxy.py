"""N of a real Keystone behind a real haproxy that refuses requests."""

import json
import os
import subprocess
import sys
from urllib.parse import urlsplit

import pytest
from documents import only
from haproxy import ISSUES, haproxy, limited

pytestmark = [pytest.mark.live, pytest.mark.timeout(900), pytest.mark.verify]


@pytest.fixture
def searched(exclusive_keystone, tmp_path):
    """Search through a port by the command line; return how it ended, and the data."""

    def search(port, *words):
        variables = exclusive_keystone.environment_variables()
        variables["OS_AUTH_URL"] = f"http://127.0.0.1:{port}/v3"
        ended = subprocess.run(
            (
                *(sys.executable, "-m", "loadstone", "capacity", "--users", "0"),
                *("--store", str(tmp_path), "--json", "-", *words),
            ),
            env=os.environ | variables,
            capture_output=True,
            text=True,
            check=False,
        )
        assert "Traceback" not in ended.stderr
        print(ended.stdout)
        return ended, only(json.loads(ended.stdout))

    return search


def port_of(deployment):
    return urlsplit(deployment.url).port


def assert_n(ended, found, limit_rps):
    """N is the limit."""
    capacity = found["capacity"]
    assert ended.returncode == 0, ended.stderr
    assert capacity["kind"] == "refusal"
    assert capacity["rate_rps"] == pytest.approx(limit_rps, rel=0.15)
    assert "refuses with 429" in capacity["words"][0]


def test_n_behind_a_limit_that_counts_what_it_refuses(searched, exclusive_keystone):
    with haproxy(port_of(exclusive_keystone), frontend=limited(10, "1s", ISSUES)) as port:
        ended, found = searched(port, "--scenario", "issue", "--budget", "60s")
    assert_n(ended, found, 10.0)


def test_n_behind_a_queue_with_a_time_out_is_that_of_the_service(searched, exclusive_keystone):
    backend = "timeout queue 1s"
    with haproxy(port_of(exclusive_keystone), backend=backend, server="maxconn 2") as port:
        ended, found = searched(port, "--scenario", "validate", "--budget", "60s")
    capacity = found["capacity"]
    assert ended.returncode == 0, ended.stderr
    assert capacity["kind"] in ("saturation", "refusal")
    most_rps = max(trial["throughput_rps"] for trial in found["trials"])
    # A queue that ends after a second refuses by chance a little below what two workers do.
    assert 0.6 * most_rps <= capacity["rate_rps"] <= 1.1 * most_rps
