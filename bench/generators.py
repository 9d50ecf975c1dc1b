"""The load generators: each sends the same POST as fast as it can, on one core."""

import os
import re
import resource
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from loadstone.engine.local import run
from loadstone.plan.load import ClosedLoad
from loadstone.plan.model import Origin, Placement, Plan
from loadstone.plan.script import Step, text

PATH = "/v3/auth/tokens"
BODY = (
    '{"auth": {"identity": {"methods": ["password"], "password": {"user": {"name": "loadstone-user'
    '-00001", "domain": {"id": "default"}, "password": "a-password-of-some-length"}}}, "scope": '
    '{"project": {"name": "loadstone-project-00001", "domain": {"id": "default"}}}}}'
)


@dataclass(frozen=True, slots=True)
class Bout:
    """What one generator was asked for."""

    port: int
    connections: int
    seconds: int
    core: int  # the only one that it may use

    @property
    def url(self) -> str:
        """The target's address."""
        return f"http://127.0.0.1:{self.port}{PATH}"


@dataclass(frozen=True, slots=True)
class Cost:
    """What it did, and what it took."""

    requests_per_s: float
    cpu_us: float  # user + system CPU per request


def loadstone(bout: Bout) -> Cost:
    """Measure the engine, with every sample kept."""
    step = Step(
        "issue",
        "POST",
        text(PATH),
        headers=(("Content-Type", text("application/json")),),
        body=text(BODY),
        expect_status=(201,),
    )
    plan = Plan(
        Origin("http", "127.0.0.1", bout.port),
        (step,),
        ClosedLoad(bout.connections, duration_s=float(bout.seconds)),
        placement=Placement(cores=(bout.core,)),
    )
    measured = run(plan)
    requests = len(measured.samples)
    assert not measured.samples.outcome.any()
    return Cost(requests / measured.health.wall_s, measured.health.cpu_s / requests * 1e6)


def wrk(bout: Bout) -> Cost:
    """Measure wrk, one thread."""
    with tempfile.NamedTemporaryFile("w", suffix=".lua") as script:
        script.write(f"wrk.method = 'POST'\nwrk.body = [[{BODY}]]\n")
        script.write("wrk.headers['Content-Type'] = 'application/json'\n")
        script.flush()
        options = ["-t1", f"-c{bout.connections}", f"-d{bout.seconds}s", "-s", script.name]
        return _external(["wrk", *options, bout.url], r"(\d+) requests in ([\d.]+)s", bout)


def ab(bout: Bout) -> Cost:
    """Measure ApacheBench."""
    with tempfile.NamedTemporaryFile("w") as body:
        Path(body.name).write_text(BODY)
        options = ["-q", "-k", "-r", "-c", str(bout.connections), "-t", str(bout.seconds)]
        options += ["-n", "100000000", "-T", "application/json", "-p", body.name]
        count = r"Time taken for tests:\s+(?P<s>[\d.]+)[\s\S]*Complete requests:\s+(?P<n>\d+)"
        return _external(["ab", *options, bout.url], count, bout)


GENERATORS: dict[str, Callable[[Bout], Cost]] = {"loadstone": loadstone, "wrk": wrk, "ab": ab}


def missing() -> list[str]:
    """Name the generators that are not installed."""
    return [name for name in GENERATORS if name != "loadstone" and shutil.which(name) is None]


def _external(command: list[str], count: str, bout: Bout) -> Cost:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    process = subprocess.Popen(
        ["taskset", "-c", str(bout.core), *command],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=os.environ | {"LC_ALL": "C"},
    )
    told, _ = process.communicate()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    found = re.search(count, told)
    if found is None:
        raise SystemExit(f"bench: {command[0]} told no count of requests")
    named = found.groupdict()
    requests = int(named.get("n") or found[1])
    wall_s = float(named.get("s") or found[2])
    cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Cost(requests / wall_s, cpu_s / requests * 1e6)
