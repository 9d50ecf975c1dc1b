"""Two targets that are loaded in turns: what their turns say of the ratio of their speeds.

The noise of a shared machine is slow against a turn and common to both sides, so it cancels in the
ratio of two turns that follow each other (duet benchmarking: Bulej et al., arXiv 2001.05811). What
remains is that a trial may favour one side as a whole, for example by the cores that its processes
got. So a trial counts as one value, and a comparison has many short ones (batch means).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import ceil, exp

import numpy as np
from numpy.typing import NDArray

from loadstone.analysis import student
from loadstone.analysis.model import Trial
from loadstone.compare.answer import Metric, Pair
from loadstone.compare.metrics import REQUEST_TIME, THROUGHPUT, values
from loadstone.engine.samples import Samples

TRIMMED = 0.1  # share of the pairs of requests that is left out at each end (Yuen 1974)
TURN_S = 0.15  # of a turn with several in flight: short against noise, long against its tail
FEWEST_FOR_ORDER = 40  # pairs of turns for a statement on their order
SURE = 0.99
LEAST_TOLD = 0.01  # share; a smaller effect of the order is not told


@dataclass(frozen=True, slots=True)
class Turns:
    """The complete turns of one side, in their order, shape (n,) each."""

    began_ns: NDArray[np.int64]  # since the common start
    took_ns: NDArray[np.int64]  # from its first iteration's start to its last one's end

    def __len__(self) -> int:
        return len(self.took_ns)


def turns_of(samples: Samples, length: int) -> Turns:
    """Return the turns of `length` iterations that are complete."""
    if not len(samples):
        nothing = np.zeros(0, dtype=np.int64)
        return Turns(nothing, nothing)
    count = int(samples.iteration.max()) + 1
    began = np.full(count, np.iinfo(np.int64).max)
    ended = np.full(count, -1)
    np.minimum.at(began, samples.iteration, samples.due_ns)
    np.maximum.at(ended, samples.iteration, samples.done_ns)
    whole = count // length
    starts, ends = (one[: whole * length].reshape(whole, length) for one in (began, ended))
    is_complete = (ends >= 0).all(axis=1)
    first = starts.min(axis=1)[is_complete]
    return Turns(first, ends.max(axis=1)[is_complete] - first)


def turn_length(workers: int, slowest_s: float) -> int:
    """Return the iterations of a turn; `slowest_s` is the longer time of one at full load."""
    return max(workers, ceil(TURN_S / slowest_s)) if workers > 1 else 1


@dataclass(frozen=True, slots=True)
class Duet:
    """A trial of each side, whose loads took turns."""

    length: int  # iterations in a turn
    turns: tuple[Turns, Turns]
    values: Mapping[Metric, Pair]

    @property
    def pairs(self) -> int:
        """Pairs of turns."""
        return min(map(len, self.turns))


def duet(trials: Sequence[Trial], samples: Sequence[Samples]) -> Duet:
    """Return what a trial of each side says, A first; both have the same length of turns."""
    length = trials[0].turn or 1
    a, b = (turns_of(one, length) for one in samples)
    return Duet(length, (a, b), _values(trials, a, b, length))


def _values(trials: Sequence[Trial], a: Turns, b: Turns, length: int) -> Mapping[Metric, Pair]:
    """Return the values of both sides, by metric.

    Single requests in turns give the time of a request without a queue. Turns with several in
    flight give throughput, and what the whole trial tells: latency quantiles and CPU per request.
    """
    if not min(len(a), len(b)):
        return {}
    if length == 1:
        return {REQUEST_TIME: time(a, b)}
    whole = [values(trial, is_paced=True) for trial in trials]
    found = {THROUGHPUT: rate(a, b, length)}
    for metric in whole[0]:
        if metric in whole[1]:
            found[metric] = (whole[0][metric], whole[1][metric])
    return found


def rate(a: Turns, b: Turns, length: int) -> Pair:
    """Return the throughput of both sides in the turns that both have had, per second."""
    count = min(len(a), len(b))
    ours, theirs = (float(1e9 * length / side.took_ns[:count].mean()) for side in (a, b))
    return ours, theirs


def time(a: Turns, b: Turns) -> Pair:
    """Return the typical time of a turn of both sides, in seconds."""
    count = min(len(a), len(b))
    ours, theirs = (np.log(side.took_ns[:count] / 1e9) for side in (a, b))
    typical = exp(float(np.median(ours)))
    return typical, typical * exp(trimmed_mean(theirs - ours))


def trimmed_mean(values: NDArray[np.float64]) -> float:
    """Return the mean without the lowest and the highest tenth."""
    cut = int(TRIMMED * len(values))
    return float(np.sort(values)[cut : len(values) - cut].mean())


@dataclass(frozen=True, slots=True)
class OrderEffect:
    """How much longer the second turn of a pair takes than the first; shares."""

    share: float
    low: float
    high: float


def order_effect(duets: Sequence[Duet]) -> OrderEffect | None:
    """Return the effect of the order in a pair; None with too few pairs.

    The order is random, so it cancels in the ratio of the sides.
    """
    differences = []
    for one in duets:
        (a, b), count = one.turns, one.pairs
        if not count:
            continue
        ratio = np.log(b.took_ns[:count] / a.took_ns[:count])
        is_second = b.began_ns[:count] > a.began_ns[:count]
        differences.append(np.where(is_second, ratio, -ratio) - ratio.mean() * (2 * is_second - 1))
    joined = np.concatenate(differences) if differences else np.zeros(0)
    if len(joined) < FEWEST_FOR_ORDER:
        return None
    cut = int(TRIMMED * len(joined))
    kept = np.clip(joined, *np.sort(joined)[[cut, -cut - 1]])
    middle = trimmed_mean(joined)
    # Yuen's standard error of a trimmed mean, from the winsorized values.
    error = float(kept.std(ddof=1)) / ((1 - 2 * TRIMMED) * np.sqrt(len(joined)))
    reach = student.quantile(1 - (1 - SURE) / 2, len(joined) - 1) * error
    return OrderEffect(exp(middle) - 1, exp(middle - reach) - 1, exp(middle + reach) - 1)


def statements(duets: Sequence[Duet]) -> Iterator[str]:
    """Say how the trials took turns, and whether the order mattered."""
    single = sum(one.pairs for one in duets if one.length == 1)
    if single:
        yield f"{single:,} pairs of requests, one at a time."
    several = [one for one in duets if one.length > 1]
    if several:
        count = sum(one.pairs for one in several)
        yield f"{count:,} pairs of turns of {several[0].length} iterations with several in flight."
    for kind in (several, [one for one in duets if one.length == 1]):
        effect = order_effect(kind)
        if effect and (effect.low > LEAST_TOLD or effect.high < -LEAST_TOLD):
            longer = "longer" if effect.share > 0 else "shorter"
            yield (
                f"The second of a pair took {100 * abs(effect.share):.1f} % {longer}, whichever "
                "side it was: one leaves something for the other. The random order cancels it."
            )
