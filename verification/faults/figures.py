"""Figures of faults against a service whose faults are known.

    python -m verification.faults.figures

Each round is one load of 50/s on `loadstone serve --script` with six faults, one of which is none.
The figures must be within one gap between arrivals or 5 % (downtime) and 10 % (recovery,
degradation) in 19 of 20 rounds.
"""

import argparse
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "tests/support"))

from scripted import Scripted, measured

from loadstone.analysis.fault import FaultEffect, Injection
from loadstone.analysis.fault_effect import effect

RATE_RPS = 50.0
BEFORE_S, AFTER_S = 4.0, 3.0  # of the fault that are looked at
FAULTS = (
    Scripted("dark", 0.0, 0.2),
    Scripted("dark", 0.0, 1.0),
    Scripted("dark", 0.0, 5.0),
    Scripted("slow", 0.0, 4.0, 3.0),
    Scripted("refuse", 0.0, 2.0, 0.3),
)


def laid_out() -> tuple[list[Scripted], float]:
    """Return the faults one after the other, and how long the load lasts."""
    at_s, placed = 0.0, []
    for fault in FAULTS:
        at_s += BEFORE_S
        placed.append(replace(fault, at_s=at_s))
        at_s += fault.lasts_s + AFTER_S
    return placed, at_s + BEFORE_S + AFTER_S  # at the end there is none


def misses(fault: Scripted, seen: FaultEffect) -> list[str]:
    """Name the figures that are wrong."""
    gap_s = 1 / RATE_RPS
    slow = fault.kind == "slow"
    down_s = fault.lasts_s if fault.kind in ("dark", "refuse") else 0.0
    wrong = {
        "downtime": abs(seen.downtime_s - down_s) > max(gap_s, 0.05 * down_s),
        "mttr": abs((seen.mttr_s or 0.0) - fault.lasts_s) > max(0.1 * fault.lasts_s, gap_s),
        "relative": abs(seen.relative - (3.0 if slow else 1.0)) > (0.3 if slow else 0.0),
    }
    return [name for name, is_wrong in wrong.items() if is_wrong]


def one_round(_: int) -> list[tuple[Scripted, FaultEffect]]:
    """Measure all faults once."""
    placed, seconds = laid_out()
    iterations, truth = measured(placed, seconds, RATE_RPS)
    truth.append(Scripted("none", seconds - AFTER_S, 0.0))
    return [
        (
            fault,
            effect(
                iterations,
                Injection(fault.kind, fault.at_s, fault.end_s),
                fault.at_s - BEFORE_S + 0.5,
                fault.end_s + AFTER_S,
            ),
        )
        for fault in truth
    ]


def main() -> None:
    """Print how often each figure was wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--at-once", type=int, default=1)
    given = parser.parse_args()
    wrong: Counter[tuple[str, str]] = Counter()
    with ThreadPoolExecutor(given.at_once) as pool:
        for found in pool.map(one_round, range(given.rounds)):
            for fault, seen in found:
                name = f"{fault.kind} {fault.lasts_s:.1f} s"
                wrong[name, ""] += 1
                for figure in misses(fault, seen):
                    wrong[name, figure] += 1
                    print(f"{name}: {figure}: {seen}", file=sys.stderr)
    for (name, figure), count in sorted(wrong.items()):
        if not figure:
            of = {one: wrong[name, one] for one in ("downtime", "mttr", "relative")}
            print(f"{name:<14} {count} rounds; wrong: {of}")


if __name__ == "__main__":
    main()
