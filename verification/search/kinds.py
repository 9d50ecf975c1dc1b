"""Searches of services whose capacity varies: `python -m verification.search.kinds`.

Prints, per family, how often a number was withheld, how far off the others were, and how many were
silently wrong: off by more than 3 %, with an interval that does not contain the truth.
"""

import argparse
import math
import multiprocessing
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from loadstone.analysis.model import Cause
from loadstone.search.run import search
from loadstone.search.settings import SearchSettings
from loadstone.search.strategies import STRATEGIES

sys.path.insert(0, str(Path(__file__).parents[2] / "tests/support"))
from simulator.families import FAMILIES, PACES, draw
from simulator.simulator import Simulator
from simulator.truth import lasting_rps
from simulator.unknown import UNKNOWN

ORDINARY = "ordinary"  # families with one capacity
GROUPS = {ORDINARY: (*FAMILIES,), "varying": (*PACES, "uneven"), "unknown": (*UNKNOWN,)}
WRONG = 0.03  # share of the truth


@dataclass(frozen=True, slots=True)
class Job:
    """One search."""

    family: str
    index: int
    budget_s: float


@dataclass(frozen=True, slots=True)
class Outcome:
    """Result of one search."""

    family: str
    error: float  # share of the truth; NaN where no number was given
    covers: bool
    is_misfit: bool  # its trials do not fit one capacity
    load_s: float

    @property
    def is_silently_wrong(self) -> bool:
        """Whether a number is wrong, and its interval does not say so."""
        return abs(self.error) > WRONG and not self.covers


def play(job: Job) -> Outcome:
    service = draw(job.family, job.index)
    simulator = Simulator(service, job.index)
    settings = SearchSettings(
        budget_s=job.budget_s, arrival_dispersion=1.0 if service.is_poisson else 0.0
    )
    found, trials = search(STRATEGIES["meter"](settings), simulator.measure)
    if job.family in FAMILIES:
        least = most = service.long_run_rps
    else:
        least, most = lasting_rps(service, simulator)
    rate = found.rate_rps
    error = math.nan if rate is None else rate / min(max(rate, least), most) - 1
    covers = (found.low_rps or 0.0) <= most and (found.high_rps or math.inf) >= least
    is_misfit = Cause.INCONSISTENT in found.causes
    load_s = sum(trial.stats.load_s for trial in trials)
    return Outcome(job.family, error, covers, is_misfit, load_s)


def row(family: str, group: list[Outcome]) -> str:
    """Return a row of the table for the page."""
    known = [one for one in group if math.isfinite(one.error)]
    errors = np.abs([one.error for one in known]) * 100
    figures = f"{np.median(errors):.2f} % | {np.quantile(errors, 0.95):.2f} %" if known else "- | -"
    covered = sum(one.covers for one in known)
    silent = sum(one.is_silently_wrong for one in known)
    misfits = sum(one.is_misfit for one in group)
    load_s = np.median([one.load_s for one in group])
    wrong = sum(abs(one.error) > WRONG for one in known)
    return (
        f"| {family} | {figures} | {wrong} | {covered} of {len(known)} | "
        f"{misfits} of {len(group)} | {len(group) - len(known)} | {silent} | {load_s:.0f} s |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--services", type=int, default=200, help="per family")
    parser.add_argument("--first", type=int, default=800_000, help="index of the first service")
    parser.add_argument("--groups", default=",".join(GROUPS))
    parser.add_argument("--budget", type=float, default=60.0, help="seconds of load")
    parser.add_argument("--processes", type=int, default=1)
    options = parser.parse_args()
    families = [family for group in options.groups.split(",") for family in GROUPS[group]]
    indices = range(options.first, options.first + options.services)
    jobs = [Job(family, index, options.budget) for family in families for index in indices]
    with multiprocessing.Pool(options.processes) as pool:
        outcomes = pool.map(play, jobs, chunksize=4)
    print(
        "| family | median error | 95 % tail | off by over 3 % | interval holds N | do not fit | "
        "no number | silently wrong | load |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    for family in families:
        print(row(family, [one for one in outcomes if one.family == family]))
    silent = sum(one.is_silently_wrong for one in outcomes)
    print(f"silently wrong: {silent} of {len(outcomes)}")


if __name__ == "__main__":
    main()
