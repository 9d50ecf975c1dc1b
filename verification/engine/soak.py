"""Load for a long time at one rate: is anything lost, and does memory stay flat?

    python -m verification.engine.soak --rate 5000 --minutes 10

The target runs on the first core, the load generator on the second. Ends with 1 when what was sent,
recorded and seen by the target differ, or when the generator was the limit.
"""

import argparse
import os
import re
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from loadstone.analysis.stats import stats_of_blocks, whole
from loadstone.engine import gate
from loadstone.engine.gate import Spilled
from loadstone.engine.progress import Progress
from loadstone.plan.load import OpenLoad
from loadstone.plan.model import Origin, Placement, Plan
from loadstone.plan.script import Step, text
from verification.engine.settings import ALLOWED
from verification.engine.target import LeanTarget, counting_target

STEP = Step("issue", "POST", text("/v3/auth/tokens"), body=text("x" * 300), expect_status=(201,))
SHOWN_EVERY_S = 60.0


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m verification.engine.soak", description=__doc__)
    parser.add_argument("--rate", type=float, default=5000.0, help="requests per second")
    parser.add_argument("--minutes", type=float, default=10.0)
    options = parser.parse_args()
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < 2:
        raise SystemExit("soak: needs two cores, one for the target, one for the generator")
    with TemporaryDirectory() as folder, counting_target(cores[0]) as target:
        load = OpenLoad(options.rate, options.minutes * 60)
        placement = Placement.on((cores[1],))
        plan = Plan(Origin("http", "127.0.0.1", target.port), (STEP,), load, placement=placement)
        raise SystemExit(soak(plan, target, Path(folder) / "soak.parquet"))


def soak(plan: Plan, target: LeanTarget, path: Path) -> int:
    """Carry out the plan, and print what came of it."""
    last: list[Progress] = []

    def watch(progress: Progress) -> bool:
        if not last or progress.elapsed_s >= last[-1].elapsed_s + SHOWN_EVERY_S:
            last.append(progress)
            print(f"{progress.elapsed_s:7.0f} s {progress.sent:12,} sent {now_mb('VmRSS'):8.1f} MB")
            sys.stdout.flush()
        return True

    spilled = gate.run_to_file(plan, path, ALLOWED, watch)
    sent = sum(int((group.sent_ns >= 0).sum()) for group in spilled.file.groups())
    recorded, seen = spilled.file.rows, target.end()
    print(f"sent {sent:,}  recorded {recorded:,}  seen by the target {seen:,}")
    total = stats_of_blocks(whole(spilled.file), (STEP.action,)).stats.total
    print(f"latency p50 {1000 * total.median_s:.3f} ms, p99 {1000 * total.p99_s:.3f} ms (0.05 %)")
    print(f"peak RSS {now_mb('VmHWM'):.1f} MB  file {path.stat().st_size / recorded:.1f} B a row")
    return 0 if said_well(spilled) and sent == recorded == seen else 1


def said_well(spilled: Spilled) -> bool:
    """Print what the generator says of itself."""
    health = spilled.health
    print(f"send lag p50 {health.lag_p50_ms:.3f} ms, p99 {health.lag_p99_ms:.3f} ms")
    for limit in health.limits:
        print(limit)
    return health.is_valid


def now_mb(name: str) -> float:
    """Read a figure of this process from the kernel."""
    found = re.search(rf"{name}:\s+(\d+) kB", Path("/proc/self/status").read_text())
    return int(found[1]) / 1024 if found else float("nan")


if __name__ == "__main__":
    main()
