"""The capacity that explains the saturated seconds of a search, with a 95 % credible interval.

Completions per second of a full service are a constant plus noise. Counting noise is as large as
neighbouring seconds differ. On top of it there may be slow noise (an Ornstein-Uhlenbeck process of
unknown size and memory), a trend, or trials that begin slower than they end. Each combination is a
Gaussian process, whose marginal likelihood says how well it explains what was seen (Rasmussen and
Williams, "Gaussian Processes for Machine Learning", 2006, sections 2.7 and 5.4). The result is the
average over all combinations, weighted by that, so what the trials cannot tell apart widens it.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import NormalDist

import numpy as np

from loadstone.analysis import student
from loadstone.analysis.arrays import Floats
from loadstone.analysis.interval import CONFIDENCE
from loadstone.search.blocks import BLOCK_S, Block, dispersion

MOST_POINTS = 64  # neighbouring seconds are averaged: the time to compute grows with the cube
LEAST_POINTS = 8
# Slow noise: nothing is known of it beforehand, except that four of five services have none that
# matters. From half the width that one search resolves to a neighbour that takes a sixth.
QUIET = 0.8
SPREADS = (0.01, 0.02, 0.04, 0.08, 0.16)  # standard deviation over N
MEMORIES_S = (2.0, 6.0, 18.0, 54.0)  # from a pause to as long as a minute's search can see
# What may change steadily in a search, with the standard deviation of the change over N.
TRENDING, TREND = 0.25, 0.1
WARMING, WARMTH = 0.15, 0.2
WARMING_S = (1.5, 5.0)  # time constant of a trial's beginning
LEAST_VARIANCE = 0.3  # of the counting noise: few points may agree by chance
NEGLIGIBLE = 1e-6  # weight of a combination


@dataclass(frozen=True, slots=True)
class Posterior:
    """N at the end of a search, as probable as the saturated seconds make it."""

    rate_rps: float
    low_rps: float
    high_rps: float


@dataclass(frozen=True, slots=True)
class Shape:
    """A way in which N may depend on time: its column, and its value at the end of the search."""

    prior: float
    column: Floats
    end: float = 0.0


@dataclass(frozen=True, slots=True)
class AveragedBlocks:
    """Neighbouring blocks of one trial, averaged."""

    at_s: Floats
    into_s: Floats
    rate_rps: Floats
    blocks: Floats  # in each

    @staticmethod
    def of(blocks: Sequence[Block]) -> "AveragedBlocks":
        """Average so many neighbours that at most `MOST_POINTS` are left, or a few more."""
        width = math.ceil(len(blocks) / MOST_POINTS)
        groups = list(_groups(blocks, width))
        return AveragedBlocks(
            np.array([np.mean([one.at_s for one in group]) for group in groups]),
            np.array([np.mean([one.into_s for one in group]) for group in groups]),
            np.array([np.mean([one.rate_rps for one in group]) for group in groups]),
            np.array([len(group) for group in groups], dtype=np.float64),
        )


def _groups(blocks: Sequence[Block], width: int) -> Iterator[Sequence[Block]]:
    edges = [
        number
        for number, (left, right) in enumerate(pairwise(blocks), 1)
        if right.trial != left.trial or right.at_s - left.at_s > 1.5 * BLOCK_S
    ]
    for begin, end in pairwise([0, *edges, len(blocks)]):
        for first in range(begin, end, width):
            yield blocks[first : min(first + width, end)]


def posterior(blocks: Sequence[Block]) -> Posterior | None:
    """Return N with its interval; None: too few seconds were saturated."""
    if len(blocks) < LEAST_POINTS:
        return None
    points = AveragedBlocks.of(blocks)
    mean_rps = float(np.average(points.rate_rps, weights=points.blocks))
    if len(points.rate_rps) < LEAST_POINTS or mean_rps <= 0:
        return None
    counting = dispersion(blocks) * mean_rps / BLOCK_S  # variance of a block
    scale = mean_rps / math.sqrt(counting)
    slows = [(prior, scale**2 * slow) for prior, slow in _slow_noise(points)]
    shapes = [Shape(one.prior, scale * one.column, scale * one.end) for one in _shapes(points)]
    found = [
        (math.log(prior * shape.prior), slow + np.outer(shape.column, shape.column), shape)
        for prior, slow in slows
        for shape in shapes
    ]
    covariances = np.stack([covariance for _, covariance, _ in found]) + np.diag(1 / points.blocks)
    ends = np.stack([shape.column * shape.end for _, _, shape in found])
    variances = np.array([shape.end**2 for _, _, shape in found])
    logs, means, deviations = _regressed(covariances, points.rate_rps, ends, variances, counting)
    logs += np.array([prior for prior, _, _ in found])
    weights = np.exp(logs - logs.max())
    # Student's t, as the size of the counting noise is estimated, too.
    freedom = len(points.rate_rps) - 1
    beyond = (1 + CONFIDENCE) / 2
    deviations *= student.quantile(beyond, freedom) / NormalDist().inv_cdf(beyond)
    weights /= weights.sum()
    used = weights > NEGLIGIBLE
    columns = (column[used].tolist() for column in (weights, means, deviations))
    parts = [(weight, NormalDist(*rest)) for weight, *rest in zip(*columns, strict=True)]
    middle, low, high = (_quantile(parts, p) for p in (0.5, 1 - beyond, beyond))
    return Posterior(middle, max(0.0, low), high)


def _slow_noise(points: AveragedBlocks) -> Iterator[tuple[float, Floats]]:
    apart_s = np.abs(points.at_s[:, None] - points.at_s)
    yield QUIET, np.zeros_like(apart_s)
    each = (1 - QUIET) / len(SPREADS) / len(MEMORIES_S)
    for spread in SPREADS:
        for memory_s in MEMORIES_S:
            yield each, spread**2 * np.exp(-apart_s / memory_s)


def _shapes(points: AveragedBlocks) -> Iterator[Shape]:
    at_s = points.at_s
    yield Shape(1 - TRENDING - WARMING, np.zeros_like(at_s))
    line = (at_s - at_s.mean()) / max(float(np.ptp(at_s)), BLOCK_S)
    yield Shape(TRENDING, TREND * line, TREND * float(line.max()))
    for memory_s in WARMING_S:
        yield Shape(WARMING / len(WARMING_S), -WARMTH * np.exp(-points.into_s / memory_s))


def _regressed(
    covariances: Floats, rates: Floats, ends: Floats, variances: Floats, counting: float
) -> tuple[Floats, Floats, Floats]:
    """Return log likelihood, mean and standard deviation of N for each covariance of the rates.

    The mean of the rates and the size of the noise are integrated out (generalised least squares).
    `ends` are the covariances of the rates with what N differs by at the end from its mean.
    """
    lower = np.linalg.cholesky(covariances)
    constants = np.broadcast_to(np.ones_like(rates), ends.shape)
    right = np.stack([constants, np.broadcast_to(rates, ends.shape), ends], axis=2)
    one, seen, end = np.moveaxis(np.linalg.solve(lower, right), 2, 0)
    precision = (one**2).sum(axis=1)
    mean = (one * seen).sum(axis=1) / precision
    rests = seen - mean[:, None] * one
    freedom = len(rates) - 1
    variance = np.maximum((rests**2).sum(axis=1) / freedom, LEAST_VARIANCE * counting)
    determinants = np.log(np.diagonal(lower, axis1=1, axis2=2)).sum(axis=1)
    logs = -determinants - np.log(precision) / 2 - freedom / 2 * np.log(variance)
    leftover = 1 - (one * end).sum(axis=1)
    spread = variances - (end**2).sum(axis=1) + leftover**2 / precision
    deviations = np.sqrt(variance * np.maximum(spread, 0.0))
    return logs, mean + (end * rests).sum(axis=1), deviations


def _quantile(parts: Sequence[tuple[float, NormalDist]], probability: float) -> float:
    """Return the value below which a weighted sum of distributions lies, by bisection."""
    total = sum(weight for weight, _ in parts)
    low = min(part.inv_cdf(NEGLIGIBLE) for _, part in parts)
    high = max(part.inv_cdf(1 - NEGLIGIBLE) for _, part in parts)
    while high - low > NEGLIGIBLE * max(abs(high), NEGLIGIBLE):
        middle = (low + high) / 2
        below = sum(weight * part.cdf(middle) for weight, part in parts)
        low, high = (low, middle) if below >= probability * total else (middle, high)
    return (low + high) / 2
