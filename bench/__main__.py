"""`make bench`: CPU per request and throughput, as ratios to wrk, from alternating runs."""

import argparse
import os
import statistics

from bench.generators import GENERATORS, Bout, Cost, missing
from bench.target import lean_target


def main() -> None:
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    parser.add_argument("--runs", type=int, default=5, help="alternating runs of each generator")
    parser.add_argument("--seconds", type=int, default=3, help="of each run")
    options = parser.parse_args()
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < 2:
        raise SystemExit("bench: needs two cores, one for the target and one for the generator")
    # At nice 0 our engine would raise its own priority, and the others could not keep up.
    os.nice(1)
    absent = missing()
    for name in absent:
        print(f"{name}: not installed, left out")
    names = [name for name in GENERATORS if name not in absent]
    with lean_target(cores[0]) as port:
        for connections in (16, 64):
            bout = Bout(port, connections, options.seconds, cores[1])
            costs: dict[str, list[Cost]] = {name: [] for name in names}
            for _ in range(options.runs):
                for name in names:
                    costs[name].append(GENERATORS[name](bout))
            print(f"\n{connections} connections, {options.runs} runs of {options.seconds} s each:")
            show(costs)


def show(costs: dict[str, list[Cost]]) -> None:
    """Print medians, and ratios to wrk run by run: median, least and most."""
    print(f"{'':12}{'requests/s':>12}{'CPU us':>9}{'CPU, to wrk':>24}{'requests/s, to wrk':>24}")
    for name, own in costs.items():
        rate = statistics.median(cost.requests_per_s for cost in own)
        cpu = statistics.median(cost.cpu_us for cost in own)
        line = f"{name:12}{rate:>12,.0f}{cpu:>9.1f}"
        if reference := costs.get("wrk"):
            pairs = list(zip(own, reference, strict=True))
            line += spread([ours.cpu_us / theirs.cpu_us for ours, theirs in pairs])
            line += spread([ours.requests_per_s / theirs.requests_per_s for ours, theirs in pairs])
        print(line)


def spread(ratios: list[float]) -> str:
    """Give median, least and most, in a column's width."""
    words = f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"
    return f"{words:>24}"


if __name__ == "__main__":
    main()
