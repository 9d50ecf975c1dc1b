"""Send lag, a stalling target, memory of long runs, summaries of many samples."""

import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bench.figures import spread, table
from bench.generators import ISSUE
from bench.processes import afresh, own_peak_mb
from bench.settings import Settings
from bench.target import lean_target
from loadstone.analysis.iterations import iterations
from loadstone.analysis.summary import summarise, summary_of
from loadstone.analysis.tally import tally
from loadstone.analysis.ticks import ticks, ticks_of
from loadstone.engine import parquet
from loadstone.engine.local import run, run_to_file
from loadstone.engine.samples import Samples
from loadstone.plan.load import OpenLoad
from loadstone.plan.model import Origin, Placement, Plan
from loadstone.plan.script import Column, Step, Text

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from stalling_service import stalling_service

RATES_RPS = (2000.0, 10_000.0)
STALL_EVERY_S, STALL_S, STALL_RATE_RPS, STALL_ROUND_S = 5.0, 0.5, 200.0, 10.0
LONG_RATE_RPS = 10_000.0
LONG_S = (10.0, 40.0)
SUMMARISED = 10_000_000


def lag(settings: Settings) -> Iterator[str]:
    """Open loop at fixed rates: how late requests are taken up, and what they cost."""
    rows = []
    with lean_target(settings.target_core) as port:
        for rate_rps in RATES_RPS:
            lags = []
            for number in range(settings.rounds):
                print(f"lag {rate_rps:.0f}/s {number + 1}", file=sys.stderr)
                lags.append(afresh(_lag, _open(port, settings, rate_rps, settings.seconds)))
            p50s_us, p99s_us, cpus_us = zip(*lags, strict=True)
            row = [spread(figures, form) for figures, form in ((p50s_us, ".0f"), (p99s_us, ".0f"))]
            rows.append([f"{rate_rps:,.0f}", *row, spread(cpus_us, ".1f")])
    yield from table(["requests/s", "lag p50 µs", "lag p99 µs", "CPU µs/request"], rows)


def _open(port: int, settings: Settings, rate_rps: float, duration_s: float) -> Plan:
    return Plan(
        Origin("http", "127.0.0.1", port),
        (ISSUE,),
        OpenLoad(rate_rps, float(duration_s)),
        placement=Placement.on((settings.core,)),
    )


def _lag(plan: Plan) -> tuple[float, float, float]:
    measured = run(plan)
    health = measured.health
    for limit in health.limits:
        print(limit, file=sys.stderr)
    cpu_us = health.cpu_s / len(measured.samples) * 1e6
    return health.lag_p50_ms * 1e3, health.lag_p99_ms * 1e3, cpu_us


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
        samples = run(plan).samples
        log = np.array(sorted(service.end()))
    read_ns, answered_ns = log[:, 1], log[:, 2]
    # Nothing is read before it is sent: the nearest that the two came is where both clocks meet.
    start_ns = (read_ns - samples.sent_ns[np.argsort(samples.iteration)]).min()
    waited_ms = (answered_ns - start_ns) / 1e6 - np.arange(count) / STALL_RATE_RPS * 1e3
    summary = summarise(samples, ticks(samples, STALL_ROUND_S), STALL_RATE_RPS)
    return summary.latency.p99_ms, float(np.percentile(waited_ms, 99))


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
        requests = run_to_file(plan, path).file.rows
        return requests, own_peak_mb(), path.stat().st_size / requests


@dataclass(frozen=True, slots=True)
class Summarised:
    """How long it took, in memory and from a file, and the most memory of the latter."""

    summary_s: float
    tally_s: float
    tally_peak_mb: float


def summaries(settings: Settings) -> Iterator[str]:
    """Summaries of ten million samples that were drawn, not measured."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "drawn.parquet"
        afresh(_draw_to, path)
        took = []
        for number in range(settings.rounds):
            print(f"summaries {number + 1}", file=sys.stderr)
            from_file = afresh(_tallied, path)
            took.append(Summarised(afresh(_summarised, path), *from_file))
    head = ["all in memory, s", "from a file, s", "peak RSS MB, from a file"]
    columns = (
        [one.summary_s for one in took],
        [one.tally_s for one in took],
        [one.tally_peak_mb for one in took],
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
        connection=random.integers(0, 64, SUMMARISED, dtype=np.uint16),
        status=np.full(SUMMARISED, 201, dtype=np.uint16),
        outcome=np.zeros(SUMMARISED, dtype=np.uint8),
        action=np.zeros(SUMMARISED, dtype=np.uint8),
    )
    parquet.write(path, samples)


def _summarised(path: Path) -> float:
    samples = parquet.read(path)
    began_s = time.perf_counter()
    rows = iterations(samples)
    summary_of(rows, ticks_of(rows, SUMMARISED / 10_000), 10_000.0)
    return time.perf_counter() - began_s


def _tallied(path: Path) -> tuple[float, float]:
    began_s = time.perf_counter()
    counted = tally(parquet.SampleFile(path))
    counted.summary(counted.counts(SUMMARISED / 10_000), 10_000.0)
    return time.perf_counter() - began_s, own_peak_mb()
