"""Estimates of the settings' effects from the combinations measured so far.

The model: the logarithm of a combination's gain is the sum of an effect of each changed setting and
of an interaction of each two, all of them normal about zero, interactions less wide. This is a
Bayesian linear regression, computed as a Gaussian process (Rasmussen and Williams, "Gaussian
Processes for Machine Learning", 2006, chapter 2). The width of the effects is that with the highest
likelihood.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import isfinite
from typing import Any

import numpy as np
import numpy.typing as npt

from loadstone.tune.evidence import GainEvidence
from loadstone.tune.space import Pairs, Space

Floats = npt.NDArray[np.floating[Any]]

# Standard deviations of effects that are considered, as logarithms: from 1 % to 20 times.
WIDTHS = tuple(np.geomspace(0.01, 3.0, 12))
INTERACTION = 0.4  # standard deviation of an interaction, in those of effects
NEIGHBOURS = 0.5  # correlation of the effects of neighbouring levels that are numbers,
FEWEST_ORDERED = 4  # of so many levels at least; fewer are soon all tried
LEAST_ERROR = 0.002  # of a mean log ratio: what two deployments differ by anyway


@dataclass(frozen=True, slots=True)
class Predicted:
    """Expected log gains of some combinations, and their standard deviations."""

    mean: Floats
    deviation: Floats


@dataclass(slots=True)
class Effects:
    """The model: learns from measured combinations, and predicts the gains of others."""

    space: Space
    _seen: dict[Pairs, GainEvidence | None] = field(default_factory=dict, init=False)
    # Of each setting's levels; 0: not changed.
    _codes: list[dict[str | None, int]] = field(init=False)
    _alike: list[Floats] = field(init=False)  # covariance of the effects of each setting's levels

    def __post_init__(self) -> None:
        usual = dict(self.space.default)
        self._codes, self._alike = [], []
        for one in self.space.settings:
            changed = [level for level in one.levels if level != usual.get(one.name)]
            self._codes.append({level: number for number, level in enumerate(changed, 1)})
            self._alike.append(_alike(changed, usual.get(one.name)))

    def add(self, changes: Pairs, evidence: GainEvidence | None) -> None:
        """Keep all that is known of a combination; None: it failed."""
        self._seen[changes] = evidence

    def suspects(self) -> set[tuple[str, str]]:
        """Return the changes of combinations that failed which are in none that did not."""
        failed = {one for each, seen in self._seen.items() if seen is None for one in each}
        return failed - {one for each, seen in self._seen.items() if seen for one in each}

    def best_first(self) -> list[Pairs]:
        """Return the combinations measured so far, and the default, by their expected gain."""
        known = [(), *(one for one, evidence in self._seen.items() if evidence is not None)]
        mean = self.predict(known).mean
        return [known[number] for number in np.argsort(-mean)]

    def predict(self, combinations: Sequence[Pairs]) -> Predicted:
        """Return what to expect of these combinations."""
        codes = self._coded(combinations)
        prior = self._variances(codes)
        if not self._seen:
            return Predicted(np.zeros(len(codes)), WIDTHS[0] * np.sqrt(prior))
        seen = self._coded(list(self._seen))
        values, errors = self._observed()
        within, across = self._covariances(seen, seen), self._covariances(codes, seen)
        fits = [_Fit(width, within, values, errors) for width in WIDTHS]
        best = max(fits, key=lambda fit: fit.likelihood)
        mean = best.width**2 * across @ best.weights
        known = np.einsum("ij,ji->i", across, np.linalg.solve(best.covariance, across.T))
        variance = best.width**2 * (prior - known)
        return Predicted(mean, np.sqrt(np.maximum(variance, 0.0)))

    def _observed(self) -> tuple[Floats, Floats]:
        """Return means and variances; a combination that failed is as bad as the worst."""
        known = [one for one in self._seen.values() if one is not None]
        worst = min([0.0, *(one.mean for one in known)])
        scattered = [one for one in known if isfinite(one.deviation)]
        freedom = sum(one.pairs - 1 for one in scattered)
        squares = sum((one.pairs - 1) * one.deviation**2 for one in scattered)
        # Of a few pairs alone, the deviation is hardly known.
        variance = squares / freedom if freedom else 0.0
        pairs = [one.pairs if one else 1 for one in self._seen.values()]
        means = [one.mean if one else worst for one in self._seen.values()]
        return np.array(means), variance / np.array(pairs) + LEAST_ERROR**2

    def _coded(self, combinations: Sequence[Pairs]) -> npt.NDArray[np.int64]:
        rows = []
        for changes in combinations:
            chosen = dict(changes)
            both = zip(self.space.settings, self._codes, strict=True)
            rows.append([codes.get(chosen.get(one.name), 0) for one, codes in both])
        return np.array(rows, dtype=np.int64).reshape(len(rows), len(self._codes))

    def _covariances(self, some: npt.NDArray[np.int64], others: npt.NDArray[np.int64]) -> Floats:
        """Return the covariance of the gains of each two combinations, for effects of width 1."""
        total = np.zeros((len(some), len(others)))
        squares = np.zeros_like(total)
        for number, alike in enumerate(self._alike):
            both = alike[some[:, number, None], others[None, :, number]]
            total += both
            squares += both**2
        return total + INTERACTION**2 * (total**2 - squares) / 2

    def _variances(self, codes: npt.NDArray[np.int64]) -> Floats:
        numbers = range(len(self._alike))
        each = np.array([self._alike[n][codes[:, n], codes[:, n]] for n in numbers])
        total = each.sum(axis=0)
        found: Floats = total + INTERACTION**2 * (total**2 - (each**2).sum(axis=0)) / 2
        return found


@dataclass(slots=True)
class _Fit:
    """The model with one width of the effects."""

    width: float
    within: Floats
    values: Floats
    errors: Floats
    covariance: Floats = field(init=False)  # over the square of the width
    weights: Floats = field(init=False)
    likelihood: float = field(init=False)  # its logarithm, without a constant

    def __post_init__(self) -> None:
        total: Floats = self.width**2 * self.within + np.diag(self.errors)
        self.covariance = total / self.width**2
        self.weights = np.linalg.solve(total, self.values)
        self.likelihood = -float(np.linalg.slogdet(total)[1] + self.values @ self.weights) / 2


def _alike(changed: Sequence[str], usual: str | None) -> Floats:
    """Return the covariance of the effects of a setting's levels; the first row is the default's.

    Levels that are numbers are more alike the nearer they are, and so is the default, whose effect
    is zero.
    """
    count = len(changed)
    whole = np.zeros((count + 1, count + 1))
    whole[1:, 1:] = np.eye(count)
    try:
        numbers = [float(one) for one in (*changed, *([] if usual is None else [usual]))]
    except ValueError:
        return whole
    if len(set(numbers)) < max(len(numbers), FEWEST_ORDERED) or not all(map(isfinite, numbers)):
        return whole
    places = np.array([sorted(numbers).index(one) for one in numbers])
    alike = NEIGHBOURS ** np.abs(places[:, None] - places[None, :]).astype(float)
    if usual is not None:  # given that the default's effect is zero
        alike = alike - np.outer(alike[:, -1], alike[-1])
    whole[1:, 1:] = alike[:count, :count]
    return whole
