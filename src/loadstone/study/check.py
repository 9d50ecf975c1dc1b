"""Checks a study file and returns the study, or one line per problem."""

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import prod
from typing import Any

from pydantic import ValidationError

from loadstone.errors import InvalidInput
from loadstone.keystone.deploy import settings as lab
from loadstone.rally.task import messages
from loadstone.rally.task.problem import Problem, TaskInvalid
from loadstone.rally.task.tree import Path, Tree
from loadstone.study.measurement import Reader, require_scenario
from loadstone.study.model import (
    Cell,
    Comparison,
    Factor,
    Level,
    Measurement,
    Pairs,
    Published,
    Study,
    rows_of,
)
from loadstone.study.shape import QuickShape, StudyShape

MOST_CELLS = 500
SCENARIO = "scenario"
REFERENCE, NO_LEVEL = "reference", "none"  # the levels of the reference service's cell


def check(tree: Tree, name: str, *, quick: bool) -> Study:
    """Check a whole file and give the study, or its quick form."""
    try:
        shape = StudyShape.model_validate(tree.value)
    except ValidationError as wrong:
        raise TaskInvalid(messages.problems(wrong, tree, (), "the study", StudyShape)) from None
    reader = _StudyReader(tree, shape, [])
    study = reader.study(name, shape.quick if quick else None)
    if not study.cells and not reader.problems:
        reader.problems.append(Problem(tree.file, None, "the quick form leaves no cell"))
    if quick and shape.quick is None:
        reader.problems.append(Problem(tree.file, None, "the study has no quick form"))
    if reader.problems:
        raise TaskInvalid(reader.problems)
    return study


@dataclass(frozen=True, slots=True)
class _StudyReader:
    tree: Tree
    shape: StudyShape
    problems: list[Problem]

    def study(self, name: str, quick: QuickShape | None) -> Study:
        every = tuple(
            self._factor(factor, given, ("factors", factor))
            for factor, given in self.shape.factors.items()
        )
        self._refuse_doubles(every)
        factors = every if quick is None else tuple(self._fewer(f, quick) for f in every)
        for given in quick.levels if quick else ():
            self._known(every, given, None, ("quick", "levels", given))
        measurement, scenario = Reader(self.tree, self.problems).read(self.shape.measurement, quick)
        reference = self._reference(factors, scenario)
        cells = (*self._cells(every, factors, scenario), *reference)
        return Study(
            name=name,
            title=self.shape.title,
            source=self.shape.source,
            notes=tuple(self.shape.notes),
            factors=factors,
            cells=cells,
            repeats=self.shape.repeats if quick is None else quick.repeats or self.shape.repeats,
            pause_s=self.shape.pause_s if quick is None or quick.pause_s is None else quick.pause_s,
            measurement=measurement,
            comparisons=tuple(self._comparisons(every, factors)),
            published=(*self._published(every, measurement), *self._of_reference(reference)),
            quick=quick.words if quick else None,
            names_limits=self.shape.which_saturates,
        )

    def _wrong(self, path: Path, said: str) -> None:
        self.problems.append(self.tree.problem(path, said))

    def _factor(self, name: str, given: Any, path: Path) -> Factor:
        """Read a list of values of the setting that the factor is named after, or named levels."""
        if isinstance(given, list):
            levels = [
                self._level({name: one}, (*path, i), _word(one)) for i, one in enumerate(given)
            ]
        elif isinstance(given, dict):
            levels = [self._level(one, (*path, key), _word(key)) for key, one in given.items()]
        else:
            self._wrong(path, f'factor "{name}" must be a list of values or a mapping of levels')
            return Factor(name, ())
        names = [level.name for level in levels]
        if not levels:
            self._wrong(path, f'factor "{name}" has no levels')
        for twice in {one for one in names if names.count(one) > 1}:
            self._wrong(path, f'factor "{name}" has the level "{twice}" twice')
        return Factor(name, tuple(levels))

    def _level(self, given: Any, path: Path, name: str) -> Level:
        if not isinstance(given, dict):
            self._wrong(path, f'level "{name}" must be a mapping of settings, as {{workers: 2}}')
            return Level(name, (), None)
        pairs = self._pairs(given, path)
        scenario = dict(pairs).get(SCENARIO)
        if scenario is not None:
            require_scenario(scenario, self.tree, path, self.problems)
        return Level(name, tuple(p for p in pairs if p[0] != SCENARIO), scenario)

    def _pairs(self, given: dict[Any, Any], path: Path) -> Pairs:
        """Read settings; each is looked at alone, so that its own line is named."""
        pairs = []
        for key, value in given.items():
            where: Path = (*path, key) if (*path, key) in self.tree.places else path
            if not isinstance(value, str | int | float) or isinstance(value, bool):
                said = "true or false" if isinstance(value, bool) else type(value).__name__
                self._wrong(where, f'"{key}" is read as {said}: quote it, as {key}: "off"')
                continue
            pairs.append((str(key), str(value)))
            if key != SCENARIO:
                self._lab(lab.values, [(str(key), str(value))], where)
        return tuple(pairs)

    def _lab(
        self,
        read: Callable[[list[tuple[str, str]]], object],
        pairs: list[tuple[str, str]],
        path: Path,
    ) -> None:
        try:
            read(pairs)
        except InvalidInput as wrong:
            self._wrong(path, str(wrong))

    def _refuse_doubles(self, factors: tuple[Factor, ...]) -> None:
        for one, other in itertools.combinations(factors, 2):
            for key in sorted(_keys(one) & _keys(other)):
                said = f'factors "{one.name}" and "{other.name}" both set "{key}"'
                self._wrong(("factors", other.name), said)

    def _fewer(self, factor: Factor, quick: QuickShape) -> Factor:
        if factor.name not in quick.levels:
            return factor
        path = ("quick", "levels", factor.name)
        wanted = [_word(one) for one in quick.levels[factor.name]]
        for i, one in enumerate(wanted):
            self._known((factor,), factor.name, one, (*path, i))
        if not wanted:
            self._wrong(path, f'the quick form leaves factor "{factor.name}" without a level')
        return Factor(factor.name, tuple(x for x in factor.levels if x.name in wanted))

    def _known(self, factors: tuple[Factor, ...], name: str, level: str | None, path: Path) -> bool:
        names = {factor.name: [x.name for x in factor.levels] for factor in factors}
        if name not in names:
            self._wrong(
                path, f'there is no factor "{name}"; {messages.meant(name, names, "factors")}'
            )
            return False
        if level is not None and level not in names[name]:
            known = messages.meant(level, names[name], "levels")
            self._wrong(path, f'factor "{name}" has no level "{level}"; {known}')
            return False
        return True

    def _levels(self, every: tuple[Factor, ...], given: dict[str, Any], path: Path) -> Pairs:
        pairs = tuple((name, _word(level)) for name, level in given.items())
        known = [self._known(every, name, level, (*path, name)) for name, level in pairs]
        return pairs if all(known) else ()

    def _cells(
        self, every: tuple[Factor, ...], factors: tuple[Factor, ...], scenario: str
    ) -> Iterator[Cell]:
        count = prod(len(factor.levels) for factor in every)
        if count > MOST_CELLS:
            self._wrong(("factors",), f"{count:,} combinations; a study has {MOST_CELLS} at most")
            return
        common = self._pairs(self.shape.settings, ("settings",))
        listed = self._listed(every)
        for chosen in itertools.product(*(factor.levels for factor in factors)):
            levels = tuple((f.name, x.name) for f, x in zip(factors, chosen, strict=True))
            if listed is None or frozenset(levels) in listed:
                yield self._cell(levels, common, chosen, scenario)

    def _reference(self, factors: tuple[Factor, ...], scenario: str) -> tuple[Cell, ...]:
        if self.shape.reference is None:
            return ()
        names = (REFERENCE, *[NO_LEVEL] * len(factors))
        levels = tuple((f.name, name) for f, name in zip(factors, names, strict=False))
        return (Cell(levels, (), scenario, is_reference=True),)

    def _of_reference(self, cells: tuple[Cell, ...]) -> Iterator[Published]:
        given = self.shape.reference
        for cell in cells:
            if given is not None and given.value is not None:
                yield Published(cell.levels, None, given.value, given.words)

    def _listed(self, every: tuple[Factor, ...]) -> set[frozenset[tuple[str, str]]] | None:
        """Return the combinations that the file lists; None: it wants them all."""
        if self.shape.cells is None:
            return None
        listed = set()
        for i, given in enumerate(self.shape.cells):
            for factor in every:
                if factor.name not in given:
                    self._wrong(("cells", i), f'the cell has no level of factor "{factor.name}"')
            listed.add(frozenset(self._levels(every, given, ("cells", i))))
        return listed

    def _cell(self, levels: Pairs, common: Pairs, chosen: tuple[Level, ...], scenario: str) -> Cell:
        settings = dict(common) | dict(pair for level in chosen for pair in level.settings)
        scenarios = [level.scenario for level in chosen if level.scenario is not None]
        if scenarios and not scenario:
            self._wrong(("factors",), "a step names its scenario itself: no level can choose one")
        cell = Cell(levels, tuple(settings.items()), (scenarios or [scenario])[0])
        if not self.problems:  # each setting alone is good: what remains is their combination
            self._lab(lab.read, list(cell.settings), ("factors",))
        return cell

    def _comparisons(
        self, every: tuple[Factor, ...], factors: tuple[Factor, ...]
    ) -> Iterator[Comparison]:
        there = {(factor.name, level.name) for factor in factors for level in factor.levels}
        for i, given in enumerate(self.shape.compare):
            base, other = (_word(level) for level in given.levels)
            known = [self._known(every, given.factor, one, ("compare", i)) for one in (base, other)]
            # The quick form may have left one of them out.
            if all(known) and {(given.factor, base), (given.factor, other)} <= there:
                yield Comparison(given.factor, base, other)

    def _published(
        self, every: tuple[Factor, ...], measurement: Measurement
    ) -> Iterator[Published]:
        steps = [name for name in rows_of(measurement) if name is not None]
        for i, given in enumerate(self.shape.published):
            levels = self._levels(every, given.cell, ("published", i, "cell"))
            if (given.step not in steps) if steps else given.step is not None:
                known = messages.meant(given.step, steps, "steps")
                self._wrong(("published", i), f'there is no step "{given.step}"; {known}')
            yield Published(levels, given.step, given.value, given.words)


def _word(value: object) -> str:
    return str(value)


def _keys(factor: Factor) -> set[str]:
    keys = {key for level in factor.levels for key, _ in level.settings}
    return keys | ({SCENARIO} if any(level.scenario for level in factor.levels) else set())
