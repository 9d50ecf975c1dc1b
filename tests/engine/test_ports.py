"""Requests for which this machine has no port, address or open file left."""

import subprocess
import sys
from pathlib import Path

import loadstone

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


# Runs without IPv6.
NO_ADDRESS = """
from pathlib import Path

from loopback import GET
from loadstone.engine.local import run
from loadstone.engine.samples import Outcome
from loadstone.plan.load import ClosedLoad
from loadstone.plan.model import Origin, Plan

Path("/proc/sys/net/ipv6/conf/all/disable_ipv6").write_text("1")
measured = run(Plan(Origin("http", "::1", 5000), (GET,), ClosedLoad(1, duration_s=0.1)))
print(sorted({Outcome(code).name for code in measured.samples.outcome}))
print(measured.health.without_port)
"""

# The listener accepts nothing, so it needs no files itself.
FEW_FILES = """
import os
import resource
import socket
from collections import Counter

from loopback import GET
from loadstone.engine.local import run
from loadstone.engine.samples import Outcome
from loadstone.plan.load import ClosedLoad
from loadstone.plan.model import Limits, Origin, Plan

resource.setrlimit(resource.RLIMIT_NOFILE, (30 + 64, 30 + 64))
listener = socket.create_server(("127.0.0.1", 0), backlog=100)
held = [os.open("/dev/null", os.O_RDONLY) for _ in range(60)]
origin = Origin("http", "127.0.0.1", listener.getsockname()[1])
limits = Limits(max_connections=30, drain_s=0.1)
measured = run(Plan(origin, (GET,), ClosedLoad(30, duration_s=0.3), limits=limits))
outcomes = Counter(Outcome(code).name for code in measured.samples.outcome)
print(sorted(outcomes))
print(measured.health.without_file == outcomes["NO_FILE"])
print(measured.health.is_valid)
print("\\n".join(measured.health.limits))
"""


def ended(script: str) -> list[str]:
    """Return the lines that a script prints in a network namespace of its own."""
    support, source = Path(__file__).parents[1] / "support", Path(loadstone.__file__).parents[1]
    ended = subprocess.run(
        ["unshare", "--user", "--map-root-user", "--net", "sh", "-c",
         'ip link set lo up && exec "$0" -c "$1"', sys.executable, script],
        env={"PYTHONPATH": f"{support}:{source}", "PATH": "/usr/sbin:/usr/bin:/sbin:/bin"},
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    return ended.stdout.splitlines()


def test_requests_without_a_local_port_are_counted_and_make_the_run_invalid() -> None:
    outcomes, counted, valid, *limits = ended(FEW_PORTS)
    assert outcomes == "['NO_PORT', 'OK']"
    assert (counted, valid) == ("True", "False")
    assert any("no free local port on this machine" in limit for limit in limits)


def test_requests_without_an_open_file_are_counted_and_make_the_run_invalid() -> None:
    outcomes, counted, valid, *limits = ended(FEW_FILES)
    assert outcomes == "['NOT_SENT', 'NO_FILE']"
    assert (counted, valid) == ("True", "False")
    assert any("no file left to open on this machine" in limit for limit in limits)


def test_an_address_that_this_machine_cannot_send_to_does_not_lack_a_port() -> None:
    assert ended(NO_ADDRESS) == ["['CONNECT_FAILED']", "0"]
