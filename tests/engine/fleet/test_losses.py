"""Hosts, clients and schedulers that die or hang: nothing keeps loading, and who it was is said."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from known_service import ISSUE, Known, known_service, seen_by

from loadstone.engine.fleet import connect
from loadstone.engine.fleet.address import LocalFleet
from loadstone.engine.fleet.member import LEASE_S
from loadstone.errors import EnvironmentUnusable
from loadstone.plan.load import OpenLoad
from loadstone.plan.model import Limits, Origin, Plan

pytestmark = pytest.mark.timeout(180)

SUPPORT = Path(__file__).parents[2] / "support"


def plan_of(known: Known, duration_s: float) -> Plan:
    limits = Limits(max_rate_rps=5000.0, load_s=60.0, drain_s=5.0)
    origin = Origin("http", "127.0.0.1", known.port)
    return Plan(origin, (ISSUE,), OpenLoad(60.0, duration_s), limits=limits)


@pytest.mark.parametrize("sent", [signal.SIGKILL, signal.SIGSTOP])
def test_a_host_that_is_lost_under_load_makes_the_trial_invalid_and_is_named(sent: int) -> None:
    with known_service(8, 0.01) as known, connect.opened(LocalFleet(2)) as fleet:
        victim = fleet.hosts[1]
        threading.Timer(1.5, os.kill, (victim.facts.pid, sent)).start()
        try:
            found = fleet.run(plan_of(known, 20.0))
            assert not found.health.is_valid
            assert any(victim.name in limit for limit in found.health.limits), found.health.limits
            assert 30 < len(found.samples) < 1000
            with pytest.raises(EnvironmentUnusable, match="was lost under load"):
                fleet.run(plan_of(known, 1.0))
        finally:
            if sent == signal.SIGSTOP:
                os.kill(victim.facts.pid, signal.SIGCONT)
        seen = ends_at(known)
    assert seen < 60 * 20


def test_a_second_ctrl_c_gives_up_what_is_outstanding_and_keeps_what_was_measured() -> None:
    with known_service(1, 20.0) as known, connect.opened(LocalFleet(2)) as fleet:
        for after_s in (1.5, 2.5):
            threading.Timer(after_s, os.kill, (os.getpid(), signal.SIGINT)).start()
        found = fleet.run(plan_of(known, 30.0))
        assert found.interrupted
        assert fleet.failure() is None
        assert 0 < len(found.samples) < 60 * 10


def test_hosts_whose_client_was_killed_stop_loading() -> None:
    with known_service(8, 0.01) as known:
        client = subprocess.Popen(
            [sys.executable, SUPPORT / "fleet_client.py", str(known.port)],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert client.stdout is not None
        assert client.stdout.readline() == "loads\n"
        client.kill()
        client.wait()
        client.stdout.close()
        before = seen_by(known)["worked"]
        assert ends_at(known) <= before + 60 * (LEASE_S + 3)


def ends_at(known: Known) -> int:
    """Return how much had been worked when nothing more came."""
    seen, until_s = -1, time.monotonic() + 30
    while time.monotonic() < until_s:
        now = int(seen_by(known)["worked"])
        if now == seen:
            return now
        seen = now
        time.sleep(1.0)
    raise AssertionError("the load goes on")
