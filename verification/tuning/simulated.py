"""Tunings of simulated services, whose true gain is known.

    python -m verification.tuning.simulated --null
    python -m verification.tuning.simulated

Each comparison is that of `verification.comparison.turns`: every request of both sides is
simulated, in the noise of a shared machine. With `--null` no setting has an effect, and the answer
must be that no gain is shown. Without it, ten settings with two or three levels have effects and
interactions, and the stated interval must hold the true gain of the stated combination.
"""

from collections import Counter
from dataclasses import dataclass, field
from itertools import combinations
from math import exp, log
from statistics import fmean, median

import click
import numpy as np
from rich.console import Console
from rich.table import Table

from loadstone.compare import trimmed
from loadstone.compare.turns import rate
from loadstone.tune.evidence import GainEvidence
from loadstone.tune.model import Comparison, ComparisonOutcome, Terms, Tuned
from loadstone.tune.space import ChangeEffort, Pairs, Setting, SettingKind, Space
from loadstone.tune.tuning import tune
from verification.comparison.turns import (
    AT_ONCE,
    NOISES,
    REQUEST_S,
    SCATTER,
    TRIAL_S,
    Noise,
    in_turns,
    slowness,
)

START_S, PAIR_S = 30.0, 5.0  # of two services until the first pair; of a pair of trials
BUDGET_S = 2 * 3600.0
DRIFT_AND_BURSTS = Noise(
    "drift of 25 % over 5 s, and bursts", drift=0.25, correlation_s=5.0, bursts=0.1
)
MACHINES = (NOISES[0], DRIFT_AND_BURSTS, NOISES[3])


def space_of(settings: int, levels: int = 3) -> Space:
    """Return a space of settings with numbered levels; the default has level 0 of each."""
    names = [f"conf.simulated.s{number}" for number in range(settings)]
    possible = tuple(str(level) for level in range(levels))
    return Space(
        "simulated",
        tuple(
            Setting(one, possible, SettingKind.GAIN, ChangeEffort.RESTART, "", "") for one in names
        ),
        (),
        tuple((one, "0") for one in names),
    )


@dataclass(frozen=True, slots=True)
class Truth:
    """How fast each combination is: the effects of levels, and of pairs of levels."""

    effects: dict[tuple[str, str], float] = field(default_factory=dict)
    interactions: dict[frozenset[tuple[str, str]], float] = field(default_factory=dict)

    def speed(self, changes: Pairs) -> float:
        """Return the logarithm of the speed beside the default."""
        both = (self.interactions.get(frozenset(two), 0.0) for two in combinations(changes, 2))
        return sum(self.effects.get(one, 0.0) for one in changes) + sum(both)


def drawn(space: Space, random: np.random.Generator) -> Truth:
    """Return random effects: half of the levels do nothing, the others a few percent."""
    levels = [(s.name, level) for s in space.settings for level in s.levels if level != "0"]
    effects = {one: random.normal(0.0, 0.05) * (random.random() < 0.5) for one in levels}
    pairs = [two for two in combinations(levels, 2) if two[0][0] != two[1][0]]
    chosen = random.choice(len(pairs), size=len(pairs) // 10, replace=False)
    interactions = {frozenset(pairs[one]): random.normal(0.0, 0.03) for one in chosen}
    return Truth(effects, interactions)


@dataclass(frozen=True, slots=True)
class Machine:
    """A shared machine on which both sides take turns."""

    truth: Truth
    noise: Noise
    random: np.random.Generator

    def measure(self, comparison: Comparison) -> ComparisonOutcome:
        """Compare two combinations request by request."""
        b_takes = exp(self.truth.speed(comparison.a) - self.truth.speed(comparison.b))
        per_trial = round(TRIAL_S / REQUEST_S)
        count = per_trial * comparison.pairs
        level = slowness(self.noise, count, REQUEST_S, self.random)
        time_s = REQUEST_S * np.exp(level + self.random.normal(0.0, SCATTER, count))
        values = []
        for number in range(comparison.pairs):
            requests_s = time_s[number * per_trial :][:per_trial]
            a, b = rate(*in_turns(requests_s, AT_ONCE, b_takes, self.noise, self.random), AT_ONCE)
            values.append(log(b / a))
        mean, deviation = trimmed.mean(values), trimmed.deviation(values)
        evidence = GainEvidence(mean, deviation, comparison.pairs, fmean(values))
        load_s = comparison.pairs * PAIR_S
        return ComparisonOutcome(evidence, took_s=START_S + load_s, load_s=load_s)


def tuned(space: Space, machine: Machine, seed: int, budget_s: float = BUDGET_S) -> Tuned:
    """Tune a simulated service."""
    terms = Terms(budget_s, seed, start_s=START_S, pair_s=PAIR_S)
    return tune(space, terms, (), machine.measure, lambda _line: None)


def _null(count: int, seed: int) -> Table:
    table = Table(
        "machine", "tunings", "no gain shown", "gain shown", "seen while searching, median"
    )
    for noise in MACHINES:
        answers: Counter[bool] = Counter()
        seen = []
        for number in range(count):
            machine = Machine(Truth(), noise, np.random.default_rng((seed, number)))
            found = tuned(space_of(10), machine, seed + number)
            answers[found.has_gain] += 1
            if found.winner is not None and found.winner.evidence is not None:
                seen.append(exp(found.winner.evidence.mean) - 1)
        share = f"{answers[False] / count:.1%}"
        table.add_row(noise.title, str(count), share, str(answers[True]), f"{median(seen):+.1%}")
    return table


@dataclass(slots=True)
class _Coverage:
    """Counts over the tunings of one machine."""

    held: int = 0
    stated: int = 0
    gains: list[float] = field(default_factory=list)  # true ones of what is advised
    optimism: list[float] = field(default_factory=list)
    dropped: int = 0
    wrong: int = 0  # a gain is stated, and there is none

    def add(self, found: Tuned, truth: Truth) -> None:
        """Count one tuning; without a proof nothing is stated, so nothing can be wrong."""
        proof = found.stated
        self.gains.append(exp(truth.speed(found.changes)) - 1)
        if proof is None or proof.interval is None:
            self.held += 1
            return
        self.stated += 1
        true = exp(truth.speed(proof.changes))
        self.held += proof.interval.low <= true <= proof.interval.high
        self.wrong += proof.interval.shows_gain and true <= 1
        self.dropped += proof is found.proof_again
        if found.winner is not None and found.winner.evidence is not None:
            seen = found.winner.evidence.mean
            self.optimism.append(exp(seen - truth.speed(found.winner.changes)) - 1)


def _coverage(count: int, seed: int) -> Table:
    table = Table(
        "machine", "tunings", "interval holds the truth", "gain stated where there is none",
        "settings dropped", "true gain, median", "seen beyond the truth, median",
    )  # fmt: skip
    for noise in MACHINES:
        counted = _Coverage()
        for number in range(count):
            random = np.random.default_rng((seed, number))
            space = space_of(10)
            truth = drawn(space, random)
            counted.add(tuned(space, Machine(truth, noise, random), seed + number), truth)
        table.add_row(
            noise.title,
            str(count),
            f"{counted.held} of {count}",
            str(counted.wrong),
            str(counted.dropped),
            f"{median(counted.gains):+.1%}",
            f"{median(counted.optimism):+.1%}",
        )
    return table


@click.command()
@click.option("--null", "is_null", is_flag=True, help="No setting has an effect.")
@click.option("--count", default=0, help="Tunings on each machine; 0: 1,000 null ones, else 100.")
@click.option("--seed", default=1)
def main(*, is_null: bool, count: int, seed: int) -> None:
    """Print how often a gain is shown, and how often the stated interval holds the truth."""
    table = _null(count or 1000, seed) if is_null else _coverage(count or 100, seed)
    Console(width=130).print(table)


if __name__ == "__main__":
    main()
