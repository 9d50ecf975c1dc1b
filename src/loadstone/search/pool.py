"""Completions while the service was saturated, from which capacity is estimated."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from loadstone.analysis.arrays import Bools
from loadstone.analysis.interval import student_t
from loadstone.analysis.model import TICK_S, Ticks

Counts = NDArray[np.float64]
LEAST_STRETCH_S = 3.0
LEAST_BLOCKS = 4
BLOCK_S = 2.0
LAG_S = 20.0  # noise bursts are correlated over this long
# Negative correlation of blocks is plausible, but few blocks cannot prove it.
LEAST_VARIANCE = 0.6
# Saturated time is cut into about so many pieces to see how much more than counting noise they
# differ by: with fewer, Student's t widens the interval more than shorter pieces do.
PIECES = 6
# A shorter piece differs from the next by counting noise; a longer one hides bursts of 5 to 20 s.
PIECE_S = (3.0, 10.0)
LEAST_PIECES = 4  # t of fewer degrees of freedom makes an interval that says nothing


@dataclass(frozen=True, slots=True)
class ThroughputEstimate:
    """Saturated throughput with the half-width of its 95 % interval."""

    rate_rps: float
    half_width_rps: float
    dispersion: float  # variance over mean of the completions in a long window


@dataclass(frozen=True, slots=True)
class Pool:
    """Completions per tick in periods in which every worker was busy."""

    stretches: tuple[Counts, ...] = ()

    def __add__(self, other: "Pool") -> "Pool":
        return Pool(self.stretches + other.stretches)

    @property
    def seconds(self) -> float:
        """Saturated seconds."""
        return sum(map(len, self.stretches)) * TICK_S

    @property
    def count(self) -> float:
        """Completions in the saturated seconds."""
        return float(sum(stretch.sum() for stretch in self.stretches))

    def after(self, seconds: float) -> "Pool":
        """Return the part after so many saturated seconds."""
        left = round(seconds / TICK_S)
        kept = []
        for stretch in self.stretches:
            if left < len(stretch):
                kept.append(stretch[max(0, left) :])
            left -= len(stretch)
        return Pool(tuple(kept))

    def pieces(self, seconds: float) -> list[Counts]:
        """Return each phase, cut into equal pieces of about so many seconds."""
        return [
            piece
            for stretch in self.stretches
            for piece in np.array_split(stretch, max(1, round(len(stretch) * TICK_S / seconds)))
        ]

    def blocks(self, seconds: float) -> list[Counts]:
        """Return completions per second in whole blocks of each phase."""
        return [found for one in self.stretches if len(found := in_blocks(one, seconds))]


def in_blocks(counts: Counts, seconds: float) -> Counts:
    """Return completions per second in whole blocks of so many seconds."""
    width = round(seconds / TICK_S)
    whole = counts[: len(counts) // width * width]
    return np.asarray(whole.reshape(-1, width).sum(axis=1) / seconds)


def runs(flags: Bools) -> Iterator[tuple[int, int]]:
    """Yield the first and the end index of each run of True."""
    edges = np.flatnonzero(np.diff(flags, prepend=False, append=False)).tolist()
    return zip(edges[::2], edges[1::2], strict=True)


def full_runs(counts: Ticks, least_in_flight: float, skip: int) -> Iterator[tuple[int, int]]:
    """Yield the runs of ticks, after the first, with at least so many in flight at both ends."""
    ends_full = counts.in_flight >= least_in_flight
    is_full = ends_full & np.concatenate([[False], ends_full[:-1]])
    is_full[:skip] = False
    return runs(is_full)


def saturated(
    counts: Ticks, least_in_flight: float, skip_s: float = 1.0, *, only_ok: bool = False
) -> Pool:
    """Return the completions in ticks with at least `least_in_flight` in flight."""
    ended = (counts.ok if only_ok else counts.ok + counts.failed).astype(np.float64)
    least = round(LEAST_STRETCH_S / TICK_S)
    found = full_runs(counts, least_in_flight, round(skip_s / TICK_S))
    return Pool(tuple(ended[begin:end] for begin, end in found if end - begin >= least))


def overloaded(counts: Ticks, knee: int, settle_s: float) -> Pool:
    """Return the completions of a constant-rate trial once it has twice the knee in flight."""
    return saturated(counts, max(4, 2 * knee), skip_s=1.0 + settle_s)


def estimate(pool: Pool) -> ThroughputEstimate | None:
    """Return the rate with its interval; None with too few blocks.

    The wider one of two intervals. Within trials: Newey-West variance of 2-s blocks with lags to
    20 s, t with as many degrees of freedom as there are independent blocks. Between trials: what
    pieces of the saturated time differ by, counting noise or not, which is the interval of a
    random-effects model (Hartung & Knapp, "A refined method for the meta-analysis of controlled
    clinical trials", Statistics in Medicine 20, 2001).
    """
    blocks = pool.blocks(BLOCK_S)
    count = sum(map(len, blocks))
    if count < LEAST_BLOCKS:
        return None
    rate = pool.count / pool.seconds
    variance, lags = long_run_variance([block - rate for block in blocks], count)
    freedom = max(2.0, count / (1 + 2 * lags / 3))
    half_width = student_t(freedom) * math.sqrt(variance / max(1.0, count - 1 - 0.66 * lags))
    half_width = max(
        half_width,
        _between(pool, rate),
        # A period begins and ends somewhere between two completions.
        math.sqrt(len(pool.stretches)) / pool.seconds,
    )
    return ThroughputEstimate(rate, half_width, variance * BLOCK_S / rate if rate else 0.0)


def _between(pool: Pool, rate_rps: float) -> float:
    """Return the half-width by the differences between pieces, weighted by their length."""
    pieces = pool.pieces(min(max(pool.seconds / PIECES, PIECE_S[0]), PIECE_S[1]))
    if len(pieces) < LEAST_PIECES:
        return 0.0
    rates = np.array([piece.mean() / TICK_S for piece in pieces])
    weights = np.array([len(piece) for piece in pieces]) * TICK_S / pool.seconds
    freedom = len(pieces) - 1
    variance = float(weights @ (rates - rate_rps) ** 2) / freedom
    return student_t(freedom) * math.sqrt(variance)


def long_run_variance(
    blocks: Sequence[Counts], count: int, least: float = LEAST_VARIANCE
) -> tuple[float, int]:
    """Return the Newey-West variance, at least a share of the blocks' own, and the lags."""
    own = sum(float(block @ block) for block in blocks) / count
    lags = int(min(LAG_S / BLOCK_S, count / 4))
    total = own
    for lag in range(1, lags + 1):
        product = sum(float(b[lag:] @ b[:-lag]) for b in blocks if len(b) > lag) / count
        total += 2 * (1 - lag / (lags + 1)) * product
    return max(total, least * own), lags
