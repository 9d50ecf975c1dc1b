"""Meter against real sockets and clocks: `python -m bench.capacity_real --rates 50,200,1000`.

Starts `loadstone serve`, whose capacity is exactly workers / service time whatever the machine
does, and prints what was found and how far off it is.
"""

import argparse
import sys
import time
from pathlib import Path

from loadstone.analysis.goal import Goal
from loadstone.analysis.model import Trial
from loadstone.analysis.trial import alarm, assess
from loadstone.engine import local
from loadstone.plan.model import Origin, Plan
from loadstone.search.model import Ask, Measure
from loadstone.search.run import search
from loadstone.search.settings import Settings
from loadstone.search.strategies import STRATEGIES

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from known_service import ISSUE, known_service


def measuring(port: int) -> Measure:
    def measure(ask: Ask) -> Trial:
        plan = Plan(Origin("http", "127.0.0.1", port), (ISSUE,), ask.load)
        measured = local.run(plan, alarm(ask.load, ask.alarm_s, Goal()))
        return assess(ask.offer(1), measured.samples, measured.health, Goal())

    return measure


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rates", default="50,200,1000", help="capacities, per second")
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--law", choices=["fixed", "exponential", "bursty"], default="exponential")
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--budget", type=float, default=75.0, help="seconds of load")
    parser.add_argument("--method", choices=list(STRATEGIES), default="meter")
    options = parser.parse_args()
    print("| capacity | law | N | low | high | error % | load s | wall s | words |")
    print("|---|---|---|---|---|---|---|---|---|")
    for rate in map(float, options.rates.split(",")):
        for run in range(options.runs):
            with known_service(
                options.workers, options.workers / rate, f"--law={options.law}", f"--seed={run}"
            ) as known:
                began = time.monotonic()
                strategy = STRATEGIES[options.method](Settings(budget_s=options.budget))
                found, trials = search(strategy, measuring(known.port))
            figures = [found.rate_rps, found.low_rps, found.high_rps]
            shown = [f"{figure:.2f}" if figure else "-" for figure in figures]
            error = f"{(found.rate_rps / rate - 1) * 100:+.2f}" if found.rate_rps else "-"
            load_s = sum(trial.summary.load_s for trial in trials)
            wall_s = time.monotonic() - began
            cells = [f"{rate:g}", options.law, *shown, error, f"{load_s:.0f}", f"{wall_s:.0f}"]
            print(f"| {' | '.join(cells)} | {'; '.join(found.words)} |", flush=True)


if __name__ == "__main__":
    main()
