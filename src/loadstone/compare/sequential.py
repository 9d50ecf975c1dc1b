"""Sequential test of paired differences.

After each pair the differences so far are tested, and the comparison ends as soon as the answer is
known. Testing again and again with Student's 95 % interval would find a difference where there is
none far more often than in 5 % of comparisons. So the error rate is spent over the pairs (alpha
spending: Lan and DeMets, Biometrika 70, 1983), and the interval of each look is a repeated
confidence interval (Jennison and Turnbull, J. R. Statist. Soc. B 51, 1989): all intervals of one
comparison hold the truth together, at the stated confidence.

The critical values are those of Student's t of normally distributed differences with unknown
variance. They are exact for any number of pairs up to the error of a simulation with 200,000
comparisons, which is drawn with a fixed seed.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import ceil, inf, sqrt

import numpy as np
from numpy.typing import ArrayLike, NDArray

FEWEST_PAIRS = 4  # three degrees of freedom; with fewer an interval says next to nothing
_SPENDING_POWER = 1.5  # error spent after k of n pairs: alpha * (k / n) ** 1.5
_SIMULATED = 200_000
_POWER = 0.8  # chance to find the difference that a required number of pairs is given for


@dataclass(frozen=True, slots=True)
class RepeatedInterval:
    """Mean of the differences and its repeated confidence interval."""

    mean: float
    low: float
    high: float
    count: int  # pairs


def interval(differences: Sequence[float], most_pairs: int, alpha: float) -> RepeatedInterval:
    """Return the repeated confidence interval after these pairs.

    `most_pairs` is the number of pairs at which the comparison ends at the latest, `alpha` the
    chance that any interval of the comparison misses the truth.
    """
    count = len(differences)
    if count < FEWEST_PAIRS:
        mean = float(np.mean(differences)) if count else 0.0
        return RepeatedInterval(mean, -inf, inf, count)
    values = np.asarray(differences, dtype=np.float64)
    mean = float(values.mean())
    half = critical_value(count, most_pairs, alpha) * float(values.std(ddof=1)) / sqrt(count)
    return RepeatedInterval(mean, mean - half, mean + half, count)


def critical_value(count: int, most_pairs: int, alpha: float) -> float:
    """Return the least |t| after `count` pairs that shows a difference."""
    return _critical_values(max(most_pairs, count), alpha)[count - FEWEST_PAIRS]


def pairs_needed(deviation: float, difference: float, alpha: float) -> int:
    """Return how many pairs find a difference with a chance of 80 %, one test after the last pair.

    `deviation` is the standard deviation of the pairs' differences. The normal approximation, with
    the quantile of Student's t for the few degrees of freedom of small numbers of pairs.
    """
    from scipy import stats

    chances = (1 - alpha / 2, _POWER)

    def required(quantiles: ArrayLike) -> int:
        return ceil((float(np.sum(quantiles)) * deviation / difference) ** 2)

    # The normal distribution's quantiles are the smaller ones: it is never fewer.
    count = max(FEWEST_PAIRS, required(stats.norm.ppf(chances)))
    while required(stats.t.ppf(chances, count - 1)) > count:
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
