"""Student's t distribution. SciPy has it too, but takes 140 MB of disk."""

from functools import lru_cache
from itertools import count
from math import erfc, exp, inf, lgamma, log, log1p, pi, sqrt
from statistics import NormalDist

_PRECISION = 1e-15  # relative, of the continued fraction and of the quantile
_TINY = 1e-300  # in place of a zero denominator (Lentz's method)


def two_sided_p(t: float, degrees: float) -> float:
    """Return the chance that |T| is at least |t|, for T of so many degrees of freedom."""
    if degrees == inf:
        return erfc(abs(t) / sqrt(2))
    square = t * t
    if square == inf:
        return 0.0
    rest = square / (degrees + square)
    return _incomplete_beta(degrees / 2, 0.5, degrees / (degrees + square), rest)


@lru_cache(maxsize=1024)
def quantile(probability: float, degrees: float) -> float:
    """Return the t below which T lies with this probability (Newton's method within a bracket)."""
    if probability == 0.5:
        return 0.0
    if probability < 0.5:
        return -quantile(1 - probability, degrees)
    wanted = 2 * (1 - probability)
    t = NormalDist().inv_cdf(probability)
    if degrees == inf:
        return t
    low, high = 0.0, inf
    while True:
        excess = two_sided_p(t, degrees) - wanted
        low, high = (t, high) if excess > 0 else (low, t)
        closer = t + excess / (2 * _density(t, degrees))
        if not low < closer < high:
            closer = 2 * low if high == inf else (low + high) / 2
        if abs(closer - t) <= _PRECISION * t or closer in (low, high):
            return closer
        t = closer


def _density(t: float, degrees: float) -> float:
    scale = lgamma((degrees + 1) / 2) - lgamma(degrees / 2) - log(degrees * pi) / 2
    return exp(scale - (degrees + 1) / 2 * log1p(t * t / degrees))


def _incomplete_beta(a: float, b: float, x: float, rest: float) -> float:
    """Return the regularised incomplete beta function I_x(a, b); `rest` is 1 - x.

    By the continued fraction DLMF 8.17.22, which converges fast for x < (a + 1) / (a + b + 2).
    """
    if x <= 0 or rest <= 0:
        return 0.0 if x <= 0 else 1.0
    if x > (a + 1) / (a + b + 2):
        return 1 - _incomplete_beta(b, a, rest, x)
    factor = lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log(rest)
    return exp(factor) / a * _continued_fraction(a, b, x)


def _continued_fraction(a: float, b: float, x: float) -> float:
    c, d = 1.0, 1 / (1 - (a + b) * x / (a + 1) or _TINY)
    value = d
    for m in count(1):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        before = value
        for term in (even, odd):
            d = 1 / (1 + term * d or _TINY)
            c = 1 + term / c or _TINY
            value *= c * d
        if abs(value - before) <= _PRECISION * abs(value):
            break
    return value
