"""Two targets that are loaded in turns: what their turns say of the ratio of their speeds.

The noise of a shared machine is slow against a turn and common to both sides, so it cancels in the
ratio of two turns that follow each other (duet benchmarking: Bulej et al., arXiv 2001.05811). What
remains is that a trial may favour one side as a whole, for example by the cores that its processes
got. So a trial counts as one value, and a comparison has many short ones (batch means).

A turn begins with all that is in flight at the same moment, and ends with fewer in flight than the
service serves at once, so that workers of it are idle. Throughput is that of a service without this
idle time (`rate`), and turns are longer if a side serves several at once (`turn_length`): otherwise
many workers and threads would seem to gain less than they do.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil, exp, sqrt
from statistics import fmean

import numpy as np
from numpy.typing import NDArray

from loadstone.analysis import student
from loadstone.analysis.model import Trial
from loadstone.compare import trimmed
from loadstone.compare.answer import Metric, Pair
from loadstone.compare.metrics import REQUEST_TIME, THROUGHPUT, values
from loadstone.engine.samples import Outcome, Samples
from loadstone.report import figures

TURN_S = 0.15  # of a turn with several in flight: short against noise, long against its tail
# A side that serves so many at once has workers or threads side by side. At the start of a turn
# all do the same at the same time, and for example wait for Python's lock, which those of a full
# service seldom do. So a turn has LONGER times as many iterations as are in flight, but ends within
# LONG_TURN_S.
SIDE_BY_SIDE, LONGER, LONG_TURN_S = 1.25, 4, 2.0
FEWEST_FOR_ORDER = 40  # pairs of turns for a statement on their order
ROUNDS = 4  # of a fixed-point iteration that converges within a few per mille in two
NEARLY_ALL = 0.95  # share of the requests in flight
SURE = 0.99
LEAST_TOLD = 0.01  # share; a smaller effect of the order is not told


@dataclass(frozen=True, slots=True)
class Turns:
    """The complete turns of one side, in their order, shape (n,) each."""

    began_ns: NDArray[np.int64]  # since the common start
    took_ns: NDArray[np.int64]  # from its first iteration's start to its last one's end
    # For how long 1, 2, ... iterations were left in flight at the end, shape (n, iterations - 1).
    left_ns: NDArray[np.int64] = field(default_factory=lambda: np.zeros((0, 0), dtype=np.int64))
    in_flight: int = 0  # at the start of a turn

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
    # The end of the load cut these off: their turn is not complete.
    ended[samples.iteration[samples.outcome == Outcome.NOT_SENT]] = -1
    whole = count // length
    starts, ends = (one[: whole * length].reshape(whole, length) for one in (began, ended))
    is_complete = (ends >= 0).all(axis=1)
    first = starts.min(axis=1)[is_complete]
    in_order = np.sort(ends[is_complete], axis=1)
    began_before = (starts[is_complete] < in_order[:, :1]).sum(axis=1)
    in_flight = int(np.median(began_before)) if len(first) else 0
    left_ns = np.diff(in_order, axis=1)[:, ::-1]
    return Turns(first, in_order[:, -1] - first, left_ns, in_flight)


@dataclass(frozen=True, slots=True)
class Duet:
    """A trial of each side, whose loads took turns."""

    length: int  # iterations in a turn
    turns: tuple[Turns, Turns]
    values: Mapping[Metric, Pair]
    start: int | None = None  # number of the start of both services; None: only one is known

    @property
    def pairs(self) -> int:
        """Pairs of turns."""
        return min(map(len, self.turns))

    @property
    def pair_s(self) -> float:
        """Mean time of a turn of A and one of B together, of which there is a pair."""
        return sum(self._took_s)

    @property
    def slowest_s(self) -> float:
        """Time per iteration of the slower side, of which there is a pair."""
        return max(self._took_s) / self.length

    @property
    def _took_s(self) -> list[float]:
        return [float(side.took_ns.mean()) / 1e9 for side in self.turns]


def duet(trials: Sequence[Trial], samples: Sequence[Samples], start: int | None = None) -> Duet:
    """Return what a trial of each side says, A first; both have the same length of turns."""
    length = trials[0].turn or 1
    a, b = (turns_of(one, length) for one in samples)
    return Duet(length, (a, b), _values(trials, a, b, length), start)


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


def request_s(duets: Sequence[Duet]) -> Pair | None:
    """Return the mean time of a request of both sides, one at a time; None if there is none."""
    single = [one for one in duets if one.length == 1 and one.pairs]
    if not single:
        return None
    a, b = (
        float(np.concatenate([one.turns[side].took_ns for one in single]).mean()) / 1e9
        for side in (0, 1)
    )
    return a, b


def turn_length(in_flight: int, slowest_s: float, at_once: float = 1.0) -> int:
    """Return the iterations of a turn.

    `slowest_s` is the longer time per iteration at full load, and `at_once` how many iterations the
    side that serves more of them serves at once.
    """
    if in_flight == 1:
        return 1
    least = max(in_flight, ceil(TURN_S / slowest_s))
    if at_once < SIDE_BY_SIDE:
        return least
    return max(least, min(LONGER * in_flight, int(LONG_TURN_S / slowest_s)))


def at_once(full: Duet, single: Duet) -> float:
    """Return how many iterations the side that serves more of them serves at once.

    By Little's law, from turns with several in flight and from single requests.
    """
    alone_s = request_s([single])
    if alone_s is None or not full.pairs:
        return 1.0
    rates_rps = rate(*full.turns, full.length, alone_s)
    return max(rate_rps * one_s for rate_rps, one_s in zip(rates_rps, alone_s, strict=True))


def full_rates(duets: Sequence[Duet]) -> Iterator[Pair]:
    """Yield the throughput of both sides in each trial with several in flight.

    Each depends on the single requests of its own round. Those of all rounds are more exact, but
    their error would be common to all pairs, whose scatter would not show it.
    """
    single = [one for one in duets if one.length == 1 and one.pairs]
    several = [one for one in duets if one.length > 1 and one.pairs]
    of_all_s = request_s(single)
    for number, one in enumerate(several):
        of_round_s = request_s(single[number : number + 1])
        yield rate(*one.turns, one.length, of_round_s or of_all_s)


def rate(a: Turns, b: Turns, length: int, alone_s: Pair | None = None) -> Pair:
    """Return the throughput of both sides in the turns that both have had, per second.

    `alone_s` is the time of a request of both sides, one at a time. By Little's law it tells how
    many a full service serves at once. While fewer than that are left, at the end of a turn, the
    rest of its capacity is idle, and that time does not count.
    """
    count = min(len(a), len(b))
    ours, theirs = (
        _rate(side, count, length, None if alone_s is None else alone_s[number])
        for number, side in enumerate((a, b))
    )
    return ours, theirs


def _rate(side: Turns, count: int, length: int, alone_s: float | None) -> float:
    took_s = float(side.took_ns[:count].mean()) / 1e9
    if alone_s is None or not side.left_ns.size:
        return length / took_s
    left_s = side.left_ns[:count].mean(axis=0) / 1e9
    in_flight = np.arange(1, length)
    busy_s = took_s
    for _ in range(ROUNDS):
        at_once = min(max(length / busy_s * alone_s, 1.0), float(length))
        idle_s = float((np.maximum(at_once - in_flight, 0.0) * left_s).sum()) / at_once
        busy_s = took_s - idle_s
    return length / busy_s


def time(a: Turns, b: Turns) -> Pair:
    """Return the typical time of a turn of both sides, in seconds."""
    count = min(len(a), len(b))
    ours, theirs = (np.log(side.took_ns[:count] / 1e9) for side in (a, b))
    typical = exp(float(np.median(ours)))
    return typical, typical * exp(trimmed.mean(theirs - ours))


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
    middle, count = trimmed.mean(joined), len(joined)
    error = trimmed.deviation(joined) / sqrt(count)
    reach = student.quantile(1 - (1 - SURE) / 2, trimmed.degrees(count)) * error
    return OrderEffect(exp(middle) - 1, exp(middle - reach) - 1, exp(middle + reach) - 1)


@dataclass(frozen=True, slots=True)
class NotFull:
    """The sides that served all that was in flight at once, and so may not have been full."""

    sides: tuple[int, ...]  # 0 is A, 1 is B
    in_flight: int

    def sentence(self, names: Sequence[str] = ("A", "B")) -> str:
        """Return what this means for the throughput; `names` are those of the sides."""
        said = self.fact(names)
        more = "with more --concurrency, throughput may be higher"
        return f"{said[:1].upper()}{said[1:]}: {more}."

    def fact(self, names: Sequence[str]) -> str:
        """Return which sides may not have been full, as a part of a sentence."""
        said = " and ".join(names[side] for side in self.sides)
        return f"{said} served all {self.in_flight} in flight at once, and may not have been full"


def not_full(duets: Sequence[Duet]) -> NotFull | None:
    """Return which sides may not have been full; None if there is none."""
    alone_s = request_s(duets)
    several = [one for one in duets if one.length > 1 and one.pairs]
    if alone_s is None or not several:
        return None
    rates = list(full_rates(duets))
    in_flight = [one.in_flight for one in several[-1].turns]
    at_once = [fmean(both[side] for both in rates) * alone_s[side] for side in (0, 1)]
    sides = tuple(side for side in (0, 1) if at_once[side] >= NEARLY_ALL * in_flight[side])
    return NotFull(sides, max(in_flight)) if sides else None


def statements(duets: Sequence[Duet]) -> Iterator[str]:
    """Say how the trials took turns, whether both were full, and whether the order mattered."""
    single = sum(one.pairs for one in duets if one.length == 1)
    if single:
        yield f"{figures.counted(single, 'pair')} of requests, one at a time."
    several = [one for one in duets if one.length > 1]
    if several:
        count = sum(one.pairs for one in several)
        pairs = figures.counted(count, "pair")
        yield f"{pairs} of turns of {several[0].length} iterations with several in flight."
    starts = {one.start for one in duets} - {None}
    if starts:
        often = "once" if len(starts) == 1 else f"{len(starts)} times"
        yield f"Keystone was started anew {often}, on both sides at the same time."
    if idle := not_full(duets):
        yield idle.sentence()
    for kind in (several, [one for one in duets if one.length == 1]):
        effect = order_effect(kind)
        if effect and (effect.low > LEAST_TOLD or effect.high < -LEAST_TOLD):
            longer = "longer" if effect.share > 0 else "shorter"
            yield (
                f"The second of a pair took {100 * abs(effect.share):.1f} % {longer}, whichever "
                "side it was: one leaves something for the other. The random order cancels it."
            )
