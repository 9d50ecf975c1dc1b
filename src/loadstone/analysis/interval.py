"""Intervals of means by Student's t; of rates and ratios on logarithms: errors are proportional."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import exp, hypot, log, sqrt
from statistics import fmean, stdev
from typing import Protocol

from loadstone.analysis import student

CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class Interval:
    """A mean with its 95 % interval; None for a single value."""

    mean: float
    low: float | None
    high: float | None
    count: int


def of_values(values: Sequence[float]) -> Interval:
    """Return mean ± t * s / sqrt(n) of n values."""
    mean = fmean(values)
    if len(values) < 2:
        return Interval(mean, None, None, len(values))
    half = student_t(len(values) - 1) * stdev(values) / sqrt(len(values))
    return Interval(mean, mean - half, mean + half, len(values))


def of_logs(logs: Sequence[float]) -> Interval:
    """Return the geometric mean of n values by their logarithms: exp of mean ± t * s / sqrt(n)."""
    found = of_values(logs)
    if found.low is None or found.high is None:
        return replace(found, mean=exp(found.mean))
    return Interval(exp(found.mean), exp(found.low), exp(found.high), found.count)


def student_t(degrees: float) -> float:
    """Return the factor of a 95 % interval: Student's t of so many degrees of freedom."""
    return student.quantile((1 + CONFIDENCE) / 2, degrees)


class Bounded(Protocol):
    """A value above zero with its bounds; None: unknown."""

    @property
    def value(self) -> float | None: ...  # noqa: D102

    @property
    def low(self) -> float | None: ...  # noqa: D102

    @property
    def high(self) -> float | None: ...  # noqa: D102


def of_ratio(other: Bounded, base: Bounded, widening: float = 1.0) -> Interval:
    """Return other / base; the errors of both are combined as independent.

    An interval may reach further to one side than to the other, so each limit of the ratio comes
    from those sides that make it so small or so large (MOVER: Zou & Donner, "Construction of
    confidence limits about effect measures", Statistics in Medicine 27, 2008; on logarithms).
    `widening` multiplies the half-widths, for more than one comparison.
    """
    a, b = base.value or 1.0, other.value or 0.0
    ratio = b / a
    if not (b and other.low and other.high and base.low and base.high):
        return Interval(ratio, None, None, 1)
    down = widening * hypot(log(b / other.low), log(base.high / a))
    up = widening * hypot(log(other.high / b), log(a / base.low))
    return Interval(ratio, ratio * exp(-down), ratio * exp(up), 1)
