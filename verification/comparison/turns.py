"""Error rates of comparisons in turns, on simulated services, beside comparisons in blocks.

    python -m verification.comparison.turns

Every request of both services is simulated, in the noise of a shared machine: what slows it for
seconds or minutes slows the requests of both, each request scatters by itself, and one side may
slow the next request of the other. Turns and blocks see the same noise for the same time. Prints
the table of docs/compare.md.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from math import exp, inf, log, sqrt

import click
import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from loadstone.compare.answer import (
    ALPHA,
    LEADING_WEIGHT,
    ComparisonAnswer,
    Criteria,
    Metric,
    MetricComparison,
    Pair,
    compare,
)
from loadstone.compare.measure import ALONE_S
from loadstone.compare.metrics import REQUEST_TIME, THROUGHPUT
from loadstone.compare.turns import Turns, rate, time

REQUEST_S = 0.04
AT_ONCE = 8  # iterations of a turn with several in flight
TRIAL_S, BLOCK_S = 3.0, 6.0
# The other metrics of a real comparison have the rest of the error rate.
CRITERIA = Criteria(most_pairs=40, fewest_pairs=8, alpha=LEADING_WEIGHT * ALPHA)
BLOCKS = Criteria(most_pairs=20)  # that fit into the time of so many pairs in turns
SCATTER = 0.2  # standard deviation of one request's log time
WIDTH = 130


@dataclass(frozen=True, slots=True)
class Noise:
    """What slows a shared machine, and how requests follow each other."""

    title: str
    drift: float = 0.0  # standard deviation of an Ornstein-Uhlenbeck process
    correlation_s: float = 60.0
    bursts: float = 0.0  # share of the time, in bursts of about a second that slow by a half
    minutes: float = 0.0  # standard deviation of the level of each minute
    leftover: float = 0.0  # A request after one of the other side takes longer by this share.
    one_sided: bool = False  # only B's requests do


NOISES = (
    Noise("a quiet machine", drift=0.02),
    Noise("a busy machine: drift of 25 % over 5 s", drift=0.25, correlation_s=5.0),
    Noise("drift of 20 %, correlated over 1 s", drift=0.2, correlation_s=1.0),
    Noise("bursts of a second in 20 % of the time", drift=0.03, bursts=0.2),
    Noise("each minute another speed, 20 %", drift=0.05, correlation_s=5.0, minutes=0.2),
    Noise("the second of a pair 5 % slower", drift=0.05, leftover=0.05),
)


def slowness(
    noise: Noise, count: int, step_s: float, random: np.random.Generator
) -> NDArray[np.float64]:
    """Return the logarithm of the machine's slowness at `count` instants, `step_s` apart."""
    from scipy.signal import lfilter

    keeps = exp(-step_s / noise.correlation_s)
    steps = random.normal(0.0, noise.drift * sqrt(1 - keeps * keeps), count)
    steps[0] = random.normal(0.0, noise.drift)
    found = lfilter([1.0], [1.0, -keeps], steps)
    at_s = np.arange(count) * step_s
    if noise.bursts:
        edges = random.random(count) < step_s / (1.0 / noise.bursts)
        lasting = np.convolve(edges, np.ones(round(1.0 / step_s)))[:count] > 0
        found = found + lasting * log(1.5)
    if noise.minutes:
        minutes = (at_s // 60).astype(int)
        found = found + random.normal(0.0, noise.minutes, minutes[-1] + 1)[minutes]
    return np.asarray(found)


@dataclass(frozen=True, slots=True)
class Found:
    """The answers of a comparison, by turns and by blocks in the same time."""

    turns: tuple[MetricComparison, ...]
    blocks: MetricComparison
    seconds: float


def compared(ratio: float, noise: Noise, random: np.random.Generator) -> Found:
    """Compare a service with one whose requests take `ratio` times as long."""
    count = round(2 * TRIAL_S * CRITERIA.most_pairs / REQUEST_S)
    machine = slowness(noise, count, REQUEST_S, random)
    time_s = REQUEST_S * np.exp(machine + random.normal(0.0, SCATTER, count))
    per_trial, alone = round(TRIAL_S / REQUEST_S), round(ALONE_S / REQUEST_S)
    pairs: dict[Metric, list[Pair]] = {THROUGHPUT: [], REQUEST_TIME: []}
    is_open = dict.fromkeys(pairs, True)
    used = 0
    for number in range(CRITERIA.most_pairs):
        # The requests take so long that a round that asks for both has a whole trial of them.
        sizes = {THROUGHPUT: per_trial} if is_open[THROUGHPUT] else {}
        sizes[REQUEST_TIME] = per_trial if is_open[REQUEST_TIME] else alone
        for metric, size in sizes.items():
            length = AT_ONCE if metric == THROUGHPUT else 1
            a, b = in_turns(time_s[used:][:size], length, ratio, noise, random)
            pairs[metric].append(rate(a, b, length) if length > 1 else time(a, b))
            used += size
        if number + 1 < CRITERIA.fewest_pairs:
            continue
        rows = compare(pairs, CRITERIA)
        is_open = {row.metric: row.answer is ComparisonAnswer.UNKNOWN for row in rows}
        if not any(is_open.values()):
            break
    [of_blocks] = compare({THROUGHPUT: list(in_blocks(time_s[:used], ratio, random))}, BLOCKS)
    return Found(rows, of_blocks, used * REQUEST_S)


def in_blocks(
    requests_s: NDArray[np.float64], ratio: float, random: np.random.Generator
) -> Iterator[Pair]:
    """Yield the rates of pairs of blocks, one of each side, that these requests fill."""
    size = round(BLOCK_S / REQUEST_S)
    whole = len(requests_s) // (2 * size)
    for halves in requests_s[: 2 * size * whole].reshape(whole, 2, size).mean(axis=2):
        a_s, b_s = halves if random.random() < 0.5 else halves[::-1]
        yield 1 / a_s, 1 / (b_s * ratio)


def in_turns(
    requests_s: NDArray[np.float64],
    length: int,
    ratio: float,
    noise: Noise,
    random: np.random.Generator,
) -> tuple[Turns, Turns]:
    """Return the turns of both sides of these requests, in their order."""
    whole = len(requests_s) // (2 * length)
    took = requests_s[: whole * 2 * length].reshape(whole, 2, length).sum(axis=2)
    took[:, 1] *= 1 + noise.leftover
    is_swapped = random.random(whole) < 0.5
    a_s = np.where(is_swapped, took[:, 1], took[:, 0])
    b_s = np.where(is_swapped, took[:, 0], took[:, 1]) * ratio
    began = np.arange(whole)
    return tuple(Turns(began, (1e9 * one).astype(np.int64)) for one in (a_s, b_s))  # type: ignore[return-value]


def row_of(noise: Noise, ratio: float, count: int, seed: int) -> list[str]:
    """Return a row of the table."""
    random = np.random.default_rng(seed)
    found = [compared(ratio, noise, random) for _ in range(count)]
    cells = [noise.title, f"{ratio:.2f}"]
    for position, truth in ((0, 1 / ratio), (1, ratio)):
        rows = [one.turns[position] for one in found]
        shares = Counter(row.answer for row in rows)
        right = {1.0: ComparisonAnswer.SAME}.get(ratio, ComparisonAnswer.SLOWER)
        wrong = sum(
            shares[one]
            for one in (ComparisonAnswer.FASTER, ComparisonAnswer.SLOWER)
            if one is not right
        )
        if ratio == 1.0:
            wrong = shares[ComparisonAnswer.FASTER] + shares[ComparisonAnswer.SLOWER]
        held = np.mean([row.low <= truth <= row.high for row in rows])
        cells += [f"{shares[right] / count:.1%}", f"{wrong / count:.1%}", f"{held:.1%}"]
    cells.append(f"{np.median([one.seconds for one in found]):.0f}")
    narrower = [[_width(one.blocks) / _width(row) for row in one.turns] for one in found]
    cells += [f"{one:.1f}" for one in np.median(narrower, axis=0)]
    return cells


def _width(row: MetricComparison) -> float:
    return log(row.high / row.low) if row.low else inf  # with too few pairs


@click.command()
@click.option("--count", default=2000, help="Comparisons of equal services per kind of noise.")
@click.option("--seed", default=1)
def main(count: int, seed: int) -> None:
    """Print how often each answer is right, and how much narrower the interval is."""
    table = Table(
        "noise", "B takes", "N: right", "wrong", "held", "request: right", "wrong", "held",
        "seconds", "narrower: N", "request",
    )  # fmt: skip
    for noise in NOISES:
        for ratio in (1.0, 1.03, 1.06):
            size = count if ratio == 1.0 else count // 4
            table.add_row(*row_of(noise, ratio, size, seed))
    Console(width=WIDTH).print(table)


if __name__ == "__main__":
    main()
