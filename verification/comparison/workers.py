"""Comparisons in turns of simulated services with several workers.

    python -m verification.comparison.workers

A turn of several requests ends with workers that have nothing to do, which a full service does not
have. Every request of both services is simulated: each worker serves one after the other from a
common queue. Prints how often the answer is wrong, how often the interval holds the true ratio, and
the median ratio beside the true one, with and without the correction for idle workers: the table of
docs/compare.md.
"""

from dataclasses import dataclass
from math import log, sqrt
from statistics import median

import click
import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from loadstone.compare.answer import ComparisonAnswer, Criteria, MetricComparison, Pair, compare
from loadstone.compare.metrics import THROUGHPUT
from loadstone.compare.turns import Duet, Turns, full_rates, rate, turn_length

REQUEST_S = 0.05
TRIAL_S = 3.0
SINGLE_S = 1.0  # as in studies and `tune`
IN_FLIGHT_OF_WORKER = 2
LEAST_IN_FLIGHT = 8
CRITERIA = Criteria(most_pairs=24, fewest_pairs=8)
CASES = (
    (1, 1, 0.3),
    (4, 4, 0.3),
    (8, 8, 0.3),
    (4, 4, 1.0),
    (1, 2, 0.3),
    (1, 4, 0.3),
    (2, 8, 0.3),
)


@dataclass(frozen=True, slots=True)
class Case:
    """Two services of so many workers, and the variation of a request's time."""

    a: int
    b: int
    variation: float

    @property
    def ratio(self) -> float:
        """The true ratio of their throughput."""
        return self.b / self.a

    @property
    def in_flight(self) -> int:
        """Requests in flight, as studies choose them."""
        return max(LEAST_IN_FLIGHT, IN_FLIGHT_OF_WORKER * max(self.a, self.b))


def times_s(case: Case, shape: tuple[int, ...], random: np.random.Generator) -> NDArray[np.float64]:
    """Return the times of requests, lognormal."""
    spread = sqrt(log(1 + case.variation**2))
    return REQUEST_S * random.lognormal(-spread * spread / 2, spread, shape)


def turns(case: Case, workers: int, count: int, length: int, random: np.random.Generator) -> Turns:
    """Return turns of `length` requests, which the workers take from one queue."""
    requests_s = times_s(case, (count, length), random)
    free_s = np.zeros((count, workers))
    ends_s = np.zeros((count, length))
    rows = np.arange(count)
    for number in range(length):
        worker = free_s.argmin(axis=1)
        free_s[rows, worker] += requests_s[:, number]
        ends_s[:, number] = free_s[rows, worker]
    ends_ns = (1e9 * np.sort(ends_s, axis=1)).astype(np.int64)
    left_ns = np.diff(ends_ns, axis=1)[:, ::-1]
    return Turns(rows, ends_ns[:, -1], left_ns, case.in_flight)


def single(case: Case, random: np.random.Generator) -> Turns:
    """Return requests one at a time, for half of the time of both sides."""
    count = round(SINGLE_S / (2 * REQUEST_S))
    took_ns = (1e9 * times_s(case, (count,), random)).astype(np.int64)
    return Turns(np.arange(count), took_ns)


def compared(case: Case, random: np.random.Generator, *, is_corrected: bool) -> MetricComparison:
    """Compare until the answer is known."""
    slower_s = REQUEST_S / min(case.a, case.b)
    length = turn_length(case.in_flight, slower_s, max(case.a, case.b))
    turn_s = length * (REQUEST_S / case.a + REQUEST_S / case.b) / 2
    count = max(2, round(TRIAL_S / (2 * turn_s)))
    duets: list[Duet] = []
    row = None
    for number in range(CRITERIA.most_pairs):
        several = tuple(turns(case, one, count, length, random) for one in (case.a, case.b))
        alone = (single(case, random), single(case, random))
        duets.append(Duet(length, (several[0], several[1]), {}))
        duets.append(Duet(1, alone, {}))
        if number + 1 < CRITERIA.fewest_pairs:
            continue
        pairs: list[Pair] = list(full_rates(duets))
        if not is_corrected:
            pairs = [rate(*one.turns, length) for one in duets if one.length > 1]
        [row] = compare({THROUGHPUT: pairs}, CRITERIA)
        if row.answer is not ComparisonAnswer.UNKNOWN:
            break
    if row is None:
        raise AssertionError("a comparison has more pairs than it needs at least")
    return row


def row_of(case: Case, count: int, seed: int) -> list[str]:
    """Return a row of the table."""
    cells = [f"{case.a} and {case.b}", f"{case.variation:.1f}", f"{case.ratio:.2f}"]
    for is_corrected in (True, False):
        random = np.random.default_rng(seed)
        found = [compared(case, random, is_corrected=is_corrected) for _ in range(count)]
        wrong = sum(_is_wrong(one, case) for one in found)
        holds = sum(one.low <= case.ratio <= one.high for one in found)
        ratio = median(one.ratio for one in found)
        cells += [f"{wrong / count:.1%}", f"{holds / count:.1%}", f"{ratio:.2f}"]
    return cells


def _is_wrong(found: MetricComparison, case: Case) -> bool:
    if case.ratio == 1:
        return found.answer in (ComparisonAnswer.FASTER, ComparisonAnswer.SLOWER)
    return found.answer in (ComparisonAnswer.SAME, ComparisonAnswer.SLOWER)


@click.command(help=__doc__)
@click.option("--count", default=500, show_default=True, help="Comparisons of each kind.")
def main(count: int) -> None:
    heads = ("workers", "variation", "true ratio")
    of_each = ("wrong", "interval holds", "median ratio")
    table = Table(*heads, *of_each, *(f"{one}, whole turns" for one in of_each))
    for seed, one in enumerate(CASES):
        table.add_row(*row_of(Case(*one), count, seed))
    Console(width=140).print(table)


if __name__ == "__main__":
    main()
