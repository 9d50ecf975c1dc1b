"""Hosts, clients and schedulers that die or hang: nothing keeps loading, and who it was is said."""

import gc
import os
import resource
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from known_service import ISSUE, NAME, Known, known_service, seen_by, serving
from network_hosts import HERE, network
from reserved_port import reserve_port
from skewed_clock import SkewedClock

from loadstone.engine.fleet import certificates, connect, daemons
from loadstone.engine.fleet.address import LocalFleet, SchedulerAddress
from loadstone.engine.fleet.fleet import FleetHost
from loadstone.engine.fleet.member import LEASE_S
from loadstone.engine.parquet import read
from loadstone.engine.progress import OnProgress, Progress
from loadstone.errors import EnvironmentUnusable
from loadstone.plan.load import OpenLoad
from loadstone.plan.model import Limits, Origin, Plan

pytestmark = pytest.mark.timeout(900)

SUPPORT = Path(__file__).parents[2] / "support"
LOSSES = [signal.SIGKILL, signal.SIGSTOP]


def plan_of(known: Known, duration_s: float) -> Plan:
    return plan_to("127.0.0.1", known.port, duration_s)


def plan_to(address: str, port: int, duration_s: float) -> Plan:
    is_here = address == "127.0.0.1"
    limits = Limits(max_rate_rps=5000.0, load_s=60.0, drain_s=5.0, loopback_only=is_here)
    load = OpenLoad(60.0, duration_s)
    return Plan(Origin("http", address, port), (ISSUE,), load, limits=limits)


@contextmanager
def separate_fleet(
    folder: Path, host: str = "127.0.0.1", workers: Sequence[Sequence[str]] = ((), ())
) -> Iterator[SchedulerAddress]:
    """Start a scheduler here, and a worker by each of these prefixes of a command."""
    port = reserve_port()
    certificates.make(folder)
    address = SchedulerAddress(f"tls://{host}:{port}", folder)
    try:
        daemons.start_scheduler(folder, host, port)
        for prefix in workers:
            daemons.start_workers(address, 1, prefix)
        yield address
    finally:
        daemons.end(folder)


@contextmanager
def stopped_again(victim: FleetHost, sent: int) -> Iterator[None]:
    """Let a stopped process end."""
    try:
        yield
    finally:
        if sent == signal.SIGSTOP:
            os.kill(victim.facts.pid, signal.SIGCONT)


def under_load(act: Callable[[], object], *after_s: float) -> OnProgress:
    """Return a watch that acts so long after the load's first progress, or at once.

    A timer that runs from the order to load may act before the load: preparing takes its time.
    """
    timers = [threading.Timer(one, act) for one in after_s or (0.0,)]

    def watch(progress: Progress) -> bool:
        while progress.sent and timers:
            timers.pop().start()
        return True

    return watch


@pytest.mark.parametrize("sent", LOSSES)
def test_a_host_that_is_lost_under_load_makes_the_trial_invalid_and_is_named(
    sent: int, tmp_path: Path
) -> None:
    with known_service(8, 0.01) as known, connect.opened(LocalFleet(2)) as fleet:
        victim = fleet.hosts[1]
        watch = under_load(lambda: os.kill(victim.facts.pid, sent), 1.5)
        with stopped_again(victim, sent):
            found = fleet.run_to_file(plan_of(known, 20.0), tmp_path / "samples.parquet", watch)
            assert not found.health.is_valid
            assert any(victim.name in limit for limit in found.health.limits), found.health.limits
            # What had arrived of the lost host is kept, too.
            sent_by = Counter(read(found.file.path).generator.tolist())
            assert sent_by[0] > sent_by[1] > 0
            with pytest.raises(EnvironmentUnusable, match="was lost under load"):
                fleet.run(plan_of(known, 1.0))
        assert ends_at(known) < 60 * 20
    gc.collect()  # not in a later test


@pytest.mark.parametrize(
    "sent", [pytest.param(signal.SIGKILL, marks=pytest.mark.verify), signal.SIGSTOP]
)
def test_a_host_that_is_lost_between_two_loads_is_named_and_nothing_is_sent(sent: int) -> None:
    with known_service(8, 0.01) as known, connect.opened(LocalFleet(2)) as fleet:
        assert len(fleet.run(plan_of(known, 0.5)).samples) == 30
        victim = fleet.hosts[0]
        os.kill(victim.facts.pid, sent)
        with stopped_again(victim, sent):
            with pytest.raises(EnvironmentUnusable) as told:
                fleet.run(plan_of(known, 5.0))
            assert str(told.value).startswith(f"{victim.name} of the fleet was lost: ")
        assert seen_by(known)["worked"] == 30


@pytest.mark.verify
def test_when_all_hosts_are_lost_what_had_arrived_is_kept() -> None:
    with known_service(8, 0.01) as known, connect.opened(LocalFleet(2)) as fleet:
        pids = [host.facts.pid for host in fleet.hosts]
        watch = under_load(lambda: [os.kill(pid, signal.SIGKILL) for pid in pids], 1.5)
        found = fleet.run(plan_of(known, 20.0), watch)
        assert len(found.samples) > 0
        assert len(found.health.limits) == 2


@pytest.mark.verify
@pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces need root")
def test_a_host_that_is_cut_off_between_two_loads_is_named(tmp_path: Path) -> None:
    options = (f"--host={HERE}", f"--user={NAME}", f"--project={NAME}")
    with network(2) as hosts, serving(*options) as (port, _):
        prefixes = [host.command() for host in hosts]
        with (
            separate_fleet(tmp_path / "fleet", HERE, prefixes) as address,
            connect.opened(address) as fleet,
        ):
            assert len(fleet.run(plan_to(HERE, port, 0.5)).samples) == 30
            hosts[1].cut_off()
            with pytest.raises(EnvironmentUnusable) as told:
                fleet.run(plan_to(HERE, port, 5.0))
            assert f"({hosts[1].address}:" in str(told.value)
            assert "no answer within 2 s" in str(told.value)


# Dask leaves the socket of a connection attempt to a dead scheduler to the garbage collector.
@pytest.mark.filterwarnings("ignore:unclosed <ssl.SSLSocket:ResourceWarning")
def test_a_scheduler_that_is_killed_ends_the_load(tmp_path: Path) -> None:
    with known_service(8, 0.01) as known, separate_fleet(tmp_path / "fleet") as address:
        [scheduler] = [
            one for one in daemons.running(tmp_path / "fleet") if one.name == "scheduler"
        ]
        with connect.opened(address) as fleet:
            watch = under_load(lambda: os.kill(scheduler.pid, signal.SIGKILL), 1.5)
            found = fleet.run(plan_of(known, 20.0), watch)
            assert any("the scheduler of the fleet ended" in one for one in found.health.limits)
            assert len(found.samples) > 0
            with pytest.raises(EnvironmentUnusable, match="the scheduler of the fleet ended"):
                fleet.run(plan_of(known, 1.0))
        assert ends_at(known) < 60 * 20


def test_clocks_that_jump_under_load_make_the_trial_invalid(tmp_path: Path) -> None:
    jump = tmp_path / "jump"
    clocks = [SkewedClock(jump_ns=by_s * 10**9, jumps_with=jump) for by_s in (5, -5)]
    with known_service(8, 0.01) as known, connect.opened(LocalFleet(2), clocks) as fleet:
        found = fleet.run(plan_of(known, 2.0), under_load(jump.touch))
        by_host = [one for one in found.health.limits if "was set by" in one]
        for host, told, by_s in zip(fleet.hosts, by_host, (5, -5), strict=True):
            assert host.name in told
            assert float(told.partition("was set by ")[2].split()[0]) == pytest.approx(by_s, abs=1)
        assert len(found.samples) == 120
        again = fleet.run(plan_of(known, 0.5))  # they are steady again
        assert not [one for one in again.health.limits if "was set by" in one]
        assert len(again.samples) == 30


def test_a_second_client_is_refused_while_the_first_is_at_work(tmp_path: Path) -> None:
    with known_service(8, 0.01) as known, separate_fleet(tmp_path / "fleet") as address:
        with connect.opened(address) as fleet:
            with (
                pytest.raises(EnvironmentUnusable, match="another client is at work there"),
                connect.opened(address),
            ):
                pass
            assert len(fleet.run(plan_of(known, 0.5)).samples) == 30
        with connect.opened(address) as next_one:
            assert len(next_one.run(plan_of(known, 0.5)).samples) == 30


def test_a_host_whose_disk_is_full_loads_as_any_other(tmp_path: Path) -> None:
    with known_service(8, 0.01) as known, connect.opened(LocalFleet(2)) as fleet:
        # Any write to a file fails.
        resource.prlimit(fleet.hosts[1].facts.pid, resource.RLIMIT_FSIZE, (0, 0))
        found = fleet.run_to_file(plan_of(known, 1.0), tmp_path / "samples.parquet")
        assert found.file.rows == 60
        assert fleet.failure() is None


def test_a_second_ctrl_c_gives_up_what_is_outstanding_and_keeps_what_was_measured() -> None:
    with known_service(1, 20.0) as known, connect.opened(LocalFleet(2)) as fleet:
        me = os.getpid()
        watch = under_load(lambda: os.kill(me, signal.SIGINT), 0.5, 1.5)
        found = fleet.run(plan_of(known, 30.0), watch)
        assert found.interrupted
        assert fleet.failure() is None
        assert 0 < len(found.samples) < 60 * 10


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP])
def test_what_a_terminal_sends_to_all_processes_ends_no_process_of_a_local_fleet(number) -> None:
    with known_service(4, 0.01) as known, connect.opened(LocalFleet(2)) as fleet:
        for host in fleet.hosts:
            os.kill(host.facts.pid, number)
        found = fleet.run(plan_of(known, 1.0))
        assert len(found.samples) == 60
        assert fleet.failure() is None


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


INTERRUPTED = """
import os, signal, sys
import distributed
from loadstone.engine.fleet.address import LocalFleet
from loadstone.engine.fleet.client import opened
from loadstone.system import interrupts

class Cluster(distributed.LocalCluster):
    def _correct_state(self):
        # Once: its workers are about to start.
        if not sent:
            sent.append(os.kill(os.getpid(), signal.SIGTERM))
        return super()._correct_state()

if __name__ == "__main__":
    sent = []
    interrupts.interrupt_on_signals()
    distributed.LocalCluster = Cluster
    try:
        with opened(LocalFleet(1)):
            pass
    except KeyboardInterrupt:
        sys.exit(interrupts.exit_code())
"""


def test_a_fleet_whose_start_is_interrupted_ends_without_a_traceback(tmp_path: Path) -> None:
    script = tmp_path / "interrupted.py"
    script.write_text(INTERRUPTED)
    ended = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, timeout=100, check=False
    )
    assert (ended.returncode, ended.stderr) == (143, "")
