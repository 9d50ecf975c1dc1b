"""Sequential test of paired differences.

After each pair the differences so far are tested, and the comparison ends as soon as the answer is
known. Repeated tests with Student's 95 % interval would find a false difference in far more than
5 % of comparisons. So the error rate is spent over the pairs (alpha spending: Lan and DeMets,
Biometrika 70, 1983), and the interval after each pair is a repeated confidence interval (Jennison
and Turnbull, J. R. Statist. Soc. B 51, 1989): all intervals of one comparison together contain the
true value with the stated confidence.

The critical values are those of Student's t of normally distributed differences with unknown
variance. They are exact for any number of pairs up to the error of a simulation with 200,000
comparisons, which is drawn with a fixed seed. For a trimmed mean, each is that of Student's t with
its degrees of freedom that is exceeded with the same chance (Yuen 1974), and 1 % more.
"""

from dataclasses import dataclass
from functools import lru_cache
from math import ceil, inf, sqrt

import numpy as np
from numpy.typing import NDArray

from loadstone.analysis import student
from loadstone.compare import trimmed

FEWEST_PAIRS = 4  # three degrees of freedom; with fewer, intervals are too wide to be useful
_SPENDING_POWER = 1.5  # error spent after k of n pairs: alpha * (k / n) ** 1.5
_SIMULATED = 200_000
# Of a trimmed mean's critical values. With each value that is left out, its successive tests depend
# less on each other than those of a mean: without this, 5.4 % miss the truth in place of 5 %.
_BEYOND_MEAN = 1.01
_POWER = 0.8  # chance to find a difference with the number of pairs of `pairs_needed`


@dataclass(frozen=True, slots=True)
class RepeatedInterval:
    """Repeated confidence interval of the trimmed mean of the differences."""

    low: float
    high: float


def interval(
    mean: float, deviation: float, count: int, most_pairs: int, alpha: float
) -> RepeatedInterval:
    """Return the repeated confidence interval after `count` pairs.

    `mean` and `deviation` are those of `compare.trimmed`. `most_pairs` is the maximum number of
    pairs of the comparison, `alpha` the chance that any interval of the comparison misses the true
    value.
    """
    if count < FEWEST_PAIRS:
        return RepeatedInterval(-inf, inf)
    half = critical_value(count, most_pairs, alpha) * deviation / sqrt(count)
    return RepeatedInterval(mean - half, mean + half)


def critical_value(count: int, most_pairs: int, alpha: float) -> float:
    """Return the minimum |t| of a trimmed mean of `count` pairs that shows a difference."""
    of_mean = _critical_values(max(most_pairs, count), alpha)[count - FEWEST_PAIRS]
    degrees = trimmed.degrees(count)
    if degrees == count - 1:
        return of_mean
    chance = student.two_sided_p(of_mean, count - 1)
    return _BEYOND_MEAN * student.quantile(1 - chance / 2, degrees)


def pairs_needed(deviation: float, difference: float, alpha: float) -> int:
    """Return the number of pairs that find a difference with 80 % power, by one test at the end.

    `deviation` is the standard deviation of the pairs' differences. The normal approximation, with
    quantiles of Student's t to correct for few degrees of freedom.
    """

    def required(degrees: float) -> int:
        quantiles = (student.quantile(chance, degrees) for chance in (1 - alpha / 2, _POWER))
        return ceil((sum(quantiles) * deviation / difference) ** 2)

    # Normal quantiles are smaller, so this is a lower bound of the number of pairs.
    count = max(FEWEST_PAIRS, required(inf))
    while required(count - 1) > count:
        count += 1
    return count


@lru_cache(maxsize=64)
def _critical_values(most_pairs: int, alpha: float) -> tuple[float, ...]:
    """Return the critical |t| for FEWEST_PAIRS, ... , most_pairs pairs."""
    random = np.random.default_rng(1983)
    total = np.zeros(_SIMULATED)
    squares = np.zeros(_SIMULATED)
    values: list[float] = []
    for count in range(1, most_pairs + 1):
        drawn = random.standard_normal(len(total))
        total += drawn
        squares += drawn * drawn
        if count < FEWEST_PAIRS:
            continue
        rejected_before = _SIMULATED - len(total)
        spent = alpha * (count / most_pairs) ** _SPENDING_POWER
        to_reject = round(spent * _SIMULATED) - rejected_before
        student = _student(total, squares, count)
        critical = float(np.partition(student, -to_reject - 1)[-to_reject - 1])
        values.append(critical)
        goes_on = student <= critical
        total, squares = total[goes_on], squares[goes_on]
    return tuple(values)


def _student(
    total: NDArray[np.float64], squares: NDArray[np.float64], count: int
) -> NDArray[np.float64]:
    variance = (squares - total * total / count) / (count - 1)
    statistic: NDArray[np.float64] = np.abs(total) / np.sqrt(count * variance)
    return statistic
