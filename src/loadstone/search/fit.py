"""Checks whether the trials of a search fit one capacity.

While a service is full, its completions are a constant plus noise, whatever the time and whatever
the number in flight. The check takes all seconds in which it was full, regresses their completions
on the time and on the logarithm of the number in flight, and compares what is left between trials.
Its false-alarm rate is measured by simulation (docs/methodology.md, "Do the trials fit one
capacity?").
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from statistics import NormalDist

import numpy as np

from loadstone.analysis import student
from loadstone.analysis.arrays import Floats
from loadstone.analysis.interval import CONFIDENCE, student_t
from loadstone.analysis.model import Cause, Trial
from loadstone.search.blocks import (
    BLOCK_S,
    DISPERSION,
    Block,
    are_late,
    blocks,
    dispersion,
    drains,
)
from loadstone.search.model import Capacity, CapacityKind
from loadstone.search.pool import LAG_S

MISFIT = "these trials do not fit one capacity"
LEAST_BLOCKS = 12  # three coefficients, and enough residuals to estimate their noise
LEAST_OF_STEP = 4  # blocks on either side
LEAST_SPAN_S = 10.0  # of load, to see a trend in it
HALVED = 4  # blocks of a trial whose halves are compared
LEAST_INTO_S = 4.0  # into the longest trial, to see whether trials begin slower than they end
LEAST_RANGE = math.log(1.6)  # of the number in flight, to see whether it matters
LINE = 1.05  # of the best step's squares; the step is the best of many instants
GRADUAL = 1.25  # the same of the number in flight: a collapse is a clear step
EXPLAINED = 0.5  # of the squares: a step that leaves more is not the whole story
CLEARER = 0.7  # of the squares that any other single cause leaves
LEVEL = 1e-4  # of each of the two tests, one-sided; the total is measured by simulation
WARM = 0.001  # the same of trials that begin slower than they end, so that there is no N
# Smaller effects are within the interval of N: noise that is slower than a search (bursts take a
# tenth of the rate), and a capacity that depends a little on the backlog.
LEAST_TREND = 0.08
LEAST_DEPTH = 0.15
PLAIN = 0.4  # of an effect over the whole range; thirds at its ends differ by two thirds of a line
STRETCH = 5  # blocks, about: shorter than slow noise, and enough to average over short pauses
LEAST_STRETCH = 3  # blocks: a single pause is a large part of fewer
LEAST_STRETCHES = 4
ORDINARY = 0.05  # standard deviation by slow noise: a neighbour that takes a tenth half the time
DOUBTFUL = 0.2  # level at which stretches of such a wide interval must differ, too
# Of either bound from N, over N: with more, the result is a range. An operator who plans with a
# tenth in reserve is right even at the end of the interval. With a long budget, the services that
# the search knows have narrower intervals, and most wrong numbers of others have wider ones.
WIDEST_IN_A_MINUTE = 0.08
WIDEST = 0.06
LONG_BUDGET_S = 120.0
# The same for rates that were tried around N. A limiter's rate is known better than by these, so
# only a bracket that says next to nothing is no number.
WIDEST_REFUSED = 0.5
LEAST_HALF_WIDTH = 0.01  # over N after a collapse, which depends on how deep the queue is


@dataclass(frozen=True, slots=True)
class Effect:
    """By how much the rate changes over the range of a variable, as a share of the mean."""

    share: float
    error: float  # standard error of the share
    freedom: float

    @property
    def is_clear(self) -> bool:
        """Whether noise does not explain it."""
        return bool(self.error) and self.is_beyond(LEVEL)

    def is_beyond(self, level: float) -> bool:
        """Whether noise shows so much, in this direction, with at most this probability."""
        return abs(self.share) > student.quantile(1 - level, self.freedom) * self.error


@dataclass(frozen=True, slots=True)
class Stretch:
    """Some seconds in a row in which the service was full."""

    at_s: float  # of the search's load
    rate_rps: float
    blocks: int


@dataclass(frozen=True, slots=True)
class Fit:
    """A regression of a full service's throughput on time and on the number in flight."""

    blocks: tuple[Block, ...]
    mean_rps: float
    trend: Effect | None  # from the first block to the last; None: they are too near
    depth: Effect | None  # from the fewest in flight to the most
    into: Effect | None  # from the beginning of a trial to the end of the longest one
    is_steady: bool  # a straight line explains the trend as well as any single step

    @property
    def drifts(self) -> bool:
        """Whether the service becomes steadily slower or faster."""
        trend = self.trend
        if trend is None or abs(trend.share) < LEAST_TREND:
            return False
        is_plain = _is_plain(trend, self.blocks, lambda one: one.at_s)
        return trend.is_clear and self.is_steady and is_plain

    @property
    def warms_up(self) -> bool:
        """Whether each trial ends faster than it begins, by more than an interval holds."""
        into = self.into
        if into is None or into.share < LEAST_TREND or not into.is_beyond(WARM):
            return False
        trials = [_rates(found) for found in self._by_trial() if len(found) >= HALVED]
        halves = [np.array_split(rates, 2) for rates in trials]
        return len(halves) > 1 and all(late.mean() > early.mean() for early, late in halves)

    @property
    def falls_with_depth(self) -> bool:
        """Whether throughput falls with the number in flight by more than an interval holds."""
        depth = self.depth
        if depth is None or depth.share > -LEAST_DEPTH or not depth.is_clear:
            return False
        return _is_plain(depth, self.blocks, lambda one: one.in_flight)

    @property
    def spread(self) -> tuple[Stretch, Stretch] | None:
        """The slowest and the fastest stretch, if noise does not explain what they differ by.

        Cochran's Q of a random-effects model, in which stretches differ by counting noise and by
        the slow noise that an ordinary machine has.
        """
        return self.extremes if self.differs(LEVEL) else None

    def differs(self, level: float) -> bool:
        """Whether stretches differ by so much with at most this probability, by noise."""
        stretches = self._stretches()
        if len(stretches) < LEAST_STRETCHES:
            return False
        means = np.array([one.rate_rps for one in stretches]) / self.mean_rps
        counting = dispersion(self.blocks) / (self.mean_rps * BLOCK_S)
        weights = 1 / (counting / np.array([one.blocks for one in stretches]) + ORDINARY**2)
        q = float(weights @ (means - np.average(means, weights=weights)) ** 2)
        return q > chi_square(len(stretches) - 1, level)

    @property
    def extremes(self) -> tuple[Stretch, Stretch]:
        """The slowest and the fastest stretch."""
        found = self._stretches()
        return min(found, key=lambda one: one.rate_rps), max(found, key=lambda one: one.rate_rps)

    def collapses(self, *, is_by_queue: bool) -> bool:
        """Whether a step in the number inside explains its rates: neither time nor warming does.

        `is_by_queue`: a trial has shown that time does not.
        """
        rates, depths = _rates(self.blocks), _depths(self.blocks)
        at_s = np.array([block.at_s for block in self.blocks])
        into_s = np.array([block.into_s for block in self.blocks])
        if np.ptp(depths) <= LEAST_RANGE or np.ptp(at_s) <= LEAST_SPAN_S:
            return False
        alone = np.ones((len(rates), 1))
        step = _best_step(alone, rates, depths)
        columns = (_best_step(alone, rates, at_s), at_s, _best_step(alone, rates, into_s))
        others = min(_squares(alone, rates, one) for one in columns)
        line, left = _squares(alone, rates, depths), _squares(alone, rates, step)
        few, many = float(rates[step == 0].mean()), float(rates[step == 1].mean())
        is_clear = left < EXPLAINED * float(((rates - rates.mean()) ** 2).sum())
        is_single = (is_by_queue or left < CLEARER * others) and GRADUAL * left < line
        # A pause also makes a queue, but nothing completes in it.
        is_pause = not np.median(rates[step == 1])
        return is_clear and is_single and not is_pause and many <= (1 - LEAST_DEPTH) * few

    def _by_trial(self) -> list[list[Block]]:
        return [list(found) for _, found in groupby(self.blocks, key=lambda one: one.trial)]

    def _stretches(self) -> list[Stretch]:
        """Return stretches of about as many seconds within trials."""
        return [
            Stretch(found[part[0]].at_s, float(_rates(found)[part].mean()), len(part))
            for found in self._by_trial()
            for part in np.array_split(np.arange(len(found)), max(1, round(len(found) / STRETCH)))
            if len(part) >= LEAST_STRETCH
        ]


def fit(found: Sequence[Block]) -> Fit | None:
    """Fit one capacity to blocks, with a trend and an effect of depth; None: there are too few."""
    if len(found) < LEAST_BLOCKS:
        return None
    rates = _rates(found)
    mean = float(rates.mean())
    if mean <= 0:
        return None
    columns = {"mean": np.ones(len(rates))}
    at_s = np.array([block.at_s for block in found])
    if np.ptp(at_s) > LEAST_SPAN_S:
        columns["trend"] = _line(at_s)
    into_s = np.array([block.into_s for block in found])
    if np.ptp(into_s) > LEAST_INTO_S:
        columns["into"] = _line(into_s)
    depths = _depths(found)
    if np.ptp(depths) > LEAST_RANGE:
        design = np.column_stack([*columns.values()])
        line, step = _line(depths), _best_step(design, rates, depths)
        is_gradual = _squares(design, rates, line) <= GRADUAL * _squares(design, rates, step)
        columns["depth"] = line if is_gradual else step
    steady = False
    if "trend" in columns:
        # Without the time into the trial: steps together with it look like a steady trend.
        others = [one for name, one in columns.items() if name not in ("trend", "into")]
        design = np.column_stack(others)
        line, step = columns["trend"], _best_step(design, rates, at_s)
        steady = _squares(design, rates, line) <= LINE * _squares(design, rates, step)
    design = np.column_stack([*columns.values()])
    factors, rests = _least_squares(design, rates)
    errors = _standard_errors(design, rests, mean)
    freedom = len(rates) - len(columns)
    effects = {
        name: Effect(float(factor) / mean, float(error) / mean, freedom)
        for name, factor, error in zip(columns, factors, errors, strict=True)
    }
    return Fit(
        tuple(found),
        mean,
        effects.get("trend"),
        effects.get("depth"),
        effects.get("into"),
        is_steady=steady,
    )


def checked(
    trials: Sequence[Trial], found: Capacity, since_s: float, *, is_by_queue: bool = False
) -> Capacity:
    """Return the capacity; without N, and with the facts, if the trials do not fit one.

    `is_by_queue`: a trial with few requests inside was as fast as before, at once.
    """
    if found.causes == (Cause.DRIFT,):  # several changes, which may be one steady decline
        whole = fit(blocks(trials))
        return _misfit((_drift(whole),), found) if whole is not None and whole.drifts else found
    if found.causes or found.kind in (CapacityKind.REFUSAL, CapacityKind.CEILING):
        return found
    whole, one = fit(blocks(trials)), fit(blocks(trials, since_s))
    # Where the capacity has changed with time, few seconds are left to tell that from a collapse.
    may_collapse = is_by_queue or since_s == 0
    if one is not None and may_collapse and one.collapses(is_by_queue=is_by_queue):
        return _collapse(one)
    if found.rate_rps is None:
        return found
    # A steady drift also looks like one change after the other.
    facts = contradictions(whole, has_changed=since_s > 0) or contradictions(one)
    if not facts and found.kind is CapacityKind.SATURATION:
        facts = _uneven(trials, found.rate_rps)
    return _misfit(facts, found) if facts else found


def _misfit(facts: Sequence[str], found: Capacity) -> Capacity:
    notes = (f"{MISFIT}: {'; '.join(facts)}", *found.words)
    return Capacity(None, None, None, 0.0, notes, causes=(Cause.INCONSISTENT,))


def _uneven(trials: Sequence[Trial], rate_rps: float) -> tuple[str, ...]:
    """Say that some requests waited for a slower part of the service while others had no queue."""
    drained = drains(trials, rate_rps)
    if not are_late(drained):
        return ()
    latest = max(drained, key=lambda one: one.seconds / one.due_s)
    return (
        f"{latest.in_flight} requests were in flight when a load ended, {latest.due_s:.2g} s of "
        f"work at {rate_rps:.4g}/s, and it took {latest.seconds:.2g} s to answer them: some waited "
        f"for a slower part of the service",
    )


def widest(budget_s: float) -> float:
    """Return how far a bound may be from N, over N, so that N is stated as a number."""
    return WIDEST if budget_s >= LONG_BUDGET_S else WIDEST_IN_A_MINUTE


def number(trials: Sequence[Trial], found: Capacity, since_s: float, most: float) -> Capacity:
    """Return a capacity whose interval is too wide for a number as a range, and say why it is."""
    rate_rps, reach_rps = found.rate_rps, found.reach_rps
    if rate_rps is None or reach_rps is None or reach_rps <= most * rate_rps:
        return found
    why = "four times the load time would halve that"
    one = fit(blocks(trials, since_s))
    if one is not None and one.differs(DOUBTFUL):
        slower, faster = one.extremes
        why = (
            f"{slower.rate_rps:.4g}/s completed after {slower.at_s:.0f} s of load and "
            f"{faster.rate_rps:.4g}/s after {faster.at_s:.0f} s"
        )
    half = f"{100 * reach_rps / rate_rps:.0f} %" if rate_rps else f"{reach_rps:.3g}/s"
    note = f"known to within {half} only, which is too wide for a number: {why}"
    words = (note, *(word for word in found.words if not word.startswith("known to within")))
    return replace(found, rate_rps=None, words=words, kind=None)


def contradictions(one: Fit | None, *, has_changed: bool = False) -> tuple[str, ...]:
    """Return what contradicts one capacity, as text; empty: nothing does.

    After a change of the service, only a drift contradicts what was seen before and after it.
    """
    if one is None:
        return ()
    facts = [_drift(one)] if one.drifts else []
    if one.warms_up:
        (begin_s, slow), (end_s, fast) = _ends(one.blocks, lambda one: one.into_s)
        facts.append(
            f"each trial begins slower than it ends: {slow:.4g}/s complete about {begin_s:.0f} s "
            f"after its beginning and {fast:.4g}/s about {end_s:.0f} s after it"
        )
    if has_changed:
        return tuple(facts)
    if one.falls_with_depth:
        (few, fast), (many, slow) = _ends(one.blocks, lambda one: one.in_flight)
        facts.append(
            f"{fast:.4g}/s completed with {few:.0f} in flight and {slow:.4g}/s with {many:.0f}: "
            f"the more requests are inside, the slower it is"
        )
    if one.spread is not None:
        slower, faster = one.spread
        facts.append(
            f"{slower.rate_rps:.4g}/s completed after {slower.at_s:.0f} s of load and "
            f"{faster.rate_rps:.4g}/s after {faster.at_s:.0f} s, although the service was full in "
            f"both"
        )
    return tuple(facts)


def _drift(one: Fit) -> str:
    (begin_s, first), (end_s, last) = _ends(one.blocks, lambda one: one.at_s)
    how = "declines" if last < first else "rises"
    requests = one.blocks[-1].requests - one.blocks[0].requests
    trend = one.trend
    if trend is None or not requests:
        return f"the capacity {how}"
    change, error = 1000 / requests * trend.share, 1000 / requests * trend.error
    minutes = (one.blocks[-1].at_s - one.blocks[0].at_s) / 60
    return (
        f"the capacity {how} all the time: {first:.4g}/s about {begin_s:.0f} s after the start, "
        f"{last:.4g}/s about {end_s:.0f} s after it, {100 * abs(change):.2f} % "
        f"(± {200 * error:.2f} %) for each 1,000 requests or "
        f"{100 * abs(trend.share) / minutes:.1f} % for each minute of load"
    )


def _collapse(one: Fit) -> Capacity:
    """Return the rate that a service also sustains once it has a queue, and what it does before."""
    rates, depths = _rates(one.blocks), _depths(one.blocks)
    cut = _best_cut(np.ones((len(rates), 1)), rates, depths)
    order = np.argsort(depths, kind="stable")
    few, many = order[:cut], order[cut:]
    slow, fast = float(rates[many].mean()), float(rates[few].mean())
    half = student_t(len(many) - 1) * float(rates[many].std(ddof=1)) / math.sqrt(len(many))
    half = math.hypot(half, LEAST_HALF_WIDTH * slow)
    inside = math.exp(depths[order[cut - 1]]), math.exp(depths[order[cut]])
    notes = (
        f"throughput collapses when a queue forms: {fast:.4g}/s complete with up to "
        f"{inside[0]:.0f} requests inside, {slow:.4g}/s with {inside[1]:.0f} and more",
        f"N is what it bears in either state: up to {fast:.4g}/s it keeps up until something makes "
        f"a queue, and then it recovers only below N; a limit of {inside[0]:.0f} requests in "
        f"progress before it would prevent that",
    )
    return Capacity(slow, slow - half, slow + half, CONFIDENCE, notes, CapacityKind.COLLAPSE)


def _ends(
    found: Sequence[Block], key: Callable[[Block], float]
) -> tuple[tuple[float, float], tuple[float, float]]:
    """Return the mean of a variable and of the rate in its lowest and in its highest third."""
    order = sorted(found, key=key)
    third = max(1, len(order) // 3)
    first, last = (
        (
            float(np.mean([key(block) for block in part])),
            float(np.mean([block.rate_rps for block in part])),
        )
        for part in (order[:third], order[-third:])
    )
    return first, last


def _least_squares(design: Floats, rates: Floats) -> tuple[Floats, Floats]:
    factors: Floats = np.linalg.lstsq(design, rates, rcond=None)[0].astype(np.float64)
    return factors, rates - design @ factors


def _standard_errors(design: Floats, rests: Floats, mean_rps: float) -> Floats:
    """Return Newey-West standard errors, never below those of independent residuals."""
    count, factors = design.shape
    scores = design * rests[:, None]
    total = scores.T @ scores
    lags = int(min(LAG_S / BLOCK_S, count / 4))
    for lag in range(1, lags + 1):
        product = scores[lag:].T @ scores[:-lag]
        total += (1 - lag / (lags + 1)) * (product + product.T)
    inverse = np.linalg.pinv(design.T @ design)
    robust = inverse @ total @ inverse * count / (count - factors)
    own = max(float(rests @ rests) / (count - factors), DISPERSION * mean_rps / BLOCK_S)
    errors: Floats = np.sqrt(np.maximum(np.diag(robust), own * np.diag(inverse)))
    return errors


def _squares(design: Floats, rates: Floats, more: Floats) -> float:
    """Return the squares that are left with one more column."""
    _, rests = _least_squares(np.column_stack([design, more]), rates)
    return float(rests @ rests)


def _line(variable: Floats) -> Floats:
    """Return a column whose factor is the change of the rate over the variable's range."""
    column: Floats = (variable - variable.mean()) / np.ptp(variable)
    return column


def _is_plain(effect: Effect, found: Sequence[Block], key: Callable[[Block], float]) -> bool:
    """Whether an effect also shows without the others, to a good part.

    Else it is that of one slow minute, during which another variable had an unusual value.
    """
    (_, first), (_, last) = _ends(found, key)
    seen = math.copysign(1.0, effect.share) * (last - first)
    return seen >= abs(effect.share) * PLAIN * (first + last) / 2


def _rates(found: Sequence[Block]) -> Floats:
    return np.array([block.rate_rps for block in found])


def _depths(found: Sequence[Block]) -> Floats:
    """Return the logarithms of the numbers in flight."""
    return np.log([max(1.0, block.in_flight) for block in found])


def chi_square(freedom: int, level: float) -> float:
    """Return the quantile of a level from above (Wilson & Hilferty 1931)."""
    share = 2 / (9 * freedom)
    return freedom * (1 - share + NormalDist().inv_cdf(1 - level) * math.sqrt(share)) ** 3


def _best_step(design: Floats, rates: Floats, variable: Floats) -> Floats:
    """Return the column of the step of a variable that explains most."""
    return _step(variable, _best_cut(design, rates, variable))


def _best_cut(design: Floats, rates: Floats, variable: Floats) -> int:
    """Return how many of the blocks, ordered by a variable, lie before its best step."""
    cuts = range(LEAST_OF_STEP, len(rates) - LEAST_OF_STEP + 1)
    return min(cuts, key=lambda cut: _squares(design, rates, _step(variable, cut)))


def _step(variable: Floats, cut: int) -> Floats:
    column = np.zeros(len(variable))
    column[np.argsort(variable, kind="stable")[cut:]] = 1.0
    return column
