"""--max-rate and --budget hold for everything that the commands load; counted at the target."""

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from documents import only
from fake_keystone import PASSWORD, FakeKeystone
from fake_server import serving

from loadstone.search.strategies import DEFAULT, STRATEGIES

MOST_RPS = 10
# A busy machine holds requests up, which then arrive together. Without a ceiling each of these
# loads would send more than 50 requests a second for longer than it takes to exceed this.
STALL_S = 5
RUNNERS = {
    "constant": "constant: {times: 120, concurrency: 20}",
    "constant_for_duration": "constant_for_duration: {duration: 5, concurrency: 20}",
    "serial": "serial: {times: 120}",
}


class Logged(FakeKeystone):
    """A fake Keystone that notes when tokens are asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.at_s: list[float] = []
        self.noting = threading.Lock()

    def issue(self, body):
        with self.noting:
            self.at_s.append(time.monotonic())
        return super().issue(body)


@pytest.fixture
def target() -> Iterator[tuple[Logged, str]]:
    fake = Logged()
    with serving(fake.handler()) as url:
        yield fake, url


def loadstone(url: str, home: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    kept = {name: value for name, value in os.environ.items() if not name.startswith("OS_")}
    return subprocess.run(
        [sys.executable, "-m", "loadstone", *words],
        env=kept
        | {
            "LOADSTONE_HOME": str(home),
            "OS_AUTH_URL": f"{url}/v3",
            "OS_USERNAME": "admin",
            "OS_PASSWORD": PASSWORD,
            "OS_USER_DOMAIN_ID": "default",
        },
        cwd=home,
        capture_output=True,
        text=True,
        check=False,
        timeout=500,
    )


def require_slow(at_s: list[float], beside: int) -> None:
    """No stretch of time has more requests than the ceiling allows; `beside` prepare the load."""
    arrived_s = np.array(at_s)
    # The most by which a stretch that ends with a request exceeds the ceiling, in requests.
    excess = 1 + np.arange(len(arrived_s)) - MOST_RPS * arrived_s
    most = float((excess - np.minimum.accumulate(excess - 1)).max())
    allowed = MOST_RPS * STALL_S + beside + 1
    assert most <= allowed, f"{most:.0f} requests more than {MOST_RPS}/s in some stretch of time"


# Those of ISP RAS 2015 take an hour; they offer constant rates below the ceiling only.
METHODS = [
    pytest.param(name, marks=() if name == DEFAULT else pytest.mark.verify)
    for name in sorted(STRATEGIES)
    if not name.startswith("isp-ras-2015")
]


@pytest.mark.parametrize("method", METHODS)
def test_no_search_method_sends_more_than_it_may_or_for_longer(
    target: tuple[Logged, str], tmp_path: Path, method: str
) -> None:
    fake, url = target
    limits = ("--max-rate", str(MOST_RPS), "--budget", "20s")
    # One step of step-concurrency, which rests a minute before the next.
    narrow = ("--max-connections", "10") if method == "step-concurrency" else ()
    words = ("--method", method, "--users", "1", *limits, *narrow, "--json", "-")
    ended = loadstone(url, tmp_path, "capacity", *words)
    assert "Traceback" not in ended.stderr
    assert fake.at_s
    require_slow(fake.at_s, beside=4)
    found = only(json.loads(ended.stdout))
    assert found["load_seconds"] < 20 + 10  # with late answers on a busy machine


def run_task(url: str, home: Path, runner: str) -> "subprocess.CompletedProcess[str]":
    (home / "task.yaml").write_text(
        "version: 2\ntitle: t\nsubtasks:\n"
        "  - title: s\n    scenario: {Authenticate.keystone: {}}\n"
        f"    runner: {{{runner}}}\n"
        "    contexts: {users: {tenants: 1, users_per_tenant: 1}}\n"
    )
    return loadstone(url, home, "run", "task.yaml", "--max-rate", str(MOST_RPS), "--json", "-")


@pytest.mark.parametrize("runner", RUNNERS)
def test_no_runner_of_a_task_sends_more_than_it_may(
    target: tuple[Logged, str], tmp_path: Path, runner: str
) -> None:
    fake, url = target
    ended = run_task(url, tmp_path, RUNNERS[runner])
    assert "Traceback" not in ended.stderr
    assert len(fake.at_s) > 20
    require_slow(fake.at_s, beside=2)


def test_a_rate_above_the_ceiling_is_refused_before_any_request(
    target: tuple[Logged, str], tmp_path: Path
) -> None:
    fake, url = target
    ended = run_task(url, tmp_path, "rps: {times: 120, rps: 100}")
    assert ended.returncode == 2, ended.stderr
    assert "--max-rate" in ended.stderr
    assert fake.at_s == []
