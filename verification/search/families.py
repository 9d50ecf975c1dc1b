"""Searches of simulated services, by family: `python -m verification.search.families`.

Each family is a kind of service whose parameters and phases are drawn at random; which services are
drawn depends on their index only. Prints, per family and load time, how often there was a number,
how far off it was (median and 95th percentile), how many were off by more than 3 %, how often an
interval holds the truth, how often the kind of service was named rightly, and the load in seconds.

What N is for a service that varies is written in docs/methodology.md. Each group of families is a
part of `make verify`; *unseen* are families by someone who did not look at the search.
"""

import argparse
import math
import multiprocessing
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from loadstone.search.guard import CHANGED
from loadstone.search.model import Capacity, CapacityKind
from loadstone.search.run import search
from loadstone.search.settings import SearchSettings
from loadstone.search.strategies import STRATEGIES

sys.path.insert(0, str(Path(__file__).parents[2] / "tests/support"))
from simulator import unseen
from simulator.families import CHANGING, FAMILIES, ILL_POSED, LIMITED, REGIMES, draw
from simulator.service import Service
from simulator.simulator import Simulator
from simulator.truth import lasting_rps, sustained_rps
from simulator.unknown import UNKNOWN

WRONG = 0.03  # share of the truth
GROUPS = {
    "ordinary": (*FAMILIES,),
    "refusing": (*LIMITED,),
    "changing": (*CHANGING, *ILL_POSED),
    "regimes": REGIMES,
    "unknown": (*UNKNOWN,),
    "unseen": (*unseen.UNSEEN,),
}


def _is(*kinds: CapacityKind) -> Callable[[Capacity], bool]:
    return lambda found: found.kind in kinds


def _says(words: str) -> Callable[[Capacity], bool]:
    return lambda found: any(words in sentence for sentence in found.words)


# What a search should call a service. A full queue refuses because its service is saturated.
_FULL = _is(CapacityKind.SATURATION)
_REFUSES = _is(CapacityKind.REFUSAL)
_QUEUE = _is(CapacityKind.SATURATION, CapacityKind.REFUSAL)
NAMED: dict[str, Callable[[Capacity], bool]] = {
    **dict.fromkeys(FAMILIES, _FULL),
    **dict.fromkeys(LIMITED, _REFUSES),
    **dict.fromkeys(("overflow", "short-queue", "queue-timeout"), _QUEUE),
    **dict.fromkeys(CHANGING, _says(CHANGED)),
    "slowing-limiter": _FULL,
    "decline": _says("declines all the time"),
    "weak-decline": _says("declines all the time"),
    "collapse": _is(CapacityKind.COLLAPSE),
    "uneven": _says("a slower part of the service"),
    "latency-only": _is(CapacityKind.CEILING),
    "errors": _says("errors that do not depend on the load"),
}


@dataclass(frozen=True, slots=True)
class Job:
    """One search."""

    family: str
    index: int
    budget_s: float
    low_rps: float
    high_rps: float


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a search."""

    family: str
    budget_s: float
    error: float  # share of the truth; NaN without a number
    covers: bool | None  # None: not both bounds are known
    is_named: bool
    load_s: float

    @property
    def has_number(self) -> bool:
        """Whether N was stated."""
        return not math.isnan(self.error)

    @property
    def is_wrong(self) -> bool:
        """Whether the stated N is off by more than 3 %."""
        return abs(self.error) > WRONG


def play(job: Job) -> Outcome:
    """Search for N of one service."""
    service = draw(job.family, job.index, job.low_rps, job.high_rps)
    simulator = Simulator(service, job.index)
    settings = SearchSettings(
        budget_s=job.budget_s, arrival_dispersion=1.0 if service.is_poisson else 0.0
    )
    found, trials = search(STRATEGIES["meter"](settings), simulator.measure)
    if job.family in unseen.UNSEEN:
        least, most = unseen.lasting_rps(job.family, service)
    else:
        least, most = truth(job.family, service, simulator, found)
    rate, low, high = found.rate_rps, found.low_rps, found.high_rps
    error = math.nan
    if rate is not None:
        nearest = min(max(rate, least), most)
        error = rate / nearest - 1 if nearest else math.inf
    is_bounded = low is not None and high is not None
    return Outcome(
        family=job.family,
        budget_s=job.budget_s,
        error=error,
        covers=(low or 0.0) <= most and (high or 0.0) >= least if is_bounded else None,
        is_named=job.family in NAMED and NAMED[job.family](found),
        load_s=sum(trial.stats.load_s for trial in trials),
    )


def truth(
    family: str, service: Service, simulator: Simulator, found: Capacity
) -> tuple[float, float]:
    """Return N as a range: it is one where capacity depends on the queue."""
    if family == "errors":
        return 0.0, 0.0  # no rate has few enough
    if family == "latency-only":
        is_bound = found.kind is CapacityKind.CEILING
        return (0.0 if is_bound else math.inf), math.inf
    if family in LIMITED:
        return (sustained_rps(service),) * 2
    if family in CHANGING and (change := service.change) is not None:
        slower = change.slower if change.at_s < simulator.now_s < change.back_at_s else 1.0
        return (service.capacity_rps / slower,) * 2
    if family in FAMILIES or family in ILL_POSED:
        rates: tuple[float, float] = (service.long_run_rps, service.crowded_rps)
        return min(rates), max(rates)
    lasting: tuple[float, float] = lasting_rps(service, simulator)
    return lasting


COLUMNS = ("a number", "median / 95 % error", "wrong", "interval holds N", "named", "load")


def cells(family: str, group: list[Outcome]) -> tuple[str, ...]:
    """Return the figures of a family with one load time."""
    errors = np.abs([one.error for one in group if one.has_number]) * 100
    stated = [one.covers for one in group if one.covers is not None]
    # Where no rate is right, as with errors at any rate, each number is off by infinity.
    is_known = bool(len(errors) and np.isfinite(errors).all())
    middle, tail = np.quantile(errors, [0.5, 0.95]) if is_known else (math.nan, math.nan)
    load_s = np.median([one.load_s for one in group])
    return (
        f"{len(errors)} of {len(group)}",
        f"{middle:.2f} / {tail:.2f} %" if is_known else "-",
        f"{sum(one.is_wrong for one in group)}",
        f"{sum(stated)} of {len(stated)}",
        f"{sum(one.is_named for one in group)}" if family in NAMED else "-",
        f"{load_s:.0f} s",
    )


def main() -> None:
    """Print a row for each family, then the wrong numbers of each group."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--services", type=int, default=200, help="per family")
    parser.add_argument("--first", type=int, default=1_500_000, help="index of the first service")
    parser.add_argument("--groups", default=",".join(one for one in GROUPS if one != "unseen"))
    parser.add_argument("--budgets", default="240,60", help="seconds of load")
    parser.add_argument("--rates", default="20-180", help="lowest and highest capacity drawn")
    parser.add_argument("--processes", type=int, default=1)
    options = parser.parse_args()
    low_rps, high_rps = (float(rate) for rate in options.rates.split("-"))
    budgets_s = [float(text) for text in options.budgets.split(",")]
    groups = {name: GROUPS[name] for name in options.groups.split(",")}
    families = [family for group in groups.values() for family in group]
    indices = range(options.first, options.first + options.services)
    jobs = [
        Job(family, index, budget_s, low_rps, high_rps)
        for budget_s in budgets_s
        for family in families
        for index in indices
    ]
    with multiprocessing.Pool(options.processes) as pool:
        outcomes = pool.map(play, jobs, chunksize=4)
    played = {
        (family, budget_s): [o for o in outcomes if (o.family, o.budget_s) == (family, budget_s)]
        for family in families
        for budget_s in budgets_s
    }
    heads = [f"{name}, {budget_s:.0f} s" for budget_s in budgets_s for name in COLUMNS]
    print(f"| family | {' | '.join(heads)} |")
    print("|---" * (len(heads) + 1) + "|")
    for family in families:
        row = [cell for budget_s in budgets_s for cell in cells(family, played[family, budget_s])]
        print(f"| {family} | {' | '.join(row)} |")
    for name, members in groups.items():
        for budget_s in budgets_s:
            every = [one for family in members for one in played[family, budget_s]]
            stated = [one.covers for one in every if one.covers is not None]
            print(
                f"{name}, {budget_s:.0f} s: {sum(one.has_number for one in every)} numbers in "
                f"{len(every)} searches, {sum(one.is_wrong for one in every)} off by more than "
                f"3 %; {sum(stated)} of {len(stated)} intervals hold N"
            )


if __name__ == "__main__":
    main()
