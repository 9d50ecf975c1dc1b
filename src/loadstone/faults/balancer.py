"""The lab's haproxy: which servers get requests, and taking one out."""

import csv
import re
import time
from pathlib import Path

from loadstone.errors import EnvironmentUnusable, InvalidInput
from loadstone.faults import parts
from loadstone.keystone.deploy.deployment import Deployment
from loadstone.lab.haproxy import HANDSHAKE_FAILED, REQUEST, Haproxy
from loadstone.lab.ports import HOST
from loadstone.lab.processes import Process
from loadstone.lab.server_certificates import ServerCertificates
from loadstone.monitor.source import Unreadable
from loadstone.monitor.sources.address import Address, read_address
from loadstone.monitor.sources.sockets import ask

BACKEND = "nodes"
# Status and termination state, which is -- where neither side gave up (haproxy's manual, 8.5).
_REQUEST = re.compile(rf"{REQUEST} \S+ status=(-?\d)\d* ended=(\S+)".encode())
POLL_S = 0.02
PATIENCE_S = 120.0  # for a node that has just started on a busy machine


def server_of(node: int) -> str:
    """Return the name of a node's server."""
    return f"node-{node}"


def has_balancer(folder: Path) -> bool:
    """Return whether the deployment has haproxy with a socket."""
    found = parts.known(folder)
    return any(one.statistics for one in found.records if one.part == "haproxy")


def set_state(folder: Path, server: str, wanted: str) -> None:
    """Make a server `maint` (no requests) or `ready`."""
    answer = _ask(folder, f"set server {BACKEND}/{server} state {wanted}\n").strip()
    if answer:  # haproxy says nothing where it obeys
        raise EnvironmentUnusable(
            f"haproxy of lab {folder.name} does not set {server} to {wanted}: {answer}; a lab that "
            "was started by an older loadstone must be started again"
        )


def set_port(folder: Path, server: str, port: int) -> None:
    """Send what a server is to get to another port of this machine."""
    answer = _ask(folder, f"set server {BACKEND}/{server} addr {HOST} port {port}\n")
    if "chang" not in answer.lower():  # "port changed from ...", "no need to change ..."
        raise EnvironmentUnusable(
            f"haproxy of lab {folder.name} does not send {server} to port {port}: {answer.strip()}"
        )


def require_tls(folder: Path) -> None:
    """Raise InvalidInput for a deployment that shows no certificate."""
    if not Deployment(folder, parts.known(folder)).has_tls:
        raise InvalidInput(
            f"lab {folder.name} serves without TLS; it needs --with nodes=2 --with tls=on"
        )


def set_certificate(folder: Path, *, is_valid: bool) -> None:
    """Show the valid certificate, or the expired one, to whoever connects from here on.

    Connections that are open stay open, and sessions of before are not resumed.
    """
    known = ServerCertificates(folder)
    # haproxy knows a certificate by the file that it was started with.
    text = (known.valid if is_valid else known.expired).read_text().rstrip("\n")
    # A transaction that was left open by a crash is replaced.
    answers = (
        _ask(folder, f"set ssl cert {known.valid} <<\n{text}\n\n"),
        _ask(folder, f"commit ssl cert {known.valid}\n"),
    )
    if "Success" not in answers[-1]:
        said = " ".join(" ".join(answers).split())
        raise EnvironmentUnusable(
            f"haproxy of lab {folder.name} does not take another certificate: {said}"
        )


def is_up(folder: Path, server: str) -> bool:
    """Return whether haproxy sends requests to a server."""
    return _row(folder, server).get("status", "").startswith("UP")


def await_idle(folder: Path, server: str, patience_s: float) -> bool:
    """Wait until a server answers no request any more; False: it did not come to that."""
    deadline = time.monotonic() + patience_s
    while _row(folder, server).get("scur") != "0":
        if time.monotonic() > deadline:
            return False
        time.sleep(POLL_S)
    return True


def _row(folder: Path, server: str) -> dict[str, str]:
    table = _ask(folder, "show stat\n").removeprefix("# ")
    rows = csv.DictReader(table.splitlines())
    mine = (row for row in rows if (row["pxname"], row["svname"]) == (BACKEND, server))
    return next(mine, {})


def await_up(folder: Path, server: str, patience_s: float = PATIENCE_S) -> None:
    """Wait until haproxy sends requests to a server (again)."""
    deadline = time.monotonic() + patience_s
    while not is_up(folder, server):
        if time.monotonic() > deadline:
            raise EnvironmentUnusable(
                f"haproxy of lab {folder.name} sends nothing to {server} after {patience_s:.0f} s"
            )
        time.sleep(POLL_S)


def await_all(folder: Path) -> None:
    """Wait until haproxy, where there is one, sends requests to every node."""
    if not has_balancer(folder):
        return
    nodes = {parts.node_of(one.part) for one in parts.known(folder).records if "-" in one.part}
    for node in sorted(nodes):
        await_up(folder, server_of(node))


def logged_failures(folder: Path) -> int | None:
    """Return how many requests failed by haproxy's own logs; None: there is no haproxy.

    So does a handshake that a client ends: its request is never sent.
    """
    if not has_balancer(folder):
        return None
    failed = 0
    for path in (folder / "logs").glob("haproxy*.log"):
        with path.open("rb") as log:
            failed += sum(_has_failed(line) for line in log)
    return failed


def _has_failed(line: bytes) -> bool:
    found = _REQUEST.match(line)
    if found is None:
        return HANDSHAKE_FAILED.encode() in line
    status, ended = found.groups()
    return status not in b"23" or ended != b"--"


def reload(folder: Path) -> Process:
    """Start a haproxy that takes over from the present one, as its reload does."""
    balancer = parts.part(folder, "haproxy")
    found = next(one for one in parts.known(folder).records if one.part == "haproxy")
    if found.process is None or not isinstance(balancer, Haproxy):
        raise AssertionError("a running deployment's haproxy has a process")
    return balancer.take_over(found.process)


def _ask(folder: Path, question: str) -> str:
    try:
        return ask(_address(folder), question.encode()).decode("ascii", "replace")
    except Unreadable as problem:
        raise EnvironmentUnusable(f"haproxy of lab {folder.name}: {problem}") from None


def _address(folder: Path) -> Address:
    for record in parts.known(folder).records:
        if record.part == "haproxy" and record.statistics:
            return read_address(record.statistics, ("haproxy",))
    raise InvalidInput(
        f"lab {folder.name} has no haproxy; make one with several nodes: "
        "loadstone lab up NAME --with nodes=2"
    )
