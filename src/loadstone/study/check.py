"""Checks a study file."""

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import prod
from typing import Any, TypeVar

from pydantic import ValidationError

from loadstone.compare.sequential import FEWEST_PAIRS
from loadstone.errors import InvalidInput
from loadstone.keystone.scenarios import named
from loadstone.lab.keystone import settings as lab
from loadstone.oidc.scenarios import PREFIX as PROVIDER_SCENARIO
from loadstone.rally.task import messages
from loadstone.rally.task.problem import Problem, TaskInvalid
from loadstone.rally.task.tree import Path, Tree
from loadstone.study.measurement import Reader, require_searchable, require_service
from loadstone.study.model import (
    Cell,
    Factor,
    FaultMeasurement,
    Figure,
    Level,
    LevelComparison,
    Measurement,
    Pairs,
    Published,
    SearchMeasurement,
    StepsMeasurement,
    Study,
    Tasks,
    rows_of,
)
from loadstone.study.shape import QuickShape, StudyShape

Given = TypeVar("Given")
MOST_CELLS = 500
PAIRS_IN_TURNS = 24  # of trials, at most, for each two cells that are compared: the default
SCENARIO = "scenario"
EXPECT = "expect"  # facts that the deployment of a level must state
REFERENCE, NO_LEVEL = "reference", "none"  # the levels of the reference service's cell


def check(tree: Tree, name: str, *, quick: bool) -> Study:
    """Return the study of a file or its quick form; TaskInvalid lists all problems."""
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
        all_factors = tuple(
            self._factor(name, levels, ("factors", name))
            for name, levels in self.shape.factors.items()
        )
        self._refuse_doubles(all_factors)
        factors = (
            all_factors if quick is None else tuple(self._reduced(f, quick) for f in all_factors)
        )
        for factor in quick.levels if quick else ():
            self._is_known(all_factors, factor, None, ("quick", "levels", factor))
        measurement, scenario = Reader(self.tree, self.problems).read(self.shape.measurement, quick)
        reference = self._reference(factors, scenario)
        cells = (*self._cells(all_factors, factors, scenario), *reference)
        if not self.problems:
            self._require_users(measurement, cells)
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
            comparisons=tuple(self._comparisons(all_factors, factors)),
            published=(
                *self._published(all_factors, measurement, cells),
                *self._of_reference(reference),
            ),
            quick=quick.words if quick else None,
            names_limits=self.shape.which_saturates,
            shows_costs=self.shape.costs,
            pairs_in_turns=self._pairs_in_turns(measurement, quick),
        )

    def _require_users(self, measurement: Measurement, cells: tuple[Cell, ...]) -> None:
        """Refuse scenarios whose things are removed with users of a run that creates none."""
        if isinstance(measurement, Tasks) or measurement.users:
            return
        match measurement:
            case SearchMeasurement():
                names = [cell.scenario for cell in cells if PROVIDER_SCENARIO not in cell.scenario]
            case StepsMeasurement(steps=steps):
                names = [step.scenario for step in steps]
            case FaultMeasurement(scenario=name):
                names = [name]
        for name in dict.fromkeys(names):
            if made := named(name).goes_with_users:
                message = f'scenario "{name}" makes {made}, which are removed with the users of the'
                self._wrong(("measurement", "users"), f"{message} run: give users: 1 or more")

    def _pairs_in_turns(self, measurement: Measurement, quick: QuickShape | None) -> int:
        """Return how many pairs of trials each two compared cells have in turns; 0: none."""
        # With objectives, N is not the throughput of a full service.
        can_take_turns = isinstance(measurement, SearchMeasurement) and not measurement.objectives
        found = PAIRS_IN_TURNS if can_take_turns and self.shape.compare else 0
        given: tuple[tuple[Path, int | None], ...] = (
            (("pairs_in_turns",), self.shape.pairs_in_turns),
            (("quick", "pairs_in_turns"), quick.pairs_in_turns if quick else None),
        )
        for path, pairs in given:
            if pairs and not can_take_turns:
                only = "only the cells of a search (kind: capacity) without objectives take turns"
                self._wrong(path, only)
            elif pairs and pairs < FEWEST_PAIRS:
                text = f"{pairs} pairs are too few for an answer: give {FEWEST_PAIRS} or more, or 0"
                self._wrong(path, text)
            found = found if pairs is None else pairs
        return found

    def _wrong(self, path: Path, message: str) -> None:
        self.problems.append(self.tree.problem(path, message))

    def _factor(self, name: str, value: Any, path: Path) -> Factor:
        """Read a factor: a list of values of the setting of that name, or named levels."""
        if isinstance(value, list):
            levels = [self._level({name: one}, (*path, i), str(one)) for i, one in enumerate(value)]
        elif isinstance(value, dict):
            for key in value:
                if not isinstance(key, str | int | float) or isinstance(key, bool):
                    read = f'a level of factor "{name}" is read as {_kind(key)}: quote its name'
                    self._wrong((*path, key), read)
            levels = [self._level(one, (*path, key), str(key)) for key, one in value.items()]
        else:
            self._wrong(path, f'factor "{name}" must be a list of values or a mapping of levels')
            return Factor(name, ())
        names = [level.name for level in levels]
        if not levels:
            self._wrong(path, f'factor "{name}" has no levels')
        for twice in {one for one in names if names.count(one) > 1}:
            self._wrong(path, f'factor "{name}" has the level "{twice}" twice')
        return Factor(name, tuple(levels))

    def _level(self, value: Any, path: Path, name: str) -> Level:
        if not isinstance(value, dict):
            self._wrong(path, f'level "{name}" must be a mapping of settings, as {{workers: 2}}')
            return Level(name, (), None)
        expected = value.get(EXPECT, {})
        if not isinstance(expected, dict):
            self._wrong((*path, EXPECT), f'"{EXPECT}" must be a mapping of facts to their values')
            expected = {}
        for fact, one in expected.items():
            if not isinstance(one, str | int | float) or isinstance(one, bool):
                self._wrong((*path, EXPECT, fact), f'"{fact}" must be text: quote its value')
        by_service = value.get(SCENARIO)
        apart = {EXPECT, SCENARIO} if isinstance(by_service, dict) else {EXPECT}
        pairs = self._pairs({k: v for k, v in value.items() if k not in apart}, path)
        scenario = dict(pairs).get(SCENARIO)
        if scenario is not None:
            self._try(path, require_searchable, scenario)
        return Level(
            name,
            tuple(p for p in pairs if p[0] != SCENARIO),
            scenario,
            self._by_service(by_service, path) if isinstance(by_service, dict) else (),
            tuple((str(fact), str(one)) for fact, one in expected.items()),
        )

    def _by_service(self, scenarios: dict[Any, Any], path: Path) -> Pairs:
        """Read a level's scenario for each service of the lab."""
        for service, scenario in scenarios.items():
            where = (*path, SCENARIO, service)
            self._try(where, require_service, str(service))
            self._try(where, require_searchable, str(scenario))
        return tuple((str(service), str(one)) for service, one in scenarios.items())

    def _pairs(self, settings: dict[Any, Any], path: Path) -> Pairs:
        """Read settings; each is checked alone, so that problems name its line."""
        pairs = []
        for key, value in settings.items():
            where: Path = (*path, key) if (*path, key) in self.tree.places else path
            if not isinstance(value, str | int | float) or isinstance(value, bool):
                self._wrong(where, _no_setting(key, value))
                continue
            pairs.append((str(key), str(value)))
            if key != SCENARIO:
                self._try(where, lab.values, [(str(key), str(value))])
        return tuple(pairs)

    def _try(self, path: Path, read: Callable[[Given], object], given: Given) -> None:
        try:
            read(given)
        except InvalidInput as wrong:
            self._wrong(path, str(wrong))

    def _refuse_doubles(self, factors: tuple[Factor, ...]) -> None:
        for one, other in itertools.combinations(factors, 2):
            for key in sorted(_keys(one) & _keys(other)):
                message = f'factors "{one.name}" and "{other.name}" both set "{key}"'
                self._wrong(("factors", other.name), message)

    def _reduced(self, factor: Factor, quick: QuickShape) -> Factor:
        if factor.name not in quick.levels:
            return factor
        path = ("quick", "levels", factor.name)
        names = [str(one) for one in quick.levels[factor.name]]
        for i, one in enumerate(names):
            self._is_known((factor,), factor.name, one, (*path, i))
        if not names:
            self._wrong(path, f'the quick form leaves factor "{factor.name}" without a level')
        return Factor(factor.name, tuple(x for x in factor.levels if x.name in names))

    def _is_known(
        self, factors: tuple[Factor, ...], name: str, level: str | None, path: Path
    ) -> bool:
        names = {factor.name: [x.name for x in factor.levels] for factor in factors}
        if name not in names:
            self._wrong(
                path, f'there is no factor "{name}"; {messages.suggestion(name, names, "factors")}'
            )
            return False
        if level is not None and level not in names[name]:
            known = messages.suggestion(level, names[name], "levels")
            self._wrong(path, f'factor "{name}" has no level "{level}"; {known}')
            return False
        return True

    def _levels(self, all_factors: tuple[Factor, ...], levels: dict[str, Any], path: Path) -> Pairs:
        pairs = tuple((name, str(level)) for name, level in levels.items())
        known = [self._is_known(all_factors, name, level, (*path, name)) for name, level in pairs]
        return pairs if all(known) else ()

    def _cells(
        self, all_factors: tuple[Factor, ...], factors: tuple[Factor, ...], scenario: str
    ) -> Iterator[Cell]:
        count = prod(len(factor.levels) for factor in all_factors)
        if count > MOST_CELLS:
            self._wrong(("factors",), f"{count:,} combinations; a study has {MOST_CELLS} at most")
            return
        common = self._pairs(self.shape.settings, ("settings",))
        listed = self._listed(all_factors)
        for chosen in itertools.product(*(factor.levels for factor in factors)):
            levels = tuple((f.name, x.name) for f, x in zip(factors, chosen, strict=True))
            if listed is None or frozenset(levels) in listed:
                yield self._cell(levels, common, chosen, scenario)

    def _reference(self, factors: tuple[Factor, ...], scenario: str) -> tuple[Cell, ...]:
        if self.shape.reference is None:
            return ()
        names = (REFERENCE, *[NO_LEVEL] * len(factors))
        levels = tuple((f.name, name) for f, name in zip(factors, names, strict=False))
        own = self._pairs(self.shape.reference.settings, ("reference", "settings"))
        cell = Cell(levels, own, scenario, is_reference=True)
        if own and not self.problems:
            self._try(("reference", "settings"), lab.read, own)
        if own and not self.problems:
            self._fits(cell, ("reference", "settings"))
        if self.shape.reference.value is not None and not scenario:
            message = "only a search has one figure: publish those of steps for cells"
            self._wrong(("reference", "value"), message)
        return (cell,)

    def _of_reference(self, cells: tuple[Cell, ...]) -> Iterator[Published]:
        reference = self.shape.reference
        for cell in cells:
            if reference is not None and reference.value is not None:
                yield Published(cell.levels, None, reference.value, reference.words)

    def _listed(self, all_factors: tuple[Factor, ...]) -> set[frozenset[tuple[str, str]]] | None:
        """Return the combinations that the file lists; None means all."""
        if self.shape.cells is None:
            return None
        listed = set()
        for i, cell in enumerate(self.shape.cells):
            for factor in all_factors:
                if factor.name not in cell:
                    self._wrong(("cells", i), f'the cell has no level of factor "{factor.name}"')
            listed.add(frozenset(self._levels(all_factors, cell, ("cells", i))))
        return listed

    def _cell(self, levels: Pairs, common: Pairs, chosen: tuple[Level, ...], scenario: str) -> Cell:
        settings = dict(common) | dict(pair for level in chosen for pair in level.settings)
        service = settings.get("service", lab.Service.KEYSTONE.value)
        for level in chosen:
            if level.by_service and service not in dict(level.by_service):
                message = f'level "{level.name}" has no scenario for service "{service}"'
                self._wrong(("factors",), message)
        of_levels = (level.scenario or dict(level.by_service).get(service) for level in chosen)
        scenarios = [one for one in of_levels if one is not None]
        if scenarios and not scenario:
            self._wrong(("factors",), "a step names its scenario itself: no level can choose one")
        expected = tuple(pair for level in chosen for pair in level.expected)
        of_cell = (scenarios or [scenario])[0]
        cell = Cell(levels, tuple(settings.items()), of_cell, expected=expected)
        if not self.problems:  # the settings are valid one by one; check the combination
            self._try(("factors",), lab.read, cell.settings)
        if not self.problems:
            self._fits(cell)
        return cell

    def _fits(self, cell: Cell, path: Path = ("factors",)) -> None:
        """Refuse a scenario of one kind of service on another."""
        is_of_provider = PROVIDER_SCENARIO in cell.scenario
        service = cell.service
        if service.is_provider and not is_of_provider:
            what = f'scenario "{cell.scenario}"' if cell.scenario else "this kind of measurement"
            self._wrong(
                path,
                f"{cell}: service={service} is measured by a search (kind: capacity) of an oidc-* "
                f"scenario, not by {what}",
            )
        elif is_of_provider and not service.is_provider:
            able = " or ".join(f"service={one}" for one in lab.OF_PROVIDERS)
            self._wrong(path, f'{cell}: scenario "{cell.scenario}" needs {able}')

    def _comparisons(
        self, all_factors: tuple[Factor, ...], factors: tuple[Factor, ...]
    ) -> Iterator[LevelComparison]:
        present = {(factor.name, level.name) for factor in factors for level in factor.levels}
        compared: set[tuple[str, frozenset[str]]] = set()
        for i, comparison in enumerate(self.shape.compare):
            base, other = (str(level) for level in comparison.levels)
            known = [
                self._is_known(all_factors, comparison.factor, one, ("compare", i))
                for one in (base, other)
            ]
            if base == other:
                self._wrong(("compare", i), f'"{base}" is compared with itself: give two levels')
                continue
            pair = (comparison.factor, frozenset((base, other)))
            if pair in compared:
                self._wrong(("compare", i), f'"{base}" and "{other}" are compared already')
                continue
            compared.add(pair)
            # The quick form may lack one of the levels.
            if all(known) and {(comparison.factor, base), (comparison.factor, other)} <= present:
                yield LevelComparison(comparison.factor, base, other)

    def _published(
        self, all_factors: tuple[Factor, ...], measurement: Measurement, cells: tuple[Cell, ...]
    ) -> Iterator[Published]:
        steps = [name for name in rows_of(measurement) if name is not None]
        shortened = self._shortened(measurement)
        found: list[Published] = []
        for i, published in enumerate(self.shape.published):
            levels = self._levels(all_factors, published.cell, ("published", i, "cell"))
            if (published.step not in steps) if steps else published.step is not None:
                known = messages.suggestion(published.step, steps, "steps")
                self._wrong(("published", i), f'there is no step "{published.step}"; {known}')
            one = Published(levels, published.step, published.value, published.words)
            for cell in (cell for cell in cells if levels and one.is_of(cell, one.step)):
                if any(other.is_of(cell, one.step) for other in found):
                    where = f"{cell}, {one.step}" if one.step else f"{cell}"
                    self._wrong(("published", i), f"{where} has a published figure already")
                    break
            found.append(one)
            if one.step not in shortened:
                yield one

    def _shortened(self, measurement: Measurement) -> set[str]:
        """Return the steps whose published time is of more iterations than the quick form makes."""
        if not isinstance(measurement, StepsMeasurement) or measurement.figure is not Figure.TOTAL:
            return set()
        full = self.shape.measurement["steps"]
        both = zip(measurement.steps, full, strict=True)
        return {step.name for step, one in both if step.iterations < int(one["iterations"])}


def _no_setting(key: object, value: object) -> str:
    """Return what is wrong with a value that is neither text nor a number."""
    if value is None or isinstance(value, list | dict):
        return f'"{key}" must have one value, not {_kind(value)}'
    return f'"{key}" is read as {_kind(value)}: quote it, as {key}: "off"'


def _kind(value: object) -> str:
    match value:
        case None:
            return "nothing"
        case bool():
            return "true or false"
        case list():
            return "a list"
        case dict():
            return "a mapping"
        case _:
            return "a date"


def _keys(factor: Factor) -> set[str]:
    keys = {key for level in factor.levels for key, _ in level.settings}
    has_scenario = any(level.scenario or level.by_service for level in factor.levels)
    return keys | ({SCENARIO} if has_scenario else set())
