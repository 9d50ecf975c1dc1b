"""What a study measures in each cell, from its file's `measurement`."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from loadstone.analysis.goal import goal
from loadstone.errors import InvalidInput
from loadstone.keystone.scenarios import SCENARIOS
from loadstone.search.settings import Settings
from loadstone.search.strategies import strategy
from loadstone.study.model import Figure, Measurement, Search, Step, Steps
from loadstone.study.shape import QuickShape, SearchShape, StepsShape
from loadstone.task import words
from loadstone.task.problem import Problem
from loadstone.task.tree import Path, Tree

PATH: Path = ("measurement",)
SHAPES: dict[str, type[SearchShape | StepsShape]] = {"capacity": SearchShape, "steps": StepsShape}


def require_scenario(name: str, tree: Tree, path: Path, problems: list[Problem]) -> None:
    """See that there is such a scenario."""
    if name not in SCENARIOS:
        known = words.meant(name, SCENARIOS, "scenarios")
        problems.append(tree.problem(path, f'there is no scenario "{name}"; {known}'))


@dataclass(frozen=True, slots=True)
class Reader:
    """Reads the measurement of a file; what is wrong is added to `problems`."""

    tree: Tree
    problems: list[Problem]

    def read(self, given: dict[str, Any], quick: QuickShape | None) -> tuple[Measurement, str]:
        """Give the measurement, and the scenario of cells whose levels choose none."""
        kind = given.get("kind", "capacity")
        if kind not in SHAPES:
            said = f'there is no kind "{kind}" of measurement; {words.meant(kind, SHAPES, "kinds")}'
            self.wrong(("kind",), said)
            kind = "capacity"
            given = {}
        form = SHAPES[kind]
        try:
            shape = form.model_validate(given)
        except ValidationError as wrong:
            self.problems.extend(words.problems(wrong, self.tree, PATH, "the measurement", form))
            shape = SearchShape()
        match shape:
            case SearchShape():
                return self._search(shape, quick), shape.scenario
            case StepsShape():
                return self._steps(shape, quick), ""

    def wrong(self, path: Path, said: str) -> None:
        """Add a problem of the measurement."""
        self.problems.append(self.tree.problem((*PATH, *path), said))

    def _search(self, given: SearchShape, quick: QuickShape | None) -> Search:
        require_scenario(given.scenario, self.tree, (*PATH, "scenario"), self.problems)
        if quick and quick.iterations is not None:
            said = "a search has no iterations: budget_s makes it shorter"
            self.problems.append(self.tree.problem(("quick", "iterations"), said))
        self._try("objectives", lambda: goal(tuple(given.objectives)))
        self._try("method", lambda: strategy(given.method, Settings()))
        return Search(
            method=given.method,
            budget_s=(quick.budget_s if quick else None) or given.budget_s,
            max_rate_rps=given.max_rate_rps,
            users=given.users,
            objectives=tuple(given.objectives),
        )

    def _try(self, name: str, make: Callable[[], object]) -> None:
        try:
            make()
        except InvalidInput as wrong:
            self.wrong((name,), str(wrong))

    def _steps(self, given: StepsShape, quick: QuickShape | None) -> Steps:
        if quick and quick.budget_s is not None:
            said = "steps have no budget_s: iterations makes them shorter"
            self.problems.append(self.tree.problem(("quick", "budget_s"), said))
        steps = tuple(self._each(given, quick.iterations if quick else None))
        names = [step.name for step in steps if step.timed]
        for twice in dict.fromkeys(name for name in names if names.count(name) > 1):
            self.wrong(("steps",), f'two timed steps are called "{twice}": give them a name each')
        if not any(step.timed for step in steps):
            self.wrong(("steps",), "no step is timed: the table would be empty")
        if given.figure not in list(Figure):
            known = words.meant(given.figure, list(Figure), "figures")
            self.wrong(("figure",), f'there is no figure "{given.figure}"; {known}')
            return Steps(Figure.RATE, given.users, steps)
        return Steps(Figure(given.figure), given.users, steps)

    def _each(self, given: StepsShape, most: int | None) -> Iterator[Step]:
        for i, step in enumerate(given.steps):
            where = (*PATH, "steps", i, "scenario")
            require_scenario(step.scenario, self.tree, where, self.problems)
            yield Step(
                name=step.name or f"{step.scenario} at {step.concurrency}",
                scenario=step.scenario,
                concurrency=step.concurrency,
                iterations=min(step.iterations, most or step.iterations),
                timed=step.timed,
                at_most_s=step.at_most_s,
            )
