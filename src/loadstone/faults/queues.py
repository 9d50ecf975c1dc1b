"""The limits of a lab's queues under overload: listen queues and time-outs."""

import re
from pathlib import Path

from loadstone.analysis.fault import ErrorKind, FaultEffect
from loadstone.analysis.recovery import Recovery
from loadstone.diagnosis.finding import Confidence, Evidence, Finding
from loadstone.faults import parts
from loadstone.faults.sentence import Fault
from loadstone.lab.keystone import settings
from loadstone.lab.keystone.deployment import Deployment
from loadstone.lab.keystone.settings import LabSettings
from loadstone.lab.keystone.web import Web
from loadstone.lab.parts import uwsgi

ID = "overload-queues"
UWSGI = (Web.UWSGI, Web.NGINX_UWSGI)
# Defaults of the others, which the lab does not change.
_QUEUES = {Web.APACHE: 511, Web.GUNICORN: 2048, Web.GRANIAN: 1024, Web.SINGLE: 5}
_TIMEOUT = re.compile(r"^\s*timeout\s+(\w+)\s+(\S+)", re.MULTILINE)


def findings(folder: Path, fault: Fault, effect: FaultEffect) -> tuple[Finding, ...]:
    """Describe how an overload reached clients, and which queues and time-outs decide that.

    Those of an OpenID provider and of Keystone in Rust are not known.
    """
    known = parts.read_state(folder)
    lab = Deployment(folder, known)
    if lab.is_provider or lab.is_in_rust:
        return ()
    return (_finding(folder, settings.started(known), fault, effect),)


def _finding(folder: Path, chosen: LabSettings, fault: Fault, effect: FaultEffect) -> Finding:
    queue, server = _listen_queue(chosen)
    bounds = [f"{server} has a listen queue of {queue:,} on each of {chosen.nodes} nodes"]
    if chosen.nodes == 1:
        bounds = [f"{server} has a listen queue of {queue:,}"]
    if chosen.web in UWSGI:
        bounds.append("no harakiri, so that it also answers requests whose clients have left")
    timeouts = _timeouts(folder) if chosen.nodes > 1 else ""  # an earlier start's file may be left
    if timeouts:
        limit = "no maxconn" if chosen.maxconn is None else f"maxconn {chosen.maxconn} a node"
        bounds.append(f"haproxy has {limit} and time-outs of {timeouts}")
    return Finding(
        id=ID,
        sentence=f"{_goodput(fault, effect)}; {_client_errors(effect.errors)}; "
        f"{_recovery(fault, effect)}. What bounds the queues: {', '.join(bounds)}.",
        evidence=tuple(_evidence(effect, queue, timeouts)),
        confidence=Confidence.PROPOSED,
        advice=_advice(chosen, effect),
    )


def _listen_queue(chosen: LabSettings) -> tuple[int, str]:
    if chosen.web in UWSGI:
        return uwsgi.backlog(chosen.listen or uwsgi.BACKLOG), "uWSGI"
    return uwsgi.backlog(_QUEUES[chosen.web]), chosen.web


def _timeouts(folder: Path) -> str:
    """Return haproxy's time-outs: "connect 5s, client 60s, server 60s"; empty without its file."""
    file = folder / "run" / "haproxy.conf"
    if not file.exists():
        return ""
    return ", ".join(f"{name} {value}" for name, value in _TIMEOUT.findall(file.read_text()))


def _goodput(fault: Fault, effect: FaultEffect) -> str:
    goodput = "unknown" if effect.goodput_rps is None else f"{effect.goodput_rps:.1f}/s"
    return f"At {fault.factor:g} times the load goodput was {goodput}"


def _client_errors(errors: tuple[ErrorKind, ...]) -> str:
    if not errors:
        return "all clients were answered"
    kinds = (f"{one.count:,} times {one.kind} after {one.median_s:.1f} s" for one in errors)
    return f"clients were told {', '.join(kinds)}"


def _recovery(fault: Fault, effect: FaultEffect) -> str:
    if effect.recovery is Recovery.NOT_SHOWN and effect.mttr_s is None:
        return "the requests afterwards do not show whether it came back"
    if effect.mttr_s is None:
        return f"it had not come back {effect.observed_s - fault.hold_s:.0f} s after the overload"
    after_s = effect.mttr_s - fault.hold_s
    if after_s <= 0:
        return "errors and slowness ended with it"
    return f"errors and slowness ended {after_s:.1f} s after it"


def _evidence(effect: FaultEffect, queue: int, timeouts: str) -> list[Evidence]:
    evidence = [Evidence("listen queue", str(queue)), Evidence("backlog", str(effect.backlog))]
    if effect.goodput_rps is not None:
        evidence.append(Evidence("goodput during the overload", f"{effect.goodput_rps:.3g}/s"))
    if timeouts:
        evidence.append(Evidence("haproxy's time-outs", timeouts))
    return evidence


def _advice(chosen: LabSettings, effect: FaultEffect) -> str:
    pace = ""
    if effect.goodput_rps:
        pace = f" (at this goodput {effect.goodput_rps:.0f} requests are a second of waiting)"
    if chosen.maxconn is not None:
        return (
            "what waits in haproxy gets a 503 after `timeout queue` (not set: as long as `timeout "
            f"connect`), and never reaches a worker{pace}; set it below what clients wait."
        )
    before = "put haproxy before it, and limit" if chosen.nodes == 1 else "limit"
    return (
        f"{before} what each node gets at once (`maxconn`), with a `timeout queue` below what "
        f"clients wait for, so that what cannot be answered in time gets a 503 and never reaches a "
        f"worker; else let the listen queue hold no more than clients wait for{pace}, and the web "
        "server give up (harakiri) before its clients do."
    )
