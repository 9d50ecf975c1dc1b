"""One run of Loadstone's engine in a process of its own.

    python -m verification.engine.one_run JSON

The process belongs to the build that is measured. Prints what the run cost, as JSON.
"""

import json
import sys
import time
from dataclasses import asdict, dataclass

from loadstone.engine import gate
from loadstone.plan.load import ClosedLoad, OpenLoad
from loadstone.plan.model import Limits, Origin, Placement, Plan, Tls
from loadstone.plan.script import Step, text
from verification.engine.processes import own_peak_mb
from verification.engine.settings import ALLOWED

PATH = "/v3/auth/tokens"
BODY = (
    '{"auth": {"identity": {"methods": ["password"], "password": {"user": {"name": "loadstone-user'
    '-00001", "domain": {"id": "default"}, "password": "a-password-of-some-length"}}}, "scope": '
    '{"project": {"name": "loadstone-project-00001", "domain": {"id": "default"}}}}}'
)
ISSUE = Step(
    "issue",
    "POST",
    text(PATH),
    headers=(("Content-Type", text("application/json")),),
    body=text(BODY),
    expect_status=(201,),
)


@dataclass(frozen=True, slots=True)
class Request:
    """Load of one engine run."""

    port: int
    core: int
    seconds: float
    connections: int = 256
    rate_rps: float | None = None  # None: a closed loop of so many connections
    scheme: str = "http"
    ca_file: str | None = None
    http: str = "1.1"


@dataclass(frozen=True, slots=True)
class Figures:
    """Cost of one run; CPU is user and system time of the whole process per request."""

    requests_per_s: float
    cpu_us: float
    peak_mb: float
    lag_p50_us: float
    lag_p99_us: float
    limits: tuple[str, ...]  # why the run is not to be believed, in words


def measured(request: Request) -> Figures:
    """Run the load and count its cost."""
    plan = plan_of(request)
    before_s = time.process_time()
    done = gate.run(plan, ALLOWED)
    # What Python does with the samples included.
    cpu_s = time.process_time() - before_s
    requests = len(done.samples)
    if not requests or done.samples.outcome.any():
        raise SystemExit("verify: requests of loadstone have failed")
    health = done.health
    return Figures(
        requests / health.wall_s,
        cpu_s / requests * 1e6,
        own_peak_mb(),
        health.lag_p50_ms * 1e3,
        health.lag_p99_ms * 1e3,
        tuple(health.limits),
    )


def plan_of(request: Request) -> Plan:
    """Return the plan of one run."""
    load: ClosedLoad | OpenLoad = ClosedLoad(request.connections, duration_s=request.seconds)
    if request.rate_rps is not None:
        load = OpenLoad(request.rate_rps, request.seconds)
    return Plan(
        Origin(request.scheme, "127.0.0.1", request.port, Tls(ca_file=request.ca_file)),  # type: ignore[arg-type]
        (ISSUE,),
        load,
        limits=Limits(max_connections=request.connections),
        placement=Placement(cores=(request.core,), http=request.http),  # type: ignore[arg-type]
    )


if __name__ == "__main__":
    print(json.dumps(asdict(measured(Request(**json.loads(sys.argv[1]))))))
