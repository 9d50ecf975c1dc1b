"""Error rates of the sequential comparison, on simulated services: `python -m bench.comparison`.

The noise is that of a shared machine: drift (an Ornstein-Uhlenbeck process), bursts of other work
in 15 % of the measurements, and scatter of the measurement itself. Each pair is measured in random
order. Prints the table of docs/compare.md.
"""

from collections import Counter
from dataclasses import dataclass
from math import exp, sqrt

import click
import numpy as np
from rich.console import Console
from rich.table import Table

from loadstone.compare.answer import Answer, Criteria, Metric, Pair, compare
from loadstone.compare.sequential import FEWEST_PAIRS

RATE = Metric("rate", "/s", is_higher_better=True)
MEASUREMENT_S = 12.0
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


def answer(
    ratio: float, noise: Noise, criteria: Criteria, random: np.random.Generator
) -> tuple[Answer, int]:
    """Compare a service with one `ratio` times as fast; return the answer and the pairs taken."""
    pairs: list[Pair] = []
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
            pairs.append((a, measured(ratio)))
        else:
            b = measured(ratio)
            pairs.append((measured(1.0), b))
        if len(pairs) >= FEWEST_PAIRS:
            [found] = compare({RATE: pairs}, criteria)
            if found.answer is not Answer.UNKNOWN or len(pairs) == criteria.most_pairs:
                return found.answer, len(pairs)


@click.command()
@click.option("--count", default=2000, help="Comparisons of equal services per kind of noise.")
@click.option("--seed", default=1)
def main(count: int, seed: int) -> None:
    """Print how often each answer is given, and after how many pairs."""
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
                *(f"{shares[one] / size:.1%}" for one in Answer),
                f"{np.median([pairs for _, pairs in found]):.0f}",
            )
    Console().print(table)


if __name__ == "__main__":
    main()
