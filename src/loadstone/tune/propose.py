"""Proposes combinations to try: suggestions first, then what promises the largest gain."""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from math import erfc, pi, sqrt
from random import Random

import numpy as np

from loadstone.tune.effects import Effects, Floats
from loadstone.tune.evidence import GainEvidence
from loadstone.tune.model import TriedCombination
from loadstone.tune.space import Pairs, Space

MOST_LISTED = 2000  # combinations of a space that are all considered
DRAWN = 100  # combinations of a larger space that are considered, drawn at random,
NEAR = 2  # and those one change away from so many of the best so far,
STEPS = 2  # and from the best of these; so many steps
MOST_NEAR = 200  # that are one change away from a combination, drawn at random
WORKS = 0.75  # assumed chance that a change works if all combinations with it failed
LEAST_DEVIATION = 1e-9  # avoids a division by zero
SEARCHED = "search"  # origin of a combination


@dataclass(slots=True)
class Proposals:
    """Proposes each combination once."""

    space: Space
    seed: int
    suggested: deque[tuple[Pairs, str]] = field(default_factory=deque)
    _effects: Effects = field(init=False)
    _known: set[Pairs] = field(default_factory=lambda: {()}, init=False)
    _random: Random = field(init=False)

    def __post_init__(self) -> None:
        self._random = Random(self.seed)  # noqa: S311 (no secret)
        self._effects = Effects(self.space)

    def add(self, changes: Pairs, evidence: GainEvidence | None) -> None:
        """Learn all that is known of a combination; None: it failed."""
        self._effects.add(changes, evidence)

    def next(self) -> TriedCombination | None:
        """Return the next combination to try; None if none that is new was found."""
        while self.suggested:
            changes, origin = self.suggested.popleft()
            changes = self.space.in_order(changes)
            if self._is_new(changes):
                return TriedCombination(changes, origin)
        candidates = sorted(self._candidates() - self._known)
        # Those that promise the same are tried in random order.
        self._random.shuffle(candidates)
        for number in np.argsort(-self._expected_improvement(candidates)):
            if self._is_new(candidates[number]):
                return TriedCombination(candidates[number], SEARCHED)
        return None

    def _is_new(self, changes: Pairs) -> bool:
        """Return whether it is possible and was not looked at before."""
        is_known = changes in self._known
        self._known.add(changes)
        return not is_known and self.space.is_possible(changes)

    def _expected_improvement(self, candidates: list[Pairs]) -> Floats:
        """Return by how much each is expected to exceed the best so far.

        Jones, Schonlau and Welch, "Efficient Global Optimization of Expensive Black-Box Functions",
        1998.
        """
        [best, *_] = self._effects.best_first()
        highest = float(self._effects.predict([best]).mean[0])
        found = self._effects.predict(candidates)
        deviation: Floats = np.maximum(found.deviation, LEAST_DEVIATION)
        beyond = (found.mean - highest) / deviation
        density = np.exp(-(beyond**2) / 2) / sqrt(2 * pi)
        chance = np.array([erfc(-one / sqrt(2)) / 2 for one in beyond])
        suspects = self._effects.suspects()
        works = np.array([WORKS ** len(suspects.intersection(one)) for one in candidates])
        improvement: Floats = works * deviation * (beyond * chance + density)
        return improvement

    def _candidates(self) -> set[Pairs]:
        """Return all combinations of a small space, else random ones and those near the best."""
        if self.space.combinations <= MOST_LISTED:
            return set(self._listed())
        found = {self._drawn() for _ in range(DRAWN)}
        best = self._effects.best_first()[:NEAR]
        for _ in range(STEPS):
            near = sorted({one for each in best for one in self._near(each)} - self._known)
            if not near:
                break
            found |= set(near)
            mean = self._effects.predict(near).mean
            best = [near[number] for number in np.argsort(-mean)[:NEAR]]
        return found

    def _listed(self, chosen: Pairs = (), number: int = 0) -> Iterator[Pairs]:
        """Yield all combinations that begin with these changes of the settings before `number`."""
        if number == len(self.space.settings):
            yield chosen
            return
        one = self.space.settings[number]
        for level in self.space.choices(one, self.space.values(chosen)):
            more = () if level is None else ((one.name, level),)
            yield from self._listed((*chosen, *more), number + 1)

    def _near(self, changes: Pairs) -> Iterator[Pairs]:
        """Yield the combinations with another level of one setting."""
        others = [(one.name, level) for one in self.space.settings for level in (None, *one.levels)]
        for name, level in self._random.sample(others, min(len(others), MOST_NEAR)):
            rest = {one: kept for one, kept in changes if one != name}
            more = {} if level is None else {name: level}
            yield self.space.in_order(tuple((rest | more).items()))

    def _drawn(self) -> Pairs:
        changes, values = list[tuple[str, str]](), self.space.values(())
        for one in self.space.settings:
            level = self._random.choice(self.space.choices(one, values))
            if level is not None:
                changes.append((one.name, level))
                values[one.name] = level
        return tuple(changes)
