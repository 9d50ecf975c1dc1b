"""Comparisons of real Keystones whose difference is known.

    python -m verification.comparison.real --at-once 3

Each comparison is `loadstone compare` of two labs, or of two `loadstone serve`, from the command
line. Prints how often which answer came: two equal Keystones differ in none, the others have the
sign that is known. With `--at-once 3`, three comparisons of different services run at the same
time, so that each has the load of the other two beside it. `--busy 2` keeps two other processes at
work meanwhile.
"""

import argparse
import collections
import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from loadstone.lab import deployment
from loadstone.lab.keystone import settings

sys.path.insert(0, str(Path(__file__).parents[2] / "tests/support"))
from command_line import PASSWORD
from known_service import NAME, known_service

SMALL = ("workers=1", "hash-rounds=4", "database=mariadb", "cache=memcached")
THREADS = (*SMALL, "threads=4")
# A password check of 90 ms, during which other threads can use Python.
PASSWORDS = (*SMALL, "hash-rounds=10")
# Keystone 30.0.0 runs the line in both validations of a request: its own token and the subject's.
PATCH = """\
--- a/keystone/token/provider.py
+++ b/keystone/token/provider.py
@@ -145,2 +145,3 @@
         try:
+            {line}
             token = self._validate_token(token_id)
"""
WAIT = "__import__('time').sleep({seconds})"
LOCK = "with self.__dict__.setdefault('_lock', __import__('threading').Lock()): "


@dataclass(frozen=True, slots=True)
class Difference:
    """Two services, and the right answer."""

    right: str  # of throughput, or of the request time if throughput has no answer
    a: tuple[str, ...] = ()  # settings of labs; none: a service of known capacity
    b: tuple[str, ...] = ()
    lines: tuple[str, str] = ("", "")  # added to each validation in both labs; empty: none
    scenario: str = "issue"
    capacities_rps: tuple[float, float] = (0.0, 0.0)
    workers: tuple[int, int] = (4, 4)  # of the services of known capacity
    concurrency: int = 4


DIFFERENCES = {
    "equal": Difference("same", SMALL, SMALL, scenario="validate"),
    "1 and 2 workers": Difference("faster", SMALL, (*SMALL, "workers=2"), scenario="validate"),
    "1 and 4 threads": Difference("faster", PASSWORDS, (*PASSWORDS, "threads=4")),
    "hash rounds 12 and 11": Difference(
        "faster", (*SMALL, "hash-rounds=12"), (*SMALL, "hash-rounds=11")
    ),
    "hash rounds 4 and 6": Difference("slower", SMALL, (*SMALL, "hash-rounds=6")),
    "cache off and on": Difference("faster", (*SMALL, "cache=off"), SMALL, scenario="validate"),
    "24.0.0 and 25.0.0, application credentials": Difference(
        "faster",
        (*SMALL, "release=24.0.0"),
        (*SMALL, "release=25.0.0"),
        scenario="validate-app-credential",
    ),
    "2 ms more": Difference(
        "slower", SMALL, SMALL, ("", WAIT.format(seconds=0.001)), scenario="validate"
    ),
    "a lock more": Difference(
        "slower",
        THREADS,
        THREADS,
        (WAIT.format(seconds=0.01), LOCK + WAIT.format(seconds=0.01)),
        scenario="validate",
    ),
    "capacity 200 and 200": Difference("same", capacities_rps=(200.0, 200.0)),
    "capacity 200 and 206": Difference("faster", capacities_rps=(200.0, 206.0)),
    "1 and 4 workers of 20 a second": Difference(
        "faster", capacities_rps=(20.0, 80.0), workers=(1, 4), concurrency=8
    ),
}


@contextlib.contextmanager
def sides(chosen: Difference, folder: Path) -> Iterator[tuple[str, ...]]:
    """Start both; yield the options that name them."""
    with contextlib.ExitStack() as stack:
        if not chosen.a:
            clouds = {}
            each = zip("ab", chosen.capacities_rps, chosen.workers, strict=True)
            for name, rate_rps, workers in each:
                url = stack.enter_context(known_service(workers, workers / rate_rps)).url
                auth = {"auth_url": url, "username": NAME, "password": PASSWORD}
                auth |= {"project_name": NAME, "user_domain_id": "default"}
                auth |= {"project_domain_id": "default"}
                clouds[name] = {"auth": auth, "identity_api_version": 3}
            (folder / "clouds.yaml").write_text(json.dumps({"clouds": clouds}))
            yield "--cloud=a", "--cloud=b"
            return
        names = [f"verify-{os.getpid()}-{folder.name}-{side}".lower() for side in "ab"]
        for name, words, line in zip(names, (chosen.a, chosen.b), chosen.lines, strict=True):
            pairs = list(map(settings.split, words))
            if line:
                patch = folder / f"{name}.patch"
                patch.write_text(PATCH.format(line=line))
                pairs.append(("release", f"30.0.0+{patch}"))
            stack.callback(deployment.down, name, purge=True)
            deployment.up(name, settings.read(pairs), lambda _: None, owned=True)
        yield tuple(f"--lab={name}" for name in names)


@dataclass(frozen=True, slots=True)
class Compared:
    """One comparison."""

    answer: str  # of throughput, else of the request time
    throughput: float  # ratio
    request_time: float
    seconds: float


def compared(words: tuple[str, ...], folder: Path) -> Compared:
    """Compare once."""
    found = folder / "found.json"
    command = [sys.executable, "-m", "loadstone", "compare", *words]
    command += ["--store", str(folder / "store"), "--json", str(found)]
    began_s = time.monotonic()
    done = subprocess.run(command, check=False, capture_output=True, text=True, cwd=folder)
    if done.returncode not in (0, 4):
        raise SystemExit(done.stderr)
    [section] = json.loads(found.read_text())["measurements"]
    rows = [section["metrics"][name] for name in ("throughput", "request time")]
    answers = [row["answer"] for row in rows if row["answer"] != "unknown"]
    return Compared(
        answers[0] if answers else "unknown",
        rows[0]["ratio"],
        rows[1]["ratio"],
        time.monotonic() - began_s,
    )


@contextlib.contextmanager
def busy(count: int) -> Iterator[None]:
    """Keep so many other processes at work."""
    work = "while True: sum(range(10_000))"
    others = [subprocess.Popen([sys.executable, "-c", work]) for _ in range(count)]
    try:
        yield
    finally:
        for other in others:
            other.kill()
            other.wait()


def row(name: str, times: int) -> str:
    """Compare so many times; return a row of the table."""
    chosen, began_s, found = DIFFERENCES[name], time.monotonic(), []
    with tempfile.TemporaryDirectory() as folder, sides(chosen, Path(folder)) as two:
        words = (*two, "--users=2", f"--scenario={chosen.scenario}")
        words += (f"--concurrency={chosen.concurrency}",)
        for _ in range(times):
            found.append(compared(words, Path(folder)))
            print(f"  {name}: {found[-1]}", file=sys.stderr, flush=True)
    print(f"  {name}: {time.monotonic() - began_s:.0f} s", file=sys.stderr, flush=True)
    answers = collections.Counter(one.answer for one in found)
    shown = ", ".join(f"{answer} {count}" for answer, count in answers.most_common())
    seconds = [one.seconds for one in found]
    return (
        f"| {name} | {chosen.right}: {answers[chosen.right]} of {times} | {shown} | "
        f"{_span([one.throughput for one in found])} | "
        f"{_span([one.request_time for one in found])} | "
        f"{statistics.median(seconds):.0f} | {max(seconds):.0f} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=20)
    parser.add_argument("--busy", type=int, default=0, help="other processes at work meanwhile")
    parser.add_argument("--at-once", type=int, default=1, help="comparisons at the same time")
    parser.add_argument("--difference", choices=list(DIFFERENCES), action="append")
    options = parser.parse_args()
    print("| A and B | right | answers | throughput | request time | seconds, median | longest |")
    print("|---|---|---|---|---|---|---|")
    with busy(options.busy), ThreadPoolExecutor(options.at_once) as pool:
        for line in pool.map(partial(row, times=options.times), options.difference or DIFFERENCES):
            print(line, flush=True)


def _span(ratios: list[float]) -> str:
    return f"{min(ratios):.3f} to {max(ratios):.3f}"


if __name__ == "__main__":
    main()
