"""The load generators: each sends the same POST as fast as it can, on one core."""

import json
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from bench.processes import Ended, afresh, own_peak_mb, program
from loadstone.engine.local import run
from loadstone.plan.load import ClosedLoad
from loadstone.plan.model import Origin, Placement, Plan, Tls
from loadstone.plan.script import Step, text

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
class Bout:
    """What one generator was asked for."""

    port: int
    connections: int
    seconds: int
    core: int  # the only one that it may use
    scheme: Literal["http", "https"] = "http"
    ca_file: str | None = None

    @property
    def url(self) -> str:
        """The target's address."""
        return f"{self.scheme}://127.0.0.1:{self.port}{PATH}"


@dataclass(frozen=True, slots=True)
class Cost:
    """What it did, and what it took."""

    requests_per_s: float
    cpu_us: float  # user + system CPU per request
    peak_mb: float


def loadstone(bout: Bout) -> Cost:
    """Measure the engine, with every sample kept, in a process of its own."""
    return afresh(_engine, bout)


def _engine(bout: Bout) -> Cost:
    plan = Plan(
        Origin(bout.scheme, "127.0.0.1", bout.port, Tls(ca_file=bout.ca_file)),
        (ISSUE,),
        ClosedLoad(bout.connections, duration_s=float(bout.seconds)),
        placement=Placement(cores=(bout.core,)),
    )
    before_s = time.process_time()
    measured = run(plan)
    # Of the whole process, what Python does with the samples included.
    cpu_s = time.process_time() - before_s
    requests = len(measured.samples)
    if not requests or measured.samples.outcome.any():
        raise SystemExit("bench: requests of loadstone have failed")
    return Cost(requests / measured.health.wall_s, cpu_s / requests * 1e6, own_peak_mb())


def wrk(bout: Bout) -> Cost:
    """Measure wrk, one thread."""
    with tempfile.NamedTemporaryFile("w", suffix=".lua") as script:
        script.write(f"wrk.method = 'POST'\nwrk.body = [[{BODY}]]\n")
        script.write("wrk.headers['Content-Type'] = 'application/json'\n")
        script.flush()
        options = ["-t1", f"-c{bout.connections}", f"-d{bout.seconds}s", "-s", script.name]
        ended = program(["wrk", *options, bout.url], bout.core)
    return _counted(ended, r"(?P<n>\d+) requests in (?P<s>[\d.]+)s", "wrk")


def ab(bout: Bout) -> Cost:
    """Measure ApacheBench."""
    with tempfile.NamedTemporaryFile("w") as body:
        Path(body.name).write_text(BODY)
        options = ["-q", "-k", "-r", "-c", str(bout.connections), "-t", str(bout.seconds)]
        options += ["-n", "100000000", "-T", "application/json", "-p", body.name]
        ended = program(["ab", *options, bout.url], bout.core)
    count = r"Time taken for tests:\s+(?P<s>[\d.]+)[\s\S]*Complete requests:\s+(?P<n>\d+)"
    return _counted(ended, count, "ab")


def oha(bout: Bout) -> Cost:
    """Measure oha."""
    options = ["--no-tui", "--output-format", "json", "--insecure"]
    options += ["-z", f"{bout.seconds}s", "-c", str(bout.connections)]
    options += ["-m", "POST", "-T", "application/json", "-d", BODY]
    ended = program(["oha", *options, bout.url], bout.core)
    told = json.loads(ended.told)
    statuses = told["statusCodeDistribution"]
    if set(statuses) != {"201"}:
        raise SystemExit(f"bench: requests of oha have failed: {statuses}")
    requests = int(statuses["201"])
    wall_s = float(told["summary"]["total"])
    return Cost(requests / wall_s, ended.cpu_s / requests * 1e6, ended.peak_mb)


def vegeta(bout: Bout) -> Cost:
    """Measure vegeta, as fast as so many workers can."""
    with tempfile.TemporaryDirectory() as folder:
        targets, results = Path(folder) / "targets", Path(folder) / "results"
        body = Path(folder) / "body"
        body.write_text(BODY)
        targets.write_text(f"POST {bout.url}\nContent-Type: application/json\n@{body}\n")
        options = ["-rate=0", f"-max-workers={bout.connections}", f"-duration={bout.seconds}s"]
        options += ["-insecure", "-http2=false", f"-targets={targets}", f"-output={results}"]
        ended = program(["vegeta", "attack", *options], bout.core)
        report = ["vegeta", "report", "-type=json", str(results)]
        said = json.loads(subprocess.run(report, check=True, capture_output=True).stdout)
    requests = int(said["status_codes"]["201"])
    wall_s = (said["duration"] + said["wait"]) / 1e9
    return Cost(requests / wall_s, ended.cpu_s / requests * 1e6, ended.peak_mb)


GENERATORS: dict[str, Callable[[Bout], Cost]] = {
    "loadstone": loadstone,
    "wrk": wrk,
    "ab": ab,
    "oha": oha,
    "vegeta": vegeta,
}
# How to get what may be missing.
SOURCES = {
    "wrk": "apt-get install wrk",
    "ab": "apt-get install apache2-utils",
    "oha": "cargo install oha",
    "vegeta": "go install github.com/tsenart/vegeta/v12@latest",
    "nginx": "apt-get install nginx-light",
    "openssl": "apt-get install openssl",
}


def missing(names: list[str]) -> list[str]:
    """Name those that are not installed."""
    return [name for name in names if name != "loadstone" and shutil.which(name) is None]


def _counted(ended: Ended, count: str, name: str) -> Cost:
    found = re.search(count, ended.told)
    if found is None or "Non-2xx" in ended.told:
        raise SystemExit(f"bench: {name} told no count of good answers:\n{ended.told}")
    named = found.groupdict()
    requests, wall_s = int(named["n"]), float(named["s"])
    return Cost(requests / wall_s, ended.cpu_s / requests * 1e6, ended.peak_mb)
