"""Universal Scalability Law: how capacity grows with workers or nodes.

    X(n) = lambda n / (1 + sigma (n - 1) + kappa n (n - 1))

N. J. Gunther, Guerrilla Capacity Planning, Springer 2007, chapter 4. `sigma` is contention (the
serial share), `kappa` coherence (the cost of keeping replicas consistent).
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import inf, isfinite, sqrt

import numpy as np
from numpy.typing import NDArray

from loadstone.analysis import student
from loadstone.errors import InvalidInput
from loadstone.report import figures
from loadstone.study.table import TableRow

LEAST_LEVELS = 4  # three parameters, and one more for the residual
LAW_POINTS = 40  # in the drawn curve
FACTORS = ("workers", "nodes")  # factors that count parallel servers
MOST_STEPS = 500  # of the fit, which usually ends within 20
CLOSE_ENOUGH = 1e-12  # a step, in proportion to the parameters' scales, that ends the fit

Vector = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Parameter:
    """An estimate with its 95 % interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class ScalingLaw:
    """A fitted law."""

    rate_rps: Parameter  # lambda: of one
    contention: Parameter
    coherence: Parameter

    def at(self, count: float) -> float:
        """Return the capacity that the law gives for `count` workers or nodes."""
        values = (self.rate_rps.value, self.contention.value, self.coherence.value)
        return float(_law(np.array([count]), *values)[0])

    @property
    def is_superlinear(self) -> bool:
        """Whether capacity grows more than in proportion, which no contention explains.

        Gunther, Puglia and Tomasette, Hadoop superlinear scalability, ACM Queue 13(5), 2015.
        """
        return self.contention.high < 0

    @property
    def peak(self) -> float:
        """The count at which capacity is highest; infinite if it falls with no count."""
        kappa, sigma = self.coherence.value, self.contention.value
        if sigma > 1:
            return 1.0
        return max(1.0, sqrt((1 - sigma) / kappa)) if kappa > 0 else inf


def sentences(lines: Iterable[TableRow]) -> Iterator[str]:
    """Describe how capacity grows with workers or nodes, for each combination of other factors.

    Yields nothing for fewer than four counts.
    """
    for one in scalings(lines):
        yield f"{one.title}: {_sentence(one.points)}"


@dataclass(frozen=True, slots=True)
class Scaling:
    """Capacities at several counts of workers or nodes, with all other factors fixed."""

    factor: str
    title: str
    points: tuple[tuple[float, float], ...]  # count, capacity per second of each repeat


def scalings(lines: Iterable[TableRow]) -> Iterator[Scaling]:
    """Yield the data to fit scaling laws to: capacities at four or more counts.

    Without those in which the load generator was the limit.
    """
    every = [row for row in lines if row.is_valid is not False]
    for factor in FACTORS:
        groups: dict[str, list[tuple[float, float]]] = {}
        for row in every:
            levels = dict(row.cell.levels)
            level = levels.pop(factor, "")
            if level.isdigit():
                about = ", ".join([*levels.values(), *([row.step] if row.step else [])])
                points = groups.setdefault(about, [])
                # The middle of a range is no figure, and neither is a bound.
                points += [(float(level), value) for value in row.figures if value]
        for about, points in groups.items():
            if len({count for count, _ in points}) >= LEAST_LEVELS:
                yield Scaling(factor, f"{factor}{f' ({about})' if about else ''}", tuple(points))


def _sentence(points: Sequence[tuple[float, float]]) -> str:
    try:
        law = fit(points)
    except InvalidInput as refused:
        return str(refused)
    most = max(count for count, _ in points)
    gain = law.at(most + 1) / law.at(most) - 1
    highest = f"highest at {law.peak:.0f}" if isfinite(law.peak) else "no highest point"
    parameters = (
        f"Universal Scalability Law: {figures.rate(law.rate_rps.value)}/s of one, contention "
        f"{_parameter(law.contention)}, coherence {_parameter(law.coherence)}"
    )
    if law.is_superlinear:
        return (
            f"{parameters}; contention below 0: capacity grows more than in proportion, which the "
            "law does not explain, so it forecasts nothing here"
        )
    return f"{parameters}; the next after {most:g} brings {100 * gain:+.1f} %; {highest}"


def _parameter(one: Parameter) -> str:
    return f"{one.value:.3f} ({one.low:.3f} to {one.high:.3f})"


def fit(points: Sequence[tuple[float, float]]) -> ScalingLaw:
    """Fit the law to (count, capacity per second) by least squares of the logarithms.

    Raises InvalidInput if a fit is impossible: fewer than four different counts, a capacity of
    zero, or fewer than five points.
    """
    counts = np.array([count for count, _ in points], dtype=np.float64)
    rates = np.array([rate for _, rate in points], dtype=np.float64)
    levels = len(set(counts.tolist()))
    if levels < LEAST_LEVELS or len(points) < LEAST_LEVELS + 1:
        raise InvalidInput(
            f"{len(points)} measurements at {levels} different counts are too few for a scaling "
            f"law; measure at least {LEAST_LEVELS} counts, {LEAST_LEVELS + 1} times in all"
        )
    if not (rates > 0).all():
        raise InvalidInput("a capacity of 0 does not fit a scaling law")
    values = _least_squares(counts, rates)
    freedom = len(points) - 3
    residual = float(np.sqrt((_residuals(values, counts, rates) ** 2).sum() / freedom))
    slopes = _slopes(values, counts)
    covariance = np.linalg.pinv(slopes.T @ slopes) * residual**2
    half = student.quantile(0.975, freedom) * np.sqrt(np.diag(covariance))
    rate, contention, coherence = (
        Parameter(float(value), float(value - reach), float(value + reach))
        for value, reach in zip(values, half, strict=True)
    )
    return ScalingLaw(rate, contention, coherence)


def _least_squares(counts: Vector, rates: Vector) -> Vector:
    """Return rate, contention and coherence by Levenberg and Marquardt's method, within bounds.

    A parameter at its bound whose cost falls beyond it stays there. Steps are relative to
    `scales`, so that the parameters weigh alike.
    """
    scales = np.array([float((rates / counts).max()), 1.0, 1.0])
    values = np.array([scales[0], 0.05, 0.0])
    low, high = np.array([1e-9, -0.9, 0.0]), np.array([inf, 1.5, 1.0])
    damping = 1e-3
    for _ in range(MOST_STEPS):
        left = _residuals(values, counts, rates)
        slopes = _slopes(values, counts) * scales
        downhill = -slopes.T @ left
        is_free = ~(((values <= low) & (downhill < 0)) | ((values >= high) & (downhill > 0)))
        squares = (slopes.T @ slopes)[np.ix_(is_free, is_free)]
        damped = squares + damping * np.diag(np.diag(squares))
        step = np.zeros(3)
        step[is_free] = np.linalg.pinv(damped) @ downhill[is_free]
        tried = np.clip(values + step * scales, low, high)
        cost, before = (float((one**2).sum()) for one in (_residuals(tried, counts, rates), left))
        moved = float(np.abs((tried - values) / scales).max())
        if cost < before:
            values, damping = tried, max(damping / 10, 1e-12)
        else:
            damping *= 10
        if moved < CLOSE_ENOUGH:
            break
    return values


def _slopes(values: Vector, counts: Vector) -> Vector:
    """Return the derivatives of the residuals by each parameter, a column each."""
    rate, contention, coherence = values
    pairs = counts * (counts - 1)
    slowdown = np.maximum(1 + contention * (counts - 1) + coherence * pairs, 1e-9)
    by_rate = np.full_like(counts, 1 / rate)
    return np.stack([by_rate, -(counts - 1) / slowdown, -pairs / slowdown], axis=1)


def _law(counts: Vector, rate: float, contention: float, coherence: float) -> Vector:
    slowdown = 1 + contention * (counts - 1) + coherence * counts * (counts - 1)
    capacity: Vector = rate * counts / np.maximum(slowdown, 1e-9)
    return capacity


def _residuals(values: Vector, counts: Vector, rates: Vector) -> Vector:
    difference: Vector = np.log(_law(counts, *values.tolist())) - np.log(rates)
    return difference
