"""Outline of a task file: each plugin with its settings and their position in the file."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from pydantic import ValidationError

from loadstone.rally.task import messages, shape
from loadstone.rally.task.catalogue.form import Form
from loadstone.rally.task.problem import Problem, TaskInvalid
from loadstone.rally.task.tree import Path, Tree

S = TypeVar("S", bound=Form)


@dataclass(frozen=True, slots=True)
class NamedPlugin:
    """A plugin's name and settings as written in the file."""

    name: str
    settings: Any
    name_path: Path
    path: Path  # of the settings


@dataclass(frozen=True, slots=True)
class HookDraft:
    """A hook before it is checked."""

    action: NamedPlugin
    trigger: NamedPlugin
    description: str


@dataclass(frozen=True, slots=True)
class WorkloadDraft:
    """A workload whose plugins are not checked yet; None for absent sections."""

    path: Path
    scenario: NamedPlugin
    runner: NamedPlugin | None
    contexts: tuple[NamedPlugin, ...]
    sla: tuple[NamedPlugin, ...] | None
    hooks: tuple[HookDraft, ...]
    description: str


@dataclass(frozen=True, slots=True)
class SubtaskDraft:
    """A subtask with its readable workloads."""

    title: str
    description: str
    workloads: tuple[WorkloadDraft, ...]


@dataclass(frozen=True, slots=True)
class Outline:
    """Outline of a task file with all problems found in it."""

    title: str
    subtasks: tuple[SubtaskDraft, ...]
    problems: tuple[Problem, ...]
    warnings: tuple[Problem, ...]


def outline(tree: Tree) -> Outline:
    """Read the outline of a file in either form."""
    if not isinstance(tree.value, dict) or not tree.value:
        found = "it is empty" if not tree.value else "it is not a mapping"
        raise TaskInvalid([Problem(tree.file, 1, f"not a task: {found}")])
    version = tree.value.get("version", 1)
    if version not in (1, "1", 2, "2"):  # 2.0 is 2
        known = "version 2, or no version for the old form"
        raise TaskInvalid(
            [tree.problem(("version",), f"no such version: {version!r}; use {known}")]
        )
    reader = _OutlineReader(tree, [], [])
    return reader.version_2(tree.value) if version in (2, "2") else reader.old(tree.value)


@dataclass(frozen=True, slots=True)
class _OutlineReader:
    tree: Tree
    problems: list[Problem]
    warnings: list[Problem]

    def _validated(self, form: type[S], value: Any, path: Path, what: str) -> S | None:
        """Validate a section; record problems and drop the wrong parts, to check the rest."""
        try:
            return form.model_validate(value)
        except ValidationError as wrong:
            self.problems.extend(messages.problems(wrong, self.tree, path, what, form))
            bad = {error["loc"][0] for error in wrong.errors() if error["loc"]}
        if not isinstance(value, dict) or not bad:
            return None
        try:
            return form.model_validate({key: part for key, part in value.items() if key not in bad})
        except ValidationError:
            return None

    def version_2(self, value: dict[str, Any]) -> Outline:
        task = self._validated(shape.TaskShape, value, (), "the task")
        if task is None:
            raise TaskInvalid(self.problems)
        subtasks = [
            draft
            for i, section in enumerate(task.subtasks)
            if (draft := self._subtask(section, ("subtasks", i))) is not None
        ]
        return self._outline(task.title, subtasks)

    def _outline(self, title: str, subtasks: list[SubtaskDraft]) -> Outline:
        return Outline(title, tuple(subtasks), tuple(self.problems), tuple(self.warnings))

    def _subtask(self, section: Any, path: Path) -> SubtaskDraft | None:
        if isinstance(section, dict) and "workloads" in section:
            return self._full_subtask(section, path)
        simple = self._validated(shape.SimpleSubtaskShape, section, path, "the subtask")
        if simple is None:
            return None
        self._warn_of_group(simple.group, path)
        # As in Rally, the description is that of the subtask.
        workload = replace(self._workload(simple, path), description="")
        return SubtaskDraft(simple.title, simple.description, (workload,))

    def _full_subtask(self, section: Any, path: Path) -> SubtaskDraft | None:
        subtask = self._validated(shape.SubtaskShape, section, path, "the subtask")
        if subtask is None:
            return None
        self._warn_of_group(subtask.group, path)
        if subtask.run_in_parallel:
            message = "run_in_parallel means nothing, as in Rally: workloads run one after another"
            self.warnings.append(self.tree.problem((*path, "run_in_parallel"), message))
        workloads = []
        for i, value in enumerate(subtask.workloads):
            place: Path = (*path, "workloads", i)
            workload = self._validated(shape.WorkloadShape, value, place, "the workload")
            if workload is not None:
                workloads.append(self._workload(workload, place))
        return SubtaskDraft(subtask.title, subtask.description, tuple(workloads))

    def _warn_of_group(self, group: str, path: Path) -> None:
        if group:
            message = "group means nothing, as in Rally"
            self.warnings.append(self.tree.problem((*path, "group"), message))

    def _workload(self, workload: shape.WorkloadShape, path: Path) -> WorkloadDraft:
        runner = workload.runner
        has_sla = "sla" in workload.model_fields_set
        return WorkloadDraft(
            path=path,
            scenario=_single(workload.scenario, (*path, "scenario")),
            runner=_single(runner, (*path, "runner")) if runner else None,
            contexts=tuple(_parts(workload.contexts, (*path, "contexts"))),
            sla=tuple(_parts(workload.sla, (*path, "sla"))) if has_sla else None,
            hooks=tuple(
                HookDraft(
                    _single(hook.action, (*path, "hooks", i, "action")),
                    _single(hook.trigger, (*path, "hooks", i, "trigger")),
                    hook.description,
                )
                for i, hook in enumerate(workload.hooks)
            ),
            description=workload.description,
        )

    def old(self, value: dict[str, Any]) -> Outline:
        try:
            task = shape.OldTaskShape.model_validate(value).root
        except ValidationError as wrong:
            subject, form = "the task (old form)", shape.OldTaskShape
            hint = 'a task of version 2 begins with "version: 2"'
            raise TaskInvalid(
                [
                    Problem(problem.file, problem.line, f"{problem.message}; {hint}")
                    for problem in messages.problems(wrong, self.tree, (), subject, form)
                ]
            ) from None
        subtasks = []
        for name, section in task.items():
            workloads = []
            for i, problem in enumerate(section):
                workload = self._validated(
                    shape.OldWorkloadShape, problem, (name, i), "the workload"
                )
                if workload is not None:
                    workloads.append(_old_workload(name, workload, (name, i)))
            subtasks.append(SubtaskDraft(name, "", tuple(workloads)))
        return self._outline("Task (adopted from task format v1)", subtasks)


def _single(named: dict[str, Any], path: Path) -> NamedPlugin:
    return next(_parts(named, path))


def _parts(named: dict[str, Any], path: Path) -> Iterator[NamedPlugin]:
    for name, settings in named.items():
        yield NamedPlugin(name, settings, (*path, name), (*path, name))


def _old_workload(name: str, workload: shape.OldWorkloadShape, path: Path) -> WorkloadDraft:
    runner = workload.runner
    has_sla = "sla" in workload.model_fields_set
    return WorkloadDraft(
        path=path,
        scenario=NamedPlugin(name, workload.args, path[:1], (*path, "args")),
        runner=NamedPlugin(
            runner.type, runner.model_extra or {}, (*path, "runner", "type"), (*path, "runner")
        ),
        contexts=tuple(_parts(workload.context, (*path, "context"))),
        sla=tuple(_parts(workload.sla, (*path, "sla"))) if has_sla else None,
        hooks=tuple(_old_hook(hook, (*path, "hooks", i)) for i, hook in enumerate(workload.hooks)),
        description=workload.description,
    )


def _old_hook(hook: shape.OldHookShape, path: Path) -> HookDraft:
    trigger = hook.trigger
    return HookDraft(
        NamedPlugin(hook.name, hook.args, (*path, "name"), (*path, "args")),
        NamedPlugin(
            trigger.name, trigger.args, (*path, "trigger", "name"), (*path, "trigger", "args")
        ),
        hook.description,
    )
