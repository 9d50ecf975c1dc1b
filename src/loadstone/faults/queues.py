"""What bounds the queues of a lab, which an overload fills: listen queues and time-outs."""

import re
from pathlib import Path

from loadstone.analysis.fault import ErrorKind, FaultEffect
from loadstone.faults import parts
from loadstone.faults.sentence import Fault
from loadstone.findings import Confidence, Evidence, Finding
from loadstone.keystone.deploy import settings
from loadstone.keystone.deploy.settings import LabSettings
from loadstone.keystone.deploy.web import Web
from loadstone.lab import uwsgi

ID = "overload-queues"
UWSGI = (Web.UWSGI, Web.NGINX_UWSGI)
_TIMEOUT = re.compile(r"^\s*timeout\s+(\w+)\s+(\S+)", re.MULTILINE)


def finding(folder: Path, fault: Fault, seen: FaultEffect) -> Finding:
    """Say what clients got of an overload, and which queues and time-outs decide that."""
    chosen = settings.read(parts.known(folder).settings)
    queue, server = _listen_queue(chosen)
    bounds = [f"{server} has a listen queue of {queue:,} on each of {chosen.nodes} nodes"]
    if chosen.nodes == 1:
        bounds = [f"{server} has a listen queue of {queue:,}"]
    if chosen.web in UWSGI:
        bounds.append("no harakiri, so that it also answers requests whose clients have left")
    timeouts = _haproxy(folder)
    if timeouts:
        limit = "no maxconn" if chosen.maxconn is None else f"maxconn {chosen.maxconn} a node"
        bounds.append(f"haproxy has {limit} and time-outs of {timeouts}")
    return Finding(
        id=ID,
        sentence=f"{_goodput(fault, seen)}; {_told(seen.errors)}; {_back(fault, seen)}. "
        f"What bounds the queues: {', '.join(bounds)}.",
        evidence=tuple(_evidence(seen, queue, timeouts)),
        confidence=Confidence.PROPOSED,
        advice=_advice(chosen, seen),
    )


def _listen_queue(chosen: LabSettings) -> tuple[int, str]:
    if chosen.web in UWSGI:
        return uwsgi.backlog(chosen.listen or uwsgi.BACKLOG), "uWSGI"
    return uwsgi.backlog(1 << 16), f"{chosen.web} (as the kernel allows)"


def _haproxy(folder: Path) -> str:
    """Return haproxy's time-outs: "connect 5s, client 60s, server 60s"; empty without haproxy."""
    file = folder / "run" / "haproxy.conf"
    if not file.exists():
        return ""
    return ", ".join(f"{name} {value}" for name, value in _TIMEOUT.findall(file.read_text()))


def _goodput(fault: Fault, seen: FaultEffect) -> str:
    goodput = "unknown" if seen.goodput_rps is None else f"{seen.goodput_rps:.1f}/s"
    return f"At {fault.factor:g} times the load goodput was {goodput}"


def _told(errors: tuple[ErrorKind, ...]) -> str:
    if not errors:
        return "all clients were answered"
    kinds = (f"{one.count:,} times {one.kind} after {one.median_s:.1f} s" for one in errors)
    return f"clients were told {', '.join(kinds)}"


def _back(fault: Fault, seen: FaultEffect) -> str:
    if seen.mttr_s is None:
        return f"it had not come back {seen.observed_s - fault.hold_s:.0f} s after the overload"
    after_s = seen.mttr_s - fault.hold_s
    if after_s <= 0:
        return "it was as before when the overload ended"
    return f"it was as before {after_s:.1f} s after the overload"


def _evidence(seen: FaultEffect, queue: int, timeouts: str) -> list[Evidence]:
    found = [Evidence("listen queue", str(queue)), Evidence("backlog", str(seen.backlog))]
    if seen.goodput_rps is not None:
        found.append(Evidence("goodput during the overload", f"{seen.goodput_rps:.3g}/s"))
    if timeouts:
        found.append(Evidence("haproxy's time-outs", timeouts))
    return found


def _advice(chosen: LabSettings, seen: FaultEffect) -> str:
    server = "uWSGI's listen queue" if chosen.web in UWSGI else "the web server's listen queue"
    said = f"let {server} hold no more than clients wait for"
    if seen.goodput_rps:
        said += f" ({seen.goodput_rps:.0f} for each second)"
    return (
        f"{said}, limit what haproxy sends to each node (maxconn) with a short `timeout queue`, so "
        "that what cannot be answered in time gets a 503 at once, and let the web server give up "
        "(harakiri) before its clients do."
    )
