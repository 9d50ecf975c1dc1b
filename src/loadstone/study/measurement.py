"""Reads the `measurement` of a study file."""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from pydantic import ValidationError

from loadstone.analysis.goal import goal
from loadstone.errors import InvalidInput
from loadstone.keystone.scenarios import MIX, SCENARIOS, named
from loadstone.lab.keystone.settings import Service
from loadstone.oidc.scenarios import PREFIX as OIDC
from loadstone.oidc.scenarios import named as oidc_named
from loadstone.rally.task import messages
from loadstone.rally.task.model import Task, Workload
from loadstone.rally.task.problem import Problem, TaskInvalid
from loadstone.rally.task.read import check_tree
from loadstone.rally.task.tree import Path, Tree, parse
from loadstone.report.sections.fault import ROWS
from loadstone.search.settings import SearchSettings
from loadstone.search.strategies import strategy
from loadstone.study.model import (
    ClosedLoopStep,
    FaultMeasurement,
    FaultRow,
    Figure,
    Measurement,
    SearchMeasurement,
    StepsMeasurement,
    Tasks,
)
from loadstone.study.shape import (
    FaultsShape,
    QuickShape,
    SearchShape,
    StepsShape,
    StudyTaskShape,
)
from loadstone.workload.capacity import by_name
from loadstone.workload.fault import FaultTerms, fault_groups

Built = TypeVar("Built")
PATH: Path = ("measurement",)
SHAPES: dict[str, type[SearchShape | StepsShape | StudyTaskShape | FaultsShape]] = {
    "capacity": SearchShape,
    "steps": StepsShape,
    "task": StudyTaskShape,
    "faults": FaultsShape,
}


# Options of `loadstone fault`, and a study's fields of the same meaning.
FAULT_FIELDS = {
    "--baseline": "baseline_s",
    "--observe": "observe_s",
    "--rate": "rate_rps",
    "--repeats": "times",
}


def require_service(name: str) -> None:
    """Raise InvalidInput if the lab has no such service."""
    services = [one.value for one in Service]
    if name not in services:
        known = messages.suggestion(name, services, "services")
        raise InvalidInput(f'there is no service "{name}"; {known}')


def require_scenario(name: str) -> None:
    """Raise InvalidInput if there is no such scenario or mix of scenarios."""
    if name.startswith(MIX):
        named(name)
    elif name not in SCENARIOS:
        known = messages.suggestion(name, SCENARIOS, "scenarios")
        raise InvalidInput(f'there is no scenario "{name}"; {known}')


def require_searchable(name: str) -> None:
    """Raise InvalidInput if there is no such scenario, of Keystone or of OpenID Connect."""
    if OIDC in name:
        oidc_named(name)
    else:
        require_scenario(name)


@dataclass(frozen=True, slots=True)
class Reader:
    """Reads the measurement of a file; errors are added to `problems`."""

    tree: Tree
    problems: list[Problem]

    def read(self, document: dict[str, Any], quick: QuickShape | None) -> tuple[Measurement, str]:
        """Return the measurement, and the scenario of cells whose levels choose none."""
        kind = document.get("kind", "capacity")
        if not isinstance(kind, str) or kind not in SHAPES:
            hint = messages.suggestion(kind, SHAPES, "kinds")
            message = f'there is no kind "{kind}" of measurement; {hint}'
            self.wrong(("kind",), message)
            kind = "capacity"
            document = {}
        form = SHAPES[kind]
        try:
            shape = form.model_validate(document)
        except ValidationError as wrong:
            self.problems.extend(messages.problems(wrong, self.tree, PATH, "the measurement", form))
            shape = SearchShape()
        if not isinstance(shape, FaultsShape):
            self._refuse(quick, "times", "only faults have times")
        match shape:
            case FaultsShape():
                return self._faults(shape, quick), ""
            case SearchShape():
                return self._search(shape, quick), shape.scenario
            case StepsShape():
                return self._steps(shape, quick), ""
            case StudyTaskShape():
                for key in ("budget_s", "iterations"):
                    self._refuse(quick, key, f"a task has no {key}: it stays as it is")
                return self._tasks(shape), ""

    def wrong(self, path: Path, message: str) -> None:
        """Add a problem of the measurement."""
        self.problems.append(self.tree.problem((*PATH, *path), message))

    def _search(self, shape: SearchShape, quick: QuickShape | None) -> SearchMeasurement:
        self._try(("scenario",), lambda: require_searchable(shape.scenario))
        self._refuse(quick, "iterations", "a search has no iterations: budget_s makes it shorter")
        wanted = self._try(("objectives",), lambda: goal(tuple(shape.objectives)))
        budget_s = (quick.budget_s if quick else None) or shape.budget_s
        settings = SearchSettings(budget_s, objectives=wanted.objectives if wanted else ())
        self._try(("method",), lambda: strategy(shape.method, settings))
        return SearchMeasurement(
            method=shape.method,
            budget_s=budget_s,
            max_rate_rps=shape.max_rate_rps,
            users=shape.users,
            objectives=tuple(shape.objectives),
            warm_up_s=self._warm_up_s(shape.warm_up_s),
        )

    def _warm_up_s(self, warm_up_s: float | dict[str, float]) -> tuple[tuple[str, float], ...]:
        """Return the seconds of load before a search of each service."""
        if not isinstance(warm_up_s, dict):
            return tuple((service.value, warm_up_s) for service in Service)
        for service in warm_up_s:
            self._try(("warm_up_s", service), partial(require_service, service))
        return tuple(warm_up_s.items())

    def _refuse(self, quick: QuickShape | None, key: str, message: str) -> None:
        if quick is not None and getattr(quick, key) is not None:
            self.problems.append(self.tree.problem(("quick", key), message))

    def _try(self, path: Path, build: Callable[[], Built]) -> Built | None:
        try:
            return build()
        except InvalidInput as wrong:
            self.wrong(path, str(wrong))
            return None

    def _steps(self, shape: StepsShape, quick: QuickShape | None) -> StepsMeasurement:
        self._refuse(quick, "budget_s", "steps have no budget_s: iterations makes them shorter")
        steps = tuple(self._each(shape, quick.iterations if quick else None))
        names = [step.name for step in steps if step.timed]
        for twice in dict.fromkeys(name for name in names if names.count(name) > 1):
            self.wrong(("steps",), f'two timed steps are called "{twice}": give them a name each')
        if not any(step.timed for step in steps):
            self.wrong(("steps",), "no step is timed: the table would be empty")
        return StepsMeasurement(self._figure(shape.figure), shape.users, steps)

    def _faults(self, shape: FaultsShape, quick: QuickShape | None) -> FaultMeasurement:
        for key in ("budget_s", "iterations"):
            self._refuse(quick, key, f"faults have no {key} in their quick form: times has")
        self._try(("scenario",), lambda: require_scenario(shape.scenario))
        terms = FaultTerms(
            sentences=tuple(" ".join(one.split()) for one in shape.do),
            rate_rps=shape.rate_rps,
            load=shape.load,
            repeats=(quick.times if quick else None) or shape.times,
            baseline_s=shape.baseline_s,
            observe_s=shape.observe_s,
            timeout_s=shape.timeout_s,
            search_s=shape.budget_s,
            measures_left=shape.capacity_left,
        )
        self._require_possible(shape, terms)
        known = {name: f"{words}, {unit}".removesuffix(", ") for name, words, unit in ROWS}
        for name in shape.figures:
            if name not in known:
                suggestion = messages.suggestion(name, known, "figures")
                self.wrong(("figures",), f'there is no figure "{name}"; {suggestion}')
        rows = tuple(
            FaultRow(sentence, name, known[name])
            for sentence in terms.sentences
            for name in shape.figures
            if name in known
        )
        return FaultMeasurement(terms, shape.scenario, shape.users, rows)

    def _require_possible(self, shape: FaultsShape, terms: FaultTerms) -> None:
        """Refuse what `loadstone fault` refuses, by the names of a study's fields."""
        try:
            fault_groups(by_name("issue", shape.users), terms)
        except InvalidInput as wrong:
            said = str(wrong)
            named = {option: field for option, field in FAULT_FIELDS.items() if option in said}
            for option, field in named.items():
                said = said.replace(option, field)
            given = [field for field in named.values() if field in shape.model_fields_set]
            self.wrong((given[0],) if given else ("do",), said)

    def _figure(self, name: str) -> Figure:
        if name not in list(Figure):
            known = messages.suggestion(name, list(Figure), "figures")
            self.wrong(("figure",), f'there is no figure "{name}"; {known}')
            return Figure.RATE
        return Figure(name)

    def _tasks(self, shape: StudyTaskShape) -> Tasks:
        text = json.dumps(shape.task, default=str)  # a date without quotes
        try:
            checked = check_tree(parse(text, "task"))
        except TaskInvalid as wrong:
            for problem in wrong.problems:
                self.wrong(("task",), problem.message)
            return Tasks(Figure.MEAN, text, ())
        found = checked.task.workloads
        if shape.warm_ups >= len(found):
            self.wrong(("warm_ups",), "every workload warms up: the table would be empty")
        titled = _with_titles(tuple(_names(found)), checked.task)
        names = tuple(f"{i}. {name}" for i, name in enumerate(titled, start=1))
        rows, figure = names[shape.warm_ups :], self._figure(shape.figure)
        return Tasks(
            figure=figure,
            text=text,
            names=rows,
            warm_ups=shape.warm_ups,
            until_failure=shape.until_failure,
            secrets=checked.secrets,
        )

    def _each(self, shape: StepsShape, most: int | None) -> Iterator[ClosedLoopStep]:
        for i, step in enumerate(shape.steps):
            self._try(("steps", i, "scenario"), partial(require_scenario, step.scenario))
            yield ClosedLoopStep(
                name=step.name or f"{step.scenario} at {step.concurrency}",
                scenario=step.scenario,
                concurrency=step.concurrency,
                iterations=min(step.iterations, most or step.iterations),
                timed=step.timed,
                at_most_s=step.at_most_s,
            )


def _names(workloads: Sequence[Workload]) -> Iterator[str]:
    """Name workloads; those of one scenario also by their concurrency."""
    scenarios = [one.scenario.name for one in workloads]
    for one, name in zip(workloads, scenarios, strict=True):
        concurrency = getattr(one.runner, "concurrency", 1)
        is_ambiguous = scenarios.count(name) > 1 and concurrency > 1
        yield f"{name}, {concurrency} at once" if is_ambiguous else name


def _with_titles(names: Sequence[str], task: Task) -> Iterator[str]:
    """Add the subtask's title to names that are not unique."""
    titles = [one.title for one in task.subtasks for _ in one.workloads]
    for name, title in zip(names, titles, strict=True):
        yield f"{name}, {title}" if names.count(name) > 1 and title != name else name
