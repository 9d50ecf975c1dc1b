"""How often `loadstone bisect` blames the right version, on simulated versions.

    python -m verification.comparison.bisections

Of 16 versions a random one brings a slowdown of 3 to 30 %. Each comparison is that of
`verification.comparison.turns`, request by request, on a quiet and on a busy machine.
"""

from collections import Counter
from dataclasses import dataclass

import click
import numpy as np
from rich.console import Console
from rich.table import Table

from loadstone.compare.answer import ComparisonAnswer, Criteria, MetricComparison, Pair, compare
from loadstone.compare.bisect import JudgedVersion, bisect, limit, slowest, step_of
from loadstone.compare.metrics import REQUEST_TIME
from loadstone.compare.pairs import GuardOutcome, verdict
from loadstone.compare.turns import time
from verification.comparison.turns import (
    NOISES,
    REQUEST_S,
    SCATTER,
    TRIAL_S,
    WIDTH,
    Noise,
    in_turns,
    slowness,
)

VERSIONS = 16
CRITERIA = Criteria(most_pairs=48, fewest_pairs=8)
LEAST, MOST = 0.03, 0.3  # slowdown


@dataclass(frozen=True, slots=True)
class Machine:
    """A machine that compares versions by the times of single requests."""

    noise: Noise
    random: np.random.Generator

    def compared(self, ratio: float, most_slower: float | None) -> MetricComparison:
        """Compare a version with one whose requests take `ratio` times as long."""
        per_trial = round(TRIAL_S / REQUEST_S)
        count = per_trial * CRITERIA.most_pairs
        level = slowness(self.noise, count, REQUEST_S, self.random)
        time_s = REQUEST_S * np.exp(level + self.random.normal(0.0, SCATTER, count))
        pairs: list[Pair] = []
        for number in range(CRITERIA.most_pairs):
            requests_s = time_s[number * per_trial :][:per_trial]
            pairs.append(time(*in_turns(requests_s, 1, ratio, self.noise, self.random)))
            if number + 1 < CRITERIA.fewest_pairs:
                continue
            [row] = compare({REQUEST_TIME: pairs}, CRITERIA)
            if most_slower is None and row.answer is not ComparisonAnswer.UNKNOWN:
                break
            if most_slower and verdict(row, most_slower) is not GuardOutcome.UNDECIDED:
                break
        return row


def outcome(machine: Machine) -> str:
    """Return how one bisection ends."""
    random = machine.random
    first_bad = int(random.integers(1, VERSIONS))
    slower = 1 + random.uniform(LEAST, MOST)
    whole = slowest([machine.compared(slower, None)])
    if whole is None:
        return "no slowdown shown"

    def compared(index: int) -> JudgedVersion:
        ratio = slower if index >= first_bad else 1.0
        return step_of(index, [machine.compared(ratio, limit(whole))], whole)

    found = bisect(VERSIONS, compared)
    if not found.is_found:
        return "cannot decide"
    return "right" if found.first_bad == first_bad else "wrong"


@click.command()
@click.option("--count", default=200, help="Bisections on each machine.")
@click.option("--seed", default=1)
def main(count: int, seed: int) -> None:
    """Print how often each outcome comes."""
    table = Table("machine", "right", "wrong", "cannot decide", "no slowdown shown")
    for noise in NOISES[:4]:
        machine = Machine(noise, np.random.default_rng(seed))
        found = Counter(outcome(machine) for _ in range(count))
        shown = ("right", "wrong", "cannot decide", "no slowdown shown")
        table.add_row(noise.title, *(f"{found[one]} of {count}" for one in shown))
    Console(width=WIDTH).print(table)


if __name__ == "__main__":
    main()
