"""Meter against real sockets and clocks: `python -m verification.search.real --rates 50,200,1000`.

Starts `loadstone serve`, whose capacity is exactly workers / service time whatever the machine
does, and prints what was found and how far off it is.
"""

import argparse
import math
import multiprocessing
import statistics
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from loadstone.search.strategies import STRATEGIES

sys.path.insert(0, str(Path(__file__).parents[2] / "tests/support"))
from known_service import known_service
from measured import searched

NEAR = 0.02  # share of the truth
LAWS = ("fixed", "exponential", "bursty")
# Seconds of load with `--law all` for bursty services, which need more requests to be known.
BURSTY_S, ENOUGH_RPS = 200.0, 1000.0


@dataclass(frozen=True, slots=True)
class Job:
    """One search of one service of its own."""

    rate_rps: float
    run: int
    workers: int
    law: str
    even_over: int
    budget_s: float
    method: str


@dataclass(frozen=True, slots=True)
class Outcome:
    """Result of one search."""

    error: float  # share of the truth; NaN where no number was given
    covers: bool
    row: str


def play(job: Job) -> Outcome:
    rate = job.rate_rps
    options = (f"--law={job.law}", f"--seed={job.run}", f"--even-over={job.even_over}")
    with known_service(job.workers, job.workers / rate, *options) as known:
        began = time.monotonic()
        found, trials = searched(known.port, job.budget_s, job.method)
    wall_s = time.monotonic() - began
    figures = [found.rate_rps, found.low_rps, found.high_rps]
    shown = [f"{figure:.2f}" if figure else "-" for figure in figures]
    error = found.rate_rps / rate - 1 if found.rate_rps else math.nan
    load_s = sum(trial.stats.load_s for trial in trials)
    is_stated = found.rate_rps is not None
    covers = is_stated and (found.low_rps or 0.0) <= rate <= (found.high_rps or math.inf)
    cells = [f"{rate:g}", job.law, *shown, f"{error * 100:+.2f}", f"{load_s:.0f}", f"{wall_s:.0f}"]
    return Outcome(error, covers, f"| {' | '.join(cells)} | {'; '.join(found.words)} |")


def summary(outcomes: list[Outcome]) -> str:
    """Say how near they came, and how often the interval held the truth."""
    errors = [abs(one.error) for one in outcomes if math.isfinite(one.error)]
    near = sum(error <= NEAR for error in errors)
    median = f"{statistics.median(errors):.2%}" if errors else "-"
    covered = sum(one.covers for one in outcomes)
    count = len(outcomes)
    return (
        f"{near} of {count} runs within {NEAR:.0%}, median error {median}, "
        f"{covered} of {count} intervals held the truth, {count - len(errors)} without a number"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rates", default="50,200,1000", help="capacities, per second")
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--law", choices=[*LAWS, "all"], default="exponential")
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="seed of the first run")
    parser.add_argument("--budget", type=float, default=75.0, help="seconds of load")
    parser.add_argument("--method", choices=list(STRATEGIES), default="meter")
    parser.add_argument("--at-once", type=int, default=1, help="searches; for low rates only")
    # Without it, exponential times of n requests are off by 1/sqrt(n) by themselves.
    parser.add_argument("--even-over", type=int, default=50, help="serve's; 0: left to chance")
    options = parser.parse_args()
    rates = [float(rate) for rate in options.rates.split(",")]
    jobs = [
        _job(rate, run, options)
        for rate in rates
        for run in range(options.first, options.first + options.runs)
    ]
    print("| capacity | law | N | low | high | error % | load s | wall s | words |")
    print("|---|---|---|---|---|---|---|---|---|", flush=True)
    outcomes = []
    # Each in a process of its own: the services and the generators share nothing but the machine.
    with multiprocessing.get_context("spawn").Pool(options.at_once) as pool:
        for outcome in pool.imap(play, jobs):
            outcomes.append(outcome)
            print(outcome.row, flush=True)
    for rate in rates:
        own = [one for job, one in zip(jobs, outcomes, strict=True) if job.rate_rps == rate]
        print(f"{rate:g}/s: {summary(own)}")


def _job(rate_rps: float, run: int, options: argparse.Namespace) -> Job:
    law, budget_s = options.law, options.budget
    if law == "all":
        law = LAWS[run % len(LAWS)]
        if law == "bursty" and rate_rps < ENOUGH_RPS:
            budget_s = BURSTY_S
    even_over, method = options.even_over, options.method
    return Job(rate_rps, run, options.workers, law, even_over, budget_s, method)


if __name__ == "__main__":
    main()
