"""`loadstone run` as users start it, beside wrk and wrk2: CPU of the whole command.

The target is `loadstone serve` on the other core, which issues tokens as fast as it can. What a
request costs is the difference between two runs of unlike length, so that starting Python is not in
it, but samples, statistics and files are.
"""

import json
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from verification.engine.figures import ratios, spread, table
from verification.engine.generators import Bout, missing, wrk, wrk2
from verification.engine.processes import tree
from verification.engine.settings import Settings

sys.path.insert(0, str(Path(__file__).parents[2] / "tests/support"))
from command_line import environment
from known_service import NAME, TOKEN_REQUEST, serving

CONNECTIONS = 16
HIGHEST_RPS, USUAL_RPS = 100_000, 5_000  # the highest --max-rate, and the default
EXPECTED_RPS = 50_000  # of the target, to choose the number of requests
# Lengths of the short and the long run, in those of the other generators' runs. At the low rate the
# long one is longer, so that the requests outweigh what start and end differ by.
LENGTHS = {HIGHEST_RPS: (0.5, 1.5), USUAL_RPS: (0.5, 5.5)}


def command(settings: Settings) -> Iterator[str]:
    """16 connections, as fast as the target answers, and at the default ceiling."""
    if absent := missing(["wrk", "wrk2"]):
        yield f"Left out, because it needs {' and '.join(absent)}."
        return
    ours: dict[int, list[float]] = {HIGHEST_RPS: [], USUAL_RPS: []}
    theirs: dict[int, list[float]] = {HIGHEST_RPS: [], USUAL_RPS: []}
    with _target(settings.target_core) as port, tempfile.TemporaryDirectory() as folder:
        variables = environment(f"http://127.0.0.1:{port}/v3", Path(folder))
        bout = Bout(port, CONNECTIONS, settings.seconds, settings.core, body=TOKEN_REQUEST)
        for number in range(settings.rounds):
            print(f"command {number + 1}", file=sys.stderr)
            for rate_rps, costs_us in ours.items():
                costs_us.append(_cost_us(rate_rps, settings, variables))
            theirs[HIGHEST_RPS].append(wrk(bout).cpu_us)
            theirs[USUAL_RPS].append(wrk2(bout, USUAL_RPS).cpu_us)
    loads = (
        (HIGHEST_RPS, "as fast as the target answers", "wrk"),
        (USUAL_RPS, f"{USUAL_RPS:,}/s, the default ceiling", "wrk2"),
    )
    head = ["load", "`loadstone run`, CPU µs/request", "beside", "its CPU µs/request", "ratio"]
    rows = [
        [load, spread(ours[one]), name, spread(theirs[one]), ratios(ours[one], theirs[one])]
        for one, load, name in loads
    ]
    yield from table(head, rows)


@contextmanager
def _target(core: int) -> Iterator[int]:
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {core})  # children inherit it
    with serving(f"--user={NAME}", f"--project={NAME}") as (port, _):
        os.sched_setaffinity(0, cores)
        yield port


def _cost_us(rate_rps: int, settings: Settings, variables: dict[str, str]) -> float:
    """Return the CPU of a request, from a short and a long run."""
    most = settings.seconds * min(rate_rps, EXPECTED_RPS)
    short, long = (round(most * share) for share in LENGTHS[rate_rps])
    taken = [_cpu_s(times, rate_rps, settings.core, variables) for times in (short, long)]
    return (taken[1] - taken[0]) / (long - short) * 1e6


def _cpu_s(times: int, rate_rps: int, core: int, variables: dict[str, str]) -> float:
    runner = {"type": "constant", "times": times, "concurrency": CONNECTIONS}
    task = Path(variables["LOADSTONE_HOME"]) / "task.json"
    task.write_text(json.dumps({"Authenticate.keystone": [{"runner": runner}]}))
    words = ["run", str(task), f"--max-rate={rate_rps}"]
    ended = tree(["taskset", "-c", str(core), sys.executable, "-m", "loadstone", *words], variables)
    return ended.cpu_s
