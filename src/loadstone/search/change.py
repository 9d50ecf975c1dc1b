"""Detects changes of the service itself during a search.

A test for one change of the mean at an unknown instant: the cut with the least squares, and Wald's
statistic there with a long-run variance (Andrews, "Tests for parameter instability and structural
change with unknown change point", Econometrica 61, 1993). Its thresholds are set by simulation, so
that bursts, stops and leaks do not count as a change (docs/methodology.md).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from loadstone.analysis.model import TICK_S
from loadstone.search.pool import BLOCK_S, Counts, Pool, in_blocks, long_run_variance

WALD = 30.0  # 5.5 standard errors: the cut is the best of many, and blocks are correlated
LEAST_STEP = 0.03  # of the level; the effect of a leak or a cold start in one search is smaller
LEAST_S = 6.0  # on either side
LEAST_LAST_S = 4.0  # after the cut, if it may be a burst
# A burst lasts up to 20 s and takes a tenth of the rate, and a few may follow each other. So the
# smaller a step, the longer the lower level must last to count. The higher level need not, because
# noise only slows.
LASTING_S = ((0.3, LEAST_S), (0.15, 26.0), (LEAST_STEP, 60.0))
# If the service had this level before, noise is no explanation.
RETURN = 0.15  # of the step: largest difference between the two levels
FRESH_S = 15.0  # of load
RECENT_S = 60.0  # the last saturated seconds
# Quiet seconds return between bursts, but not after a change.
QUIET_BLOCK = 3  # blocks
QUIET_SHARE = 0.8
QUIET_STEP = 0.4  # of the step: its minimum between quiet seconds
# Between the ramp, which is short and a different kind of load, and the meter.
LEAST_FALL = 0.3
SIGMAS = 3.0
SURE_SIGMAS = 2.0
NEAR_S = 5.0  # two instants within this time are reported as one
DISPERSION = 0.5  # of completions, conservative for a service with few requests


@dataclass(frozen=True, slots=True)
class LevelChange:
    """A change of the service's rate between two instants of the search's load."""

    before_rps: float
    after_rps: float
    last_s: float  # last time at the level before
    first_s: float  # first time at the level after

    @property
    def is_at_first(self) -> bool:
        """Whether the service was faster only for the first few seconds."""
        return self.after_rps < self.before_rps and self.last_s <= FRESH_S

    @property
    def instant(self) -> str:
        """The seconds of load after which it came, as text."""
        if self.first_s - self.last_s < NEAR_S:
            return f"{self.last_s:.0f} s"
        return f"{self.last_s:.0f} to {self.first_s:.0f} s"


@dataclass(frozen=True, slots=True)
class Cut:
    """A change in saturated seconds: the end of the level before, the start of the level after."""

    before_rps: float
    after_rps: float
    last_s: float
    first_s: float
    after_s: float  # seconds at the level after
    lasts: bool  # the lower level lasts longer than a burst

    @property
    def half_width_rps(self) -> float:
        """Half-width of the level after, from the number of its requests."""
        return SURE_SIGMAS * math.sqrt(DISPERSION * self.after_rps / self.after_s)

    def returns(self, earlier_rps: Sequence[float]) -> bool:
        """Return whether the service had the level after before."""
        reach = RETURN * abs(self.after_rps - self.before_rps)
        return any(abs(self.after_rps - level) <= reach for level in earlier_rps)


def change(
    chunks: Sequence[tuple[int, Pool]],
    earlier_rps: Sequence[float] = (),
    *,
    must_last: bool = True,
) -> Cut | None:
    """Return the change of level in chunks ordered by time; None: there is none.

    Each chunk has the depth of its band: a difference between depths is no change. With `must_last`
    only changes count that last longer than bursts, or return to a level in `earlier_rps`.
    """
    seen, rates, ends_s = _blocks(chunks)
    # Two changes can mask each other, so the last seconds are also searched alone.
    for begin in dict.fromkeys((0, max(0, len(rates) - round(RECENT_S / BLOCK_S)))):
        least_s = LEAST_S if must_last else LEAST_LAST_S
        found = _change(seen[begin:], rates[begin:], ends_s[begin:], least_s)
        if found is not None and (not must_last or found.lasts or found.returns(earlier_rps)):
            return found
    return None


def _change(seen: Counts, rates: Counts, ends_s: Counts, least_s: float) -> Cut | None:
    n = len(rates)
    least = round(least_s / BLOCK_S)
    if n < 2 * least:
        return None
    cuts = np.arange(least, n - least + 1)
    sums = np.concatenate([[0.0], np.cumsum(rates)])
    steps = (sums[n] - sums[cuts]) / (n - cuts) - sums[cuts] / cuts
    # The least squares: the between-groups sum of squares is largest.
    cut = int(cuts[np.argmax(cuts * (n - cuts) / n * steps**2)])
    before, after = rates[:cut], rates[cut:]
    level, later = float(before.mean()), float(after.mean())
    step = abs(later - level) / level if level > 0 else 0.0
    # A service that completes nothing has stopped: that is no level.
    if not seen[cut:].any() or step < LEAST_STEP:
        return None
    if not (_is_clear(before, after) and _stays(before, after)):
        return None
    lasting_s = len(after if later < level else before) * BLOCK_S
    return Cut(
        before_rps=float(seen[:cut].mean()),
        after_rps=float(seen[cut:].mean()),
        last_s=float(ends_s[cut - 1]),
        first_s=float(ends_s[cut]) - BLOCK_S,
        after_s=(n - cut) * BLOCK_S,
        lasts=any(step >= size and lasting_s >= least for size, least in LASTING_S),
    )


def fall(ramp_rps: float, completed: float, metered: Pool) -> bool:
    """Return whether the ramp reached far more than was metered afterwards."""
    if not completed or not metered.count:
        return False
    noise = math.sqrt(DISPERSION * (1 / completed + 1 / metered.count))
    rate_rps = metered.count / metered.seconds
    return rate_rps < (1 - max(LEAST_FALL, SIGMAS * noise)) * ramp_rps


def _blocks(chunks: Sequence[tuple[int, Pool]]) -> tuple[Counts, Counts, Counts]:
    """Return completions per second in blocks, the same corrected for depth, and the blocks' ends.

    Ends are saturated seconds since the beginning, including remainders of periods.
    """
    found: list[tuple[Counts, Counts, Counts]] = []
    begin = 0
    for level, pool in chunks:
        for stretch in pool.stretches:
            rates = in_blocks(stretch, BLOCK_S)
            ends_s = begin * TICK_S + BLOCK_S * np.arange(1.0, len(rates) + 1)
            found.append((rates, np.full(len(rates), float(level)), ends_s))
            begin += len(stretch)
    if not found:
        return np.zeros(0), np.zeros(0), np.zeros(0)
    rate, at, ends = (np.concatenate(columns) for columns in zip(*found, strict=True))
    shallow = np.where(at > at.min(), rate - _by_depth(chunks), rate) if len(at) else rate
    return rate, shallow, ends


def _by_depth(chunks: Sequence[tuple[int, Pool]]) -> float:
    """Return how much more completes per second in the deeper band, by neighbouring chunks.

    It is the (lower) median of the differences between neighbours, because most neighbours are on
    the same side of a change.
    """
    used = [(level, pool.count / pool.seconds) for level, pool in chunks if pool.seconds]
    gaps = [
        (right - left) * (1 if deeper > level else -1)
        for (level, left), (deeper, right) in pairwise(used)
        if level != deeper
    ]
    return sorted(gaps, key=abs)[(len(gaps) - 1) // 2] if gaps else 0.0


def _is_clear(before: Counts, after: Counts) -> bool:
    """Return whether noise does not explain the difference of two levels."""
    rests = np.concatenate([before - before.mean(), after - after.mean()])
    noise, _ = long_run_variance([rests], len(rests), least=1.0)
    variance = noise * (1 / len(before) + 1 / len(after))
    # A difference of one request per block is no evidence.
    grain = (1 / BLOCK_S) ** 2 / min(len(before), len(after))
    return float(after.mean() - before.mean()) ** 2 >= WALD * max(variance, grain)


def _stays(before: Counts, after: Counts) -> bool:
    """Return whether the quiet seconds of the lower level are also well below the higher one."""
    step = float(after.mean()) - float(before.mean())
    first, second = _smooth(before), _smooth(after)
    lower, higher = (first, second) if step > 0 else (second, first)
    quiet = float(np.quantile(lower, QUIET_SHARE))
    return float(np.median(higher)) - quiet > QUIET_STEP * abs(step)


def _smooth(rates: Counts) -> Counts:
    width = min(QUIET_BLOCK, len(rates))
    count = len(rates) // width
    blocks: Counts = rates[: count * width].reshape(-1, width).mean(axis=1)
    return blocks
