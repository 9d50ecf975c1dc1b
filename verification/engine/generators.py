"""The load generators: each sends the same POST as fast as it can, on one core."""

import json
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Literal

from verification.engine.builds import BUILDS, ROOT
from verification.engine.one_run import BODY, PATH, Figures, Request
from verification.engine.processes import Ended, program

WRK_COUNT = r"(?P<n>\d+) requests in (?P<s>[\d.]+)s"


@dataclass(frozen=True, slots=True)
class Bout:
    """What one generator was asked for."""

    port: int
    connections: int
    seconds: int
    core: int  # the only one that it may use
    scheme: Literal["http", "https"] = "http"
    ca_file: str | None = None
    http: Literal["1.1", "2"] = "1.1"
    streams: int = 1  # requests in flight on one connection of HTTP/2
    body: str = BODY  # of each request; wrk and wrk2 send it

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


def loadstone(build: str, bout: Bout) -> Cost:
    """Measure a build of the engine, with every sample kept."""
    request = Request(
        bout.port,
        bout.core,
        bout.seconds,
        bout.connections,
        scheme=bout.scheme,
        ca_file=bout.ca_file,
        http=bout.http,
    )
    figures = engine(build, request)
    return Cost(figures.requests_per_s, figures.cpu_us, figures.peak_mb)


def engine(build: str, request: Request) -> Figures:
    """Run the engine once in a process of that build."""
    command = [BUILDS[build](), "-m", "verification.engine.one_run", json.dumps(asdict(request))]
    ended = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    return Figures(**json.loads(ended.stdout))


def wrk(bout: Bout) -> Cost:
    """Measure wrk, one thread."""
    with _wrk_script(bout.body) as script:
        options = ["-t1", f"-c{bout.connections}", f"-d{bout.seconds}s", "-s", script]
        ended = program(["wrk", *options, bout.url], bout.core)
    return _counted(ended, WRK_COUNT, "wrk")


def wrk2_program() -> str | None:
    """Find wrk2: the program that WRK2 names, else `wrk2` on the PATH."""
    return shutil.which(os.environ.get("WRK2", "wrk2"))


def wrk2(bout: Bout, rate_rps: float) -> Cost:
    """Measure wrk2 at a fixed rate, one thread."""
    with _wrk_script(bout.body) as script:
        options = ["-t1", f"-c{bout.connections}", f"-d{bout.seconds}s", f"-R{rate_rps:.0f}"]
        command = [wrk2_program() or "wrk2", *options, "-s", script, bout.url]
        ended = program(command, bout.core)
    return _counted(ended, WRK_COUNT, "wrk2")


@contextmanager
def _wrk_script(body: str) -> Iterator[str]:
    with tempfile.NamedTemporaryFile("w", suffix=".lua") as script:
        script.write(f"wrk.method = 'POST'\nwrk.body = [[{body}]]\n")
        script.write("wrk.headers['Content-Type'] = 'application/json'\n")
        script.flush()
        yield script.name


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
        raise SystemExit(f"verify: requests of oha have failed: {statuses}")
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


def h2load(bout: Bout) -> Cost:
    """Measure h2load: one connection, so many streams, TLS where the target has it."""
    with tempfile.NamedTemporaryFile("w") as body:
        Path(body.name).write_text(BODY)
        options = ["-c1", "-t1", f"-m{bout.streams}", f"-D{bout.seconds}", "-d", body.name]
        options += ["-H", "content-type: application/json"]
        ended = program(["h2load", *options, bout.url], bout.core)
    count = r"finished in (?P<s>[\d.]+)s[\s\S]*, (?P<n>\d+) succeeded, 0 failed"
    return _counted(ended, count, "h2load")


GENERATORS: dict[str, Callable[[Bout], Cost]] = {
    **{build: partial(loadstone, build) for build in BUILDS},
    "wrk": wrk,
    "ab": ab,
    "oha": oha,
    "vegeta": vegeta,
}
# How to get what may be missing.
SOURCES = {
    "wrk": "apt-get install wrk",
    "wrk2": "build https://github.com/giltene/wrk2 and say where it is: WRK2=DIR/wrk",
    "ab": "apt-get install apache2-utils",
    "oha": "cargo install oha",
    "vegeta": "go install github.com/tsenart/vegeta/v12@latest",
    "h2load": "apt-get install nghttp2-client",
    "nginx": "apt-get install nginx-light",
    "openssl": "apt-get install openssl",
}


def missing(names: list[str]) -> list[str]:
    """Name those that are not installed."""
    return [name for name in names if name not in BUILDS and _program_of(name) is None]


def _program_of(name: str) -> str | None:
    return wrk2_program() if name == "wrk2" else shutil.which(name)


def _counted(ended: Ended, count: str, name: str) -> Cost:
    found = re.search(count, ended.told)
    if found is None or "Non-2xx" in ended.told:
        raise SystemExit(f"verify: {name} told no count of good answers:\n{ended.told}")
    named = found.groupdict()
    requests, wall_s = int(named["n"]), float(named["s"])
    return Cost(requests / wall_s, ended.cpu_s / requests * 1e6, ended.peak_mb)
