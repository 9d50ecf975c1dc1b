"""Measures how often `loadstone fault` states a wrong recovery, on simulated loads.

A kill that fails every request for two seconds, and then errors and latency as they are chosen:
`python -m verification.faults.recovery --rounds 200`. Neither a service nor the machine has an
influence.
"""

from collections import Counter
from dataclasses import dataclass

import click
import numpy as np
from numpy.typing import NDArray

from loadstone.analysis.fault import FaultEffect, Injection
from loadstone.analysis.fault_effect import effect, summarize
from loadstone.analysis.iterations import Iterations
from loadstone.analysis.recovery import Recovery
from loadstone.engine.outcome import Outcome

BURST_S = 1.0  # mean length of a burst
IN_BURST = 0.5  # share that fails in a burst
DARK_S = 2.0
HELD_S = 5.0
MEAN_S = 0.05


@dataclass(frozen=True)
class Load:
    """A rate, a length before and after the fault, and the errors of both."""

    rate_rps: float
    before_s: float
    after_s: float
    before: float  # share that fails
    after: float
    slower: float = 1.0  # latency after, as a multiple of that before
    is_bursty: bool = False


def simulated(load: Load, random: np.random.Generator) -> FaultEffect:
    """Return the effect of the fault on one load."""
    seconds = load.before_s + load.after_s
    due_s = np.arange(0, seconds, 1 / load.rate_rps) + random.random() / load.rate_rps
    is_after = due_s >= load.before_s
    fails = np.where(
        is_after,
        errors(due_s, load.after, load.is_bursty, random),
        errors(due_s, load.before, load.is_bursty, random),
    )
    fails |= is_after & (due_s < load.before_s + DARK_S)
    latency_s = MEAN_S * random.lognormal(0.0, 0.5, len(due_s))
    latency_s *= np.where(is_after, load.slower, 1.0)
    done_ns = ((due_s + latency_s) * 1e9).astype(np.int64)
    due_ns = (due_s * 1e9).astype(np.int64)
    iterations = Iterations(
        number=np.arange(len(due_s), dtype=np.uint32),
        due_ns=due_ns,
        sent_ns=due_ns,
        done_ns=done_ns,
        outcome=np.where(fails, Outcome.HTTP_STATUS, Outcome.OK).astype(np.uint8),
        status=np.where(fails, 503, 201).astype(np.uint16),
        has_ended=np.ones(len(due_s), np.bool_),
        failing=np.flatnonzero(fails),
    )
    return effect(iterations, Injection("kill", load.before_s, load.before_s + HELD_S))


def errors(
    due_s: NDArray[np.float64], share: float, is_bursty: bool, random: np.random.Generator
) -> NDArray[np.bool_]:
    """Return which requests fail: independently, or in bursts that come at random."""
    if not is_bursty:
        return np.asarray(random.random(len(due_s)) < share)
    in_burst = np.zeros(len(due_s), np.bool_)
    count = random.poisson(share / IN_BURST / BURST_S * (due_s[-1] + BURST_S))
    for begin_s in random.uniform(-BURST_S, due_s[-1], count):
        in_burst |= (due_s >= begin_s) & (due_s < begin_s + random.exponential(BURST_S))
    return np.asarray(in_burst & (random.random(len(due_s)) < IN_BURST))


def answers(load: Load, rounds: int, repeats: int) -> Counter[Recovery]:
    """Return how often each answer was given for a fault with so many repeats."""
    found: Counter[Recovery] = Counter()
    for number in range(rounds):
        random = np.random.default_rng([number, repeats])
        try:
            [summary] = summarize([simulated(load, random) for _ in range(repeats)])
        except ValueError:  # no figures, which is exit code 4, too
            found[Recovery.NOT_SHOWN] += 1
            continue
        if summary.not_recovered:
            found[Recovery.NOT_RECOVERED] += 1
        elif summary.not_shown:
            found[Recovery.NOT_SHOWN] += 1
        else:
            found[Recovery.RECOVERED] += 1
    return found


# The rate, and the seconds before and after the fault.
LENGTHS = ((5, 10, 20), (20, 10, 20), (50, 10, 20), (20, 60, 240), (50, 60, 60), (500, 10, 20))
# Share of errors before and after, latency after as a multiple, whether errors come in bursts.
KINDS = (
    (0.0, 0.0, 1.0, False),
    (0.001, 0.001, 1.0, False),
    (0.01, 0.01, 1.0, False),
    (0.05, 0.05, 1.0, False),
    (0.0, 0.01, 1.0, False),
    (0.001, 0.01, 1.0, False),
    (0.01, 0.05, 1.0, False),
    (0.05, 0.10, 1.0, False),
    (0.0, 0.0, 1.5, False),
    (0.0, 0.0, 2.0, False),
    (0.01, 0.01, 1.0, True),
    (0.05, 0.05, 1.0, True),
    (0.01, 0.05, 1.0, True),
)


@click.command()
@click.option("--rounds", default=100, show_default=True, help="Faults of each kind.")
@click.option("--repeats", default=1, show_default=True, help="Loads of each fault.")
def main(rounds: int, repeats: int) -> None:
    """Print a row for each kind of fault: recovered, not recovered and not shown in percent."""
    for before, after, slower, is_bursty in KINDS:
        cells = []
        for rate_rps, before_s, after_s in LENGTHS:
            load = Load(rate_rps, before_s, after_s, before, after, slower, is_bursty)
            found = answers(load, rounds, repeats)
            cells.append(", ".join(f"{100 * found[one] / rounds:.0f}" for one in Recovery))
        kind = f"{100 * before:g} to {100 * after:g} %{' in bursts' if is_bursty else ''}"
        kind += f", {slower:g} times as slow" if slower > 1 else ""
        click.echo(f"| {' | '.join((kind, *cells))} |")


if __name__ == "__main__":
    main()
