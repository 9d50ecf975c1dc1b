"""Requests for which this machine has no local port left."""

import subprocess
import sys
from pathlib import Path

# Runs in a network namespace of its own, whose loopback has 20 local ports.
FEW_PORTS = """
from collections import Counter
from pathlib import Path

from loopback import GET, OK, Server, answering
from loadstone.engine.local import run
from loadstone.engine.samples import Outcome
from loadstone.plan.load import ClosedLoad

Path("/proc/sys/net/ipv4/ip_local_port_range").write_text("40000 40019")
server = Server(answering(OK))
server.start()
measured = run(server.plan(ClosedLoad(30, duration_s=1.0)))
server.stop()
outcomes = Counter(Outcome(code).name for code in measured.samples.outcome)
print(sorted(outcomes))
print(measured.health.without_port == outcomes["NO_PORT"])
print(measured.health.is_valid)
print("\\n".join(measured.health.limits))
"""


def test_requests_without_a_local_port_are_counted_and_make_the_run_invalid() -> None:
    support = Path(__file__).parents[1] / "support"
    ended = subprocess.run(
        ["unshare", "--user", "--map-root-user", "--net", "sh", "-c",
         'ip link set lo up && exec "$0" -c "$1"', sys.executable, FEW_PORTS],
        env={"PYTHONPATH": str(support), "PATH": "/usr/sbin:/usr/bin:/sbin:/bin"},
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    outcomes, counted, valid, *limits = ended.stdout.splitlines()
    assert outcomes == "['NO_PORT', 'OK']"
    assert (counted, valid) == ("True", "False")
    assert any("no free local port on this machine" in limit for limit in limits)
