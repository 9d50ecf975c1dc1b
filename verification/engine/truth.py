"""Send lag, a stalling target, memory of long runs, summaries of many samples."""

import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from loadstone.analysis.stats import Aggregator, compute_stats
from loadstone.engine import gate, parquet
from loadstone.engine.samples import Samples
from loadstone.plan.load import OpenLoad
from loadstone.plan.model import Origin, Placement, Plan
from loadstone.plan.script import Column, Step, Text
from verification.engine.builds import BUILDS, ROOT
from verification.engine.fast import left_out
from verification.engine.figures import ratios, spread, table
from verification.engine.generators import Bout, Cost, engine, missing, wrk2
from verification.engine.one_run import Figures, Request, plan_of
from verification.engine.processes import afresh, own_peak_mb
from verification.engine.settings import ALLOWED, Settings
from verification.engine.target import lean_target

sys.path.insert(0, str(Path(__file__).parents[2] / "tests/support"))
from stalling_service import stalling_service

RATES_RPS = (2000.0, 10_000.0)
# Connections of the open loop: wrk2 uses all of them in turn, Loadstone as many as it needs.
OPEN_CONNECTIONS = 64
STALL_EVERY_S, STALL_S, STALL_RATE_RPS, STALL_ROUND_S = 5.0, 0.5, 200.0, 10.0
LONG_RATE_RPS = 10_000.0
LONG_S = (10.0, 40.0)
SUMMARISED = 10_000_000


def lag(settings: Settings) -> Iterator[str]:
    """Open loop at fixed rates: how late requests are sent, and what they cost beside wrk2's."""
    absent = missing(["wrk2"])
    yield from left_out(absent)
    rows: list[list[str]] = []
    with lean_target(settings.target_core) as port:
        for rate_rps in RATES_RPS:
            rows += _at_rate(settings, port, rate_rps, with_wrk2=not absent)
    head = ["generator", "requests/s", "lag p50 µs", "lag p99 µs", "CPU µs/request"]
    yield from table(head if absent else [*head, "CPU, to wrk2"], rows)


def _at_rate(
    settings: Settings, port: int, rate_rps: float, *, with_wrk2: bool
) -> Iterator[list[str]]:
    runs: dict[str, list[Figures]] = {build: [] for build in BUILDS}
    costs: list[Cost] = []
    bout = Bout(port, OPEN_CONNECTIONS, settings.seconds, settings.core)
    for number in range(settings.rounds):
        for build, figures in runs.items():
            print(f"lag {rate_rps:.0f}/s {number + 1} {build}", file=sys.stderr)
            request = Request(
                port, settings.core, settings.seconds, OPEN_CONNECTIONS, rate_rps=rate_rps
            )
            figures.append(engine(build, request))
        if with_wrk2:
            print(f"lag {rate_rps:.0f}/s {number + 1} wrk2", file=sys.stderr)
            costs.append(wrk2(bout, rate_rps))
    theirs = [cost.cpu_us for cost in costs]
    for build, figures in runs.items():
        yield _lag_row(build, rate_rps, figures, theirs)
    if theirs:
        # It does not tell when it sent.
        yield ["wrk2", f"{rate_rps:,.0f}", "-", "-", spread(theirs, ".1f"), ratios(theirs, theirs)]


def _lag_row(
    build: str, rate_rps: float, figures: list[Figures], theirs: Sequence[float]
) -> list[str]:
    for limit in {limit for one in figures for limit in one.limits}:
        print(limit, file=sys.stderr)
    cpus = [one.cpu_us for one in figures]
    row = [
        build,
        f"{rate_rps:,.0f}",
        spread([one.lag_p50_us for one in figures], ".0f"),
        spread([one.lag_p99_us for one in figures], ".0f"),
        spread(cpus, ".1f"),
    ]
    return [*row, ratios(cpus, theirs)] if theirs else row


def _open(port: int, settings: Settings, rate_rps: float, duration_s: float) -> Plan:
    return plan_of(Request(port, settings.core, duration_s, rate_rps=rate_rps))


def waits(_: Settings) -> Iterator[str]:
    """Service times of `loadstone serve`: by its timer, and by looking at the clock."""
    words = ("cargo", "bench", "--quiet", "--profile", "editable", "-p", "loadstone-serve")
    command = [*words, "--features", "bench", "--bench", "waits"]
    ended = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    yield from ended.stdout.splitlines()


def stall(settings: Settings) -> Iterator[str]:
    """The p99 that is told, beside the one that the target's own log gives."""
    told_ms, exact_ms, errors = [], [], []
    for number in range(settings.rounds):
        print(f"stall {number + 1}", file=sys.stderr)
        told, exact = _stalled(settings.core)
        told_ms.append(told)
        exact_ms.append(exact)
        errors.append((told / exact - 1) * 100)
    head = ["p99 told, ms", "p99 by the target's log, ms", "off by, %"]
    yield from table(head, [[spread(told_ms, ".1f"), spread(exact_ms, ".1f"), spread(errors)]])


def _stalled(core: int) -> tuple[float, float]:
    count = int(STALL_RATE_RPS * STALL_ROUND_S)
    step = Step("get", "GET", (Text("/"), Column("number")))
    with stalling_service(STALL_EVERY_S, STALL_S) as service:
        plan = Plan(
            Origin("http", "127.0.0.1", service.port),
            (step,),
            OpenLoad(STALL_RATE_RPS, STALL_ROUND_S),
            {"number": tuple(str(number) for number in range(count))},
            placement=Placement.on((core,)),
        )
        samples = gate.run(plan, ALLOWED).samples
        log = np.array(sorted(service.end()))
    read_ns, answered_ns = log[:, 1], log[:, 2]
    # Nothing is read before it is sent: the nearest that the two came is where both clocks meet.
    start_ns = (read_ns - samples.sent_ns[np.argsort(samples.iteration)]).min()
    waited_ms = (answered_ns - start_ns) / 1e6 - np.arange(count) / STALL_RATE_RPS * 1e3
    stats = compute_stats(samples, ("get",)).stats
    return 1000 * stats.total.p99_s, float(np.percentile(waited_ms, 99))


def memory(settings: Settings) -> Iterator[str]:
    """Peak RSS of runs that write their samples to a file."""
    rows = []
    with lean_target(settings.target_core) as port:
        for duration_s in LONG_S:
            print(f"memory {duration_s:.0f} s", file=sys.stderr)
            rows.append(_long(_open(port, settings, LONG_RATE_RPS, duration_s), duration_s))
    yield from table(["load, s", "requests", "peak RSS MB", "file, B a request"], rows)


def _long(plan: Plan, duration_s: float) -> list[str]:
    requests, peak_mb, each_b = afresh(_spilled, plan)
    return [f"{duration_s:.0f}", f"{requests:,}", f"{peak_mb:.0f}", f"{each_b:.1f}"]


def _spilled(plan: Plan) -> tuple[int, float, float]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "long.parquet"
        requests = gate.run_to_file(plan, path, ALLOWED).file.rows
        return requests, own_peak_mb(), path.stat().st_size / requests


@dataclass(frozen=True, slots=True)
class Summarised:
    """How long it took, in memory and from a file, and the most memory of the latter."""

    memory_s: float
    file_s: float
    file_peak_mb: float


def summaries(settings: Settings) -> Iterator[str]:
    """Summaries of ten million samples that were drawn, not measured."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "drawn.parquet"
        afresh(_draw_to, path)
        took = []
        for number in range(settings.rounds):
            print(f"summaries {number + 1}", file=sys.stderr)
            from_file = afresh(_from_file, path)
            took.append(Summarised(afresh(_summarised, path), *from_file))
    head = ["all in memory, s", "from a file, s", "peak RSS MB, from a file"]
    columns = (
        [one.memory_s for one in took],
        [one.file_s for one in took],
        [one.file_peak_mb for one in took],
    )
    yield from table(head, [[spread(columns[0]), spread(columns[1]), spread(columns[2], ".0f")]])


def _draw_to(path: Path) -> None:
    random = np.random.default_rng(1)
    due_ns = (np.arange(SUMMARISED) * 100_000).astype(np.int64)  # 10,000/s
    sent_ns = due_ns + random.integers(0, 500_000, SUMMARISED)
    done_ns = sent_ns + random.exponential(2e6, SUMMARISED).astype(np.int64)
    order = np.argsort(done_ns)
    samples = Samples(
        due_ns=due_ns[order],
        sent_ns=sent_ns[order],
        done_ns=done_ns[order],
        first_byte_us=((done_ns - sent_ns)[order] // 1000).astype(np.uint32),
        iteration=order.astype(np.uint32),
        connection=random.integers(0, 64, SUMMARISED, dtype=np.uint32),
        status=np.full(SUMMARISED, 201, dtype=np.uint16),
        outcome=np.zeros(SUMMARISED, dtype=np.uint8),
        action=np.zeros(SUMMARISED, dtype=np.uint8),
        retried=np.zeros(SUMMARISED, dtype=np.uint8),
        generator=np.zeros(SUMMARISED, dtype=np.uint16),
    )
    parquet.write(path, samples)


def _summarised(path: Path) -> float:
    samples = parquet.read(path)
    began_s = time.perf_counter()
    aggregator = Aggregator.of((), exact=True)
    aggregator.add(samples, ("get",))
    aggregator.computed(10_000.0, SUMMARISED / 10_000)
    return time.perf_counter() - began_s


def _from_file(path: Path) -> tuple[float, float]:
    began_s = time.perf_counter()
    file = parquet.SampleFile(path)
    compute_stats(file, ("get",), (), 10_000.0, SUMMARISED / 10_000)
    return time.perf_counter() - began_s, own_peak_mb()
