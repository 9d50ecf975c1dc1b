"""Search methods against simulated services of known capacity.

    python -m verification.search.simulated

Prints, per family of services and method, the median error, the 95 % tail, the load time and how
often the interval covered the truth. Which services are drawn depends on their index only.
"""

import argparse
import multiprocessing
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from loadstone.search.guard import CHANGED
from loadstone.search.run import search
from loadstone.search.settings import SearchSettings
from loadstone.search.strategies import STRATEGIES

sys.path.insert(0, str(Path(__file__).parents[2] / "tests/support"))
from simulator.families import CHANGING, FAMILIES, ILL_POSED, LIMITED, draw
from simulator.service import Service
from simulator.simulator import Simulator
from simulator.truth import sustained_rps

METHODS = ("meter", "bisect", "isp-ras-2015", "mlrsearch", "closed-loop-peak")
CEILING_RPS = 5000.0
# The published methods need a highest rate; the paper's own is 200.
RIVAL_CEILING_RPS = 400.0


@dataclass(frozen=True, slots=True)
class Job:
    """One search."""

    family: str
    method: str
    index: int
    budget_s: float
    low_rps: float
    high_rps: float


@dataclass(frozen=True, slots=True)
class Outcome:
    """Result of one search."""

    family: str
    method: str
    error: float  # share of the truth; NaN where no number was given
    covers: bool | None  # None: the method states no interval
    half_width: float
    load_s: float
    says_changed: bool  # a false alarm where the family's services never change


def play(job: Job) -> Outcome:
    service = draw(job.family, job.index, job.low_rps, job.high_rps)
    simulator = Simulator(service, seed=job.index)
    ceiling_rps = CEILING_RPS if job.method in ("meter", "bisect") else RIVAL_CEILING_RPS
    settings = SearchSettings(
        budget_s=job.budget_s,
        ceiling_rps=ceiling_rps,
        arrival_dispersion=1.0 if service.is_poisson else 0.0,
    )
    capacity, trials = search(STRATEGIES[job.method](settings), simulator.measure)
    least, most = truth(job.family, service, simulator.now_s)
    rate = capacity.rate_rps
    if rate is not None and job.method.startswith("isp-ras"):
        rate += 0.5  # its whole number stands for what lies between it and the next
    error = (rate - min(max(rate, least), most)) / service.long_run_rps if rate else float("nan")
    low, high = capacity.low_rps, capacity.high_rps
    states = low is not None or high is not None
    covers = (low or 0.0) <= most and (high or np.inf) >= least if states else None
    half_width = (high - low) / 2 / service.long_run_rps if low and high else float("nan")
    load_s = sum(trial.stats.load_s for trial in trials)
    says_changed = any(CHANGED in words for words in capacity.words)
    return Outcome(job.family, job.method, error, covers, half_width, load_s, says_changed)


def truth(family: str, service: Service, end_s: float) -> tuple[float, float]:
    """Return the true N as a range: where capacity depends on the backlog it is none by itself."""
    if family in LIMITED:
        return (sustained_rps(service),) * 2
    change = service.change
    if change is not None:  # what counts is how the service is at the end
        slower = change.slower if change.at_s < end_s < change.back_at_s else 1.0
        return (service.capacity_rps / slower,) * 2
    least, most = sorted((service.long_run_rps, service.crowded_rps))
    return least, most


def table(outcomes: Iterable[Outcome]) -> Iterator[str]:
    """Rows of Markdown, one per family and method."""
    yield (
        "| family | method | services | median error % | 95 % tail % | load s, median | most | "
        "interval covers % | half-width % | no number | changes said |"
    )
    yield "|---|---|---|---|---|---|---|---|---|---|---|"
    groups: dict[tuple[str, str], list[Outcome]] = {}
    for outcome in outcomes:
        groups.setdefault((outcome.family, outcome.method), []).append(outcome)
    for (family, method), group in groups.items():
        yield _row(family, method, group)


def _row(family: str, method: str, group: list[Outcome]) -> str:
    errors = np.abs([one.error for one in group])
    known = errors[np.isfinite(errors)] * 100
    stated = [one.covers for one in group if one.covers is not None]
    widths = [one.half_width for one in group if np.isfinite(one.half_width)]
    loads = [one.load_s for one in group]
    return " | ".join(
        (
            f"| {family}",
            method,
            f"{len(group)}",
            f"{np.median(known):.2f}" if len(known) else "-",
            f"{np.quantile(known, 0.95):.2f}" if len(known) else "-",
            f"{np.median(loads):.0f}",
            f"{max(loads):.0f}",
            f"{np.mean(stated) * 100:.1f}" if stated else "none stated",
            f"{np.median(widths) * 100:.2f}" if widths else "-",
            f"{len(group) - len(known)}",
            f"{sum(one.says_changed for one in group)} |",
        )
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--services", type=int, default=200, help="per family, for meter")
    parser.add_argument("--rival-services", type=int, default=50, help="per family, for the rest")
    parser.add_argument("--first", type=int, default=0, help="index of the first service")
    parser.add_argument(
        "--families", default=",".join([*FAMILIES, *ILL_POSED, *LIMITED, *CHANGING])
    )
    parser.add_argument("--methods", default=",".join(METHODS))
    parser.add_argument("--budget", type=float, default=295.0, help="seconds of load")
    parser.add_argument("--rates", default="20-180", help="lowest and highest capacity drawn")
    parser.add_argument("--processes", type=int, default=1)
    options = parser.parse_args()
    low_rps, high_rps = (float(rate) for rate in options.rates.split("-"))
    jobs = [
        Job(family, method, index, options.budget, low_rps, high_rps)
        for method in options.methods.split(",")
        for family in options.families.split(",")
        for index in range(
            options.first,
            options.first + (options.services if method == "meter" else options.rival_services),
        )
    ]
    with multiprocessing.Pool(options.processes) as pool:
        outcomes = []
        for outcome in pool.imap(play, jobs, chunksize=4):
            outcomes.append(outcome)
            if len(outcomes) % 100 == 0:
                print(f"{len(outcomes)} of {len(jobs)} searches", file=sys.stderr, flush=True)
    for row in table(outcomes):
        print(row)


if __name__ == "__main__":
    main()
