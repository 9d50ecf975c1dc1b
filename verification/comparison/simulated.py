"""Error rates of the sequential comparison, on simulated services.

    python -m verification.comparison.simulated

The noise is that of a shared machine: drift (an Ornstein-Uhlenbeck process), bursts of other work
in 15 % of the measurements, and scatter of the measurement itself. Each pair is measured in random
order. Prints the tables of docs/compare.md: how often each answer comes, and the power curve.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from math import exp, inf, log, sqrt

import click
import numpy as np
from rich.console import Console
from rich.table import Table

from loadstone.compare.answer import ComparisonAnswer, Criteria, Metric, Pair, compare
from loadstone.compare.sequential import FEWEST_PAIRS, pairs_needed

RATE = Metric("rate", "/s", is_higher_better=True)
MEASUREMENT_S = 12.0
WIDTH = 120  # of the tables, also in a file
SCATTER = 0.012  # standard deviation of one measurement
BURST_SHARE, BURST_DEPTH = 0.15, 0.08


@dataclass(frozen=True, slots=True)
class Noise:
    """Slow changes of a machine's speed."""

    deviation: float
    correlation_s: float

    @property
    def title(self) -> str:
        """The noise in words."""
        return f"drift of {self.deviation:.0%}, correlated over {self.correlation_s:g} s"


NOISES = (Noise(0.02, 30.0), Noise(0.03, 600.0), Noise(0.03, 3600.0))


def measured_pairs(ratio: float, noise: Noise, random: np.random.Generator) -> Iterator[Pair]:
    """Measure a service and one `ratio` times as fast, again and again."""
    drift = random.normal(0.0, noise.deviation)
    keeps = exp(-MEASUREMENT_S / noise.correlation_s)

    def measured(speed: float) -> float:
        nonlocal drift
        drift = keeps * drift + random.normal(0.0, noise.deviation * sqrt(1 - keeps * keeps))
        burst = BURST_DEPTH * random.random() if random.random() < BURST_SHARE else 0.0
        return speed * exp(drift - burst + random.normal(0.0, SCATTER))

    while True:
        if random.random() < 0.5:
            a = measured(1.0)
            yield a, measured(ratio)
        else:
            b = measured(ratio)
            yield measured(1.0), b


def answer(
    ratio: float, noise: Noise, criteria: Criteria, random: np.random.Generator
) -> tuple[ComparisonAnswer, int]:
    """Compare a service with one `ratio` times as fast; return the answer and the pairs taken."""
    pairs: list[Pair] = []
    for pair in measured_pairs(ratio, noise, random):
        pairs.append(pair)
        if len(pairs) >= FEWEST_PAIRS:
            [found] = compare({RATE: pairs}, criteria)
            if found.answer is not ComparisonAnswer.UNKNOWN or len(pairs) == criteria.most_pairs:
                return found.answer, len(pairs)
    raise AssertionError("pairs do not end")


def deviation(noise: Noise, random: np.random.Generator) -> float:
    """Return the standard deviation of the log ratios of pairs."""
    pairs = islice(measured_pairs(1.0, noise, random), 20_000)
    return float(np.std([log(b / a) for a, b in pairs]))


def power(count: int, seed: int) -> Table:
    """Return after how many pairs a difference is found, beside the formula for one test."""
    table = Table("noise", "difference", "found in 40 pairs", "80 % within, pairs", "formula")
    criteria = Criteria(same_within=0.0)  # goes on until it finds the difference
    for noise in NOISES:
        random = np.random.default_rng(seed)
        spread = deviation(noise, random)
        for share in (0.01, 0.02, 0.03, 0.05, 0.1):
            found = [answer(1 + share, noise, criteria, random) for _ in range(count)]
            took = sorted(n if one is ComparisonAnswer.FASTER else inf for one, n in found)
            within = took[int(0.8 * count)]
            table.add_row(
                noise.title,
                f"{share:.0%}",
                f"{sum(one < inf for one in took) / count:.0%}",
                "more than 40" if within == inf else f"{within:.0f}",
                str(pairs_needed(spread, log(1 + share), criteria.alpha)),
            )
    return table


@click.command()
@click.option("--count", default=2000, help="Comparisons of equal services per kind of noise.")
@click.option("--seed", default=1)
@click.option("--only-power", is_flag=True, help="The power curve alone.")
def main(count: int, seed: int, *, only_power: bool) -> None:
    """Print how often each answer is given, and after how many pairs."""
    if not only_power:
        Console(width=WIDTH).print(answers(count, seed))
    Console(width=WIDTH).print(power(count // 4, seed))


def answers(count: int, seed: int) -> Table:
    """Return how often each answer is given."""
    table = Table("noise", "B / A", "faster", "slower", "same", "unknown", "median pairs")
    for noise in NOISES:
        for ratio in (1.0, 1.02, 1.03, 1.05, 1.1):
            random = np.random.default_rng(seed)
            size = count if ratio == 1.0 else count // 4
            found = [answer(ratio, noise, Criteria(), random) for _ in range(size)]
            shares = Counter(one for one, _ in found)
            table.add_row(
                noise.title,
                f"{ratio:.2f}",
                *(f"{shares[one] / size:.1%}" for one in ComparisonAnswer),
                f"{np.median([pairs for _, pairs in found]):.0f}",
            )
    return table


if __name__ == "__main__":
    main()
