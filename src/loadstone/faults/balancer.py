"""Controls the lab's haproxy through its runtime API."""

import csv
import re
import time
from pathlib import Path

from loadstone.errors import EnvironmentUnusable, InvalidInput
from loadstone.faults import parts
from loadstone.lab.keystone.deployment import Deployment
from loadstone.lab.parts.haproxy import HANDSHAKE_FAILED, REQUEST, Haproxy
from loadstone.lab.parts.server import LONGEST_SOCKET
from loadstone.lab.ports import HOST
from loadstone.lab.processes import Process
from loadstone.lab.server_certificates import ServerCertificates
from loadstone.monitor.source import Unreadable
from loadstone.monitor.sources.address import MonitorAddress, read_address
from loadstone.monitor.sources.sockets import exchange

BACKEND = "nodes"
# Status and termination state, which is -- where neither side gave up (haproxy's manual, 8.5).
_REQUEST = re.compile(rf"{REQUEST} \S+ status=(-?\d)\d* ended=(\S+)".encode())
POLL_S = 0.02
PATIENCE_S = 120.0  # for a node that has just started on a busy machine


def server_of(node: int) -> str:
    """Return the name of a node's server."""
    return f"node-{node}"


def has_balancer(folder: Path) -> bool:
    """Return whether the deployment has haproxy with a stats socket."""
    return not missing(folder)


def missing(folder: Path) -> str:
    """Return why haproxy cannot be controlled, and what to do; empty if it can."""
    known = parts.read_state(folder)
    found = [one for one in known.records if one.part == "haproxy"]
    if not found:
        return (
            f"lab {folder.name} has no haproxy; make one with several nodes: "
            "loadstone lab up NAME --with nodes=2"
        )
    if Deployment(folder, known).is_provider:
        return (
            f"haproxy of lab {folder.name} stands before one provider, with no nodes to choose "
            "from; a lab of Keystone with nodes=2 has them"
        )
    if not found[0].statistics:
        return (
            f"haproxy of lab {folder.name} has no stats socket: the path of {folder} is too long "
            f"for one; use a shorter name or LOADSTONE_HOME (at most {LONGEST_SOCKET} bytes "
            "together with /run/haproxy.stats)"
        )
    return ""


def set_state(folder: Path, server: str, state: str) -> None:
    """Set a server's state: `maint` (gets no requests) or `ready`."""
    response = _command(folder, f"set server {BACKEND}/{server} state {state}\n").strip()
    if response:  # haproxy prints nothing on success
        raise EnvironmentUnusable(
            f"haproxy of lab {folder.name} does not set {server} to {state}: {response}"
        )


def set_port(folder: Path, server: str, port: int) -> None:
    """Send a server's requests to another port of this machine."""
    response = _command(folder, f"set server {BACKEND}/{server} addr {HOST} port {port}\n")
    if "chang" not in response.lower():  # "port changed from ...", "no need to change ..."
        raise EnvironmentUnusable(
            f"haproxy of lab {folder.name} does not send {server} to port {port}: "
            f"{response.strip()}"
        )


def require_tls(folder: Path) -> None:
    """Raise InvalidInput for a deployment whose haproxy does not end TLS."""
    known = parts.read_state(folder)
    if not Deployment(folder, known).has_tls or known.setting("nodes") == "1":
        raise InvalidInput(
            f"haproxy of lab {folder.name} serves no TLS; it needs --with nodes=2 --with tls=on"
        )


def set_certificate(folder: Path, *, is_valid: bool) -> None:
    """Present the valid or the expired certificate on new connections.

    Open connections stay open; earlier TLS sessions are not resumed.
    """
    certificates = ServerCertificates(folder)
    # haproxy knows a certificate by the file that it was started with.
    text = (certificates.valid if is_valid else certificates.expired).read_text().rstrip("\n")
    # This replaces a transaction that a crash left open.
    responses = (
        _command(folder, f"set ssl cert {certificates.valid} <<\n{text}\n\n"),
        _command(folder, f"commit ssl cert {certificates.valid}\n"),
    )
    if "Success" not in responses[-1]:
        output = " ".join(" ".join(responses).split())
        raise EnvironmentUnusable(
            f"haproxy of lab {folder.name} does not take another certificate: {output}"
        )


def is_up(folder: Path, server: str) -> bool:
    """Return whether haproxy sends requests to a server."""
    return _row(folder, server).get("status", "").startswith("UP")


def await_idle(folder: Path, server: str, patience_s: float) -> bool:
    """Wait until a server has no request in progress; return False on time-out."""
    deadline = time.monotonic() + patience_s
    while _row(folder, server).get("scur") != "0":
        if time.monotonic() > deadline:
            return False
        time.sleep(POLL_S)
    return True


def _row(folder: Path, server: str) -> dict[str, str]:
    table = _command(folder, "show stat\n").removeprefix("# ")
    rows = csv.DictReader(table.splitlines())
    mine = (row for row in rows if (row["pxname"], row["svname"]) == (BACKEND, server))
    return next(mine, {})


def await_up(folder: Path, server: str) -> None:
    """Wait until haproxy sends requests to a server (again)."""
    deadline = time.monotonic() + PATIENCE_S
    while not is_up(folder, server):
        if time.monotonic() > deadline:
            raise EnvironmentUnusable(
                f"haproxy of lab {folder.name} sends nothing to {server} after {PATIENCE_S:.0f} s"
            )
        time.sleep(POLL_S)


def await_all(folder: Path) -> None:
    """Wait until haproxy, if there is one, sends requests to every node."""
    if not has_balancer(folder):
        return
    for node in parts.nodes_of(parts.of_nodes(parts.read_state(folder).records)):
        await_up(folder, server_of(node))


def logged_failures(folder: Path) -> int | None:
    """Return the number of failed requests in haproxy's logs; None if there is no haproxy.

    A TLS handshake that the client aborts counts as a failed request.
    """
    if not has_balancer(folder):
        return None
    failed = 0
    for path in (folder / "logs").glob("haproxy*.log"):
        with path.open("rb") as log:
            failed += sum(_has_failed(line) for line in log)
    return failed


def _has_failed(line: bytes) -> bool:
    match = _REQUEST.match(line)
    if match is None:
        return HANDSHAKE_FAILED.encode() in line
    status, termination = match.groups()
    return status not in b"23" or termination != b"--"


def reload(folder: Path) -> Process:
    """Start a haproxy that takes over the sockets of the running one, as a reload does."""
    balancer = parts.part(folder, "haproxy")
    record = next(one for one in parts.read_state(folder).records if one.part == "haproxy")
    if record.process is None or not isinstance(balancer, Haproxy):
        raise AssertionError("a running deployment's haproxy has a process")
    return balancer.take_over(record.process)


def _command(folder: Path, command: str) -> str:
    try:
        return exchange(_address(folder), command.encode()).decode("ascii", "replace")
    except (Unreadable, OSError) as problem:
        raise EnvironmentUnusable(f"haproxy of lab {folder.name}: {problem}") from None


def _address(folder: Path) -> MonitorAddress:
    for record in parts.read_state(folder).records:
        if record.part == "haproxy" and record.statistics:
            return read_address(record.statistics, ("haproxy",))
    raise InvalidInput(missing(folder))
