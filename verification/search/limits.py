"""Searches of services that refuse, on real sockets: `python -m verification.search.limits`.

Starts `loadstone serve` behind a rate limiter, with a queue that overflows, with a limit on
connections, behind haproxy with a limit that counts what it refuses, and behind a proxy that delays
every answer. Prints per kind how many of the searches came within 2 % of the true N, how many
intervals held it, and how many ended without a number.
"""

import argparse
import contextlib
import math
import multiprocessing
import statistics
import sys
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "tests/support"))
from delay_proxy import delay_proxy
from haproxy import haproxy, limited
from known_service import known_service
from measured import GENERATOR, searched

NEAR = 0.02  # share of the truth


@dataclass(frozen=True, slots=True)
class Kind:
    """A service that refuses, or is far away, and the N that it has."""

    truth_rps: float
    workers: int
    capacity_rps: float
    options: tuple[str, ...] = ()
    frontend: str = ""  # of the haproxy before it; empty: none stands before it
    delay_s: float = 0.0  # of every answer


KINDS = {
    "limiter of 30/s": Kind(30.0, 8, 400.0, ("--limit=30", "--burst=100ms")),
    "limiter of 90/s": Kind(90.0, 8, 400.0, ("--limit=90", "--burst=100ms")),
    "limiter of 400/s": Kind(400.0, 8, 1600.0, ("--limit=400", "--burst=100ms")),
    "limiter of 2,000/s": Kind(2000.0, 8, 6000.0, ("--limit=2000", "--burst=100ms")),
    "queue of 20": Kind(200.0, 4, 200.0, ("--max-queue=20",)),
    # Forty requests at once, although eighty could be served. They take a second each, so that what
    # a busy machine adds to them (a millisecond a thousandth of N) counts for little.
    "40 connections": Kind(40.0, 80, 80.0, ("--max-connections=40", "--over-connections=reset")),
    "haproxy, 5 in 1 s": Kind(5.0, 8, 400.0, frontend=limited(5, "1s")),
    "haproxy, 15 in 3 s": Kind(5.0, 8, 400.0, frontend=limited(15, "3s")),
    # The usual 256 connections would be 256 and 43 requests a second.
    "1 s away": Kind(300.0, 2, 300.0, delay_s=1.0),
    "6 s away": Kind(60.0, 2, 60.0, delay_s=6.0),
}


@dataclass(frozen=True, slots=True)
class Job:
    """One search of a service of its own."""

    name: str
    run: int
    budget_s: float


@dataclass(frozen=True, slots=True)
class Outcome:
    """Result of one search."""

    name: str
    error: float  # share of the truth; NaN where no number was given
    covers: bool
    is_generator: bool  # the load generator was the limit
    row: str


def play(job: Job) -> Outcome:
    kind = KINDS[job.name]
    service_s = kind.workers / kind.capacity_rps
    with contextlib.ExitStack() as stack:
        options = (f"--seed={job.run}", *kind.options)
        port = stack.enter_context(known_service(kind.workers, service_s, *options)).port
        if kind.frontend:
            port = stack.enter_context(haproxy(port, frontend=kind.frontend))
        if kind.delay_s:
            port = stack.enter_context(delay_proxy(port, kind.delay_s))
        found, trials = searched(port, job.budget_s)
    error = found.rate_rps / kind.truth_rps - 1 if found.rate_rps else math.nan
    low, high = found.low_rps or 0.0, found.high_rps or math.inf
    covers = found.rate_rps is not None and low <= kind.truth_rps <= high
    figures = (found.rate_rps, found.low_rps, found.high_rps)
    cells = (
        job.name,
        *(f"{figure:.4g}" if figure else "-" for figure in figures),
        f"{error * 100:+.2f}",
        f"{sum(trial.stats.load_s for trial in trials):.0f}",
        str(found.kind),
        "; ".join(found.words),
    )
    is_generator = found.words[:1] == (GENERATOR,)
    return Outcome(job.name, error, covers, is_generator, f"| {' | '.join(cells)} |")


def summary(name: str, outcomes: list[Outcome]) -> str:
    """Return a row of the table for the page."""
    errors = [abs(one.error) for one in outcomes if math.isfinite(one.error)]
    median = f"{statistics.median(errors):.2%}" if errors else "-"
    worst = f"{max(errors):.2%}" if errors else "-"
    near = sum(error <= NEAR for error in errors)
    covered = sum(one.covers for one in outcomes)
    late = sum(one.is_generator for one in outcomes)
    none = len(outcomes) - len(errors)
    count = len(outcomes)
    return (
        f"| {name} | {near} of {count} | {median} | {worst} | {covered} of {count} | "
        f"{none} ({late} of them: the generator was late) |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=10, help="searches of each kind")
    parser.add_argument("--budget", type=float, default=60.0, help="seconds of load")
    parser.add_argument("--kind", choices=list(KINDS), action="append", help="may be repeated")
    parser.add_argument("--at-once", type=int, default=1, help="searches; for low rates only")
    options = parser.parse_args()
    names = options.kind or list(KINDS)
    jobs = [Job(name, run, options.budget) for name in names for run in range(1, options.runs + 1)]
    print("| service | N | low | high | error % | load s | kind | words |", file=sys.stderr)
    outcomes = []
    # Each in a process of its own: the services and the generators share nothing but the machine.
    with multiprocessing.get_context("spawn").Pool(options.at_once) as pool:
        for outcome in pool.imap(play, jobs):
            outcomes.append(outcome)
            print(outcome.row, file=sys.stderr, flush=True)
    print("| service | within 2 % | median error | worst | interval holds N | no number |")
    print("|---|---|---|---|---|---|")
    for name in names:
        print(summary(name, [one for one in outcomes if one.name == name]))


if __name__ == "__main__":
    main()
