"""Intervals of ratios and means of rates: Student's t on logarithms (errors are proportional)."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, sqrt
from statistics import fmean, stdev

from loadstone.analysis import student

CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class Interval:
    """A geometric mean with its interval; None for a single value."""

    mean: float
    low: float | None
    high: float | None
    count: int


def of_logs(logs: Sequence[float]) -> Interval:
    """Return exp(mean ± t * s / sqrt(n)) of the logarithms of n values."""
    mean = fmean(logs)
    if len(logs) < 2:
        return Interval(exp(mean), None, None, len(logs))
    half = student_t(len(logs) - 1) * stdev(logs) / sqrt(len(logs))
    return Interval(exp(mean), exp(mean - half), exp(mean + half), len(logs))


def student_t(degrees: float) -> float:
    """Return the factor of a 95 % interval: Student's t of so many degrees of freedom."""
    return student.quantile((1 + CONFIDENCE) / 2, degrees)
