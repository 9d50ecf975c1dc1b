"""Drafts against the catalogue: every plugin and setting known, typed and possible."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from loadstone.task import words
from loadstone.task.catalogue import foreign
from loadstone.task.catalogue.argument_form import form_of
from loadstone.task.catalogue.contexts import CONTEXTS, NEED_USERS
from loadstone.task.catalogue.hooks import ACTIONS, TRIGGERS
from loadstone.task.catalogue.runners import RUNNERS
from loadstone.task.catalogue.scenario import Entry
from loadstone.task.catalogue.scenarios import SCENARIOS
from loadstone.task.catalogue.slas import SLAS
from loadstone.task.checked import Checked
from loadstone.task.draft import HookDraft, Outline, Part, SubtaskDraft, WorkloadDraft
from loadstone.task.given import given
from loadstone.task.model import (
    Cleanup,
    Context,
    FailureRate,
    Hook,
    Runner,
    Scenario,
    Serial,
    SlaRule,
    Subtask,
    Task,
    Users,
    Workload,
)
from loadstone.task.problem import Problem, TaskInvalid
from loadstone.task.tree import Tree

TRAP = (
    "this sla section has no failure_rate: as in Rally it can pass when every iteration fails; "
    "add failure_rate: {max: 0}"
)

F = TypeVar("F", bound=BaseModel)


def check(outline: Outline, tree: Tree) -> Checked:
    """Make the task, or say all that is wrong with it."""
    checker = _Checker(tree, list(outline.problems), list(outline.warnings))
    subtasks = tuple(checker.subtask(draft) for draft in outline.subtasks)
    if checker.problems:
        raise TaskInvalid(checker.problems)
    task = Task(outline.title, subtasks, outline.description, outline.tags)
    return Checked(task, tuple(dict.fromkeys(checker.warnings)))


@dataclass(frozen=True, slots=True)
class _Checker:
    tree: Tree
    problems: list[Problem]
    warnings: list[Problem]

    def subtask(self, draft: SubtaskDraft) -> Subtask:
        workloads = [self._workload(one) for one in draft.workloads]
        known = tuple(one for one in workloads if one is not None)
        return Subtask(draft.title, known, draft.description, draft.tags)

    def _workload(self, draft: WorkloadDraft) -> Workload | None:
        entry = self._entry(draft.scenario)
        scenario = None if entry is None else self._scenario(entry, draft.scenario)
        runner = self._runner(draft.runner)
        contexts = self._contexts(draft.contexts, entry)
        sla = self._sla(draft)
        hooks = tuple(hook for one in draft.hooks if (hook := self._hook(one)) is not None)
        if entry is None or scenario is None or runner is None:
            return None
        file, line = self.tree.places[draft.path]
        description = draft.description or entry.about
        said = given(draft)
        return Workload(scenario, runner, contexts, sla, hooks, description, file, line, said)

    def _say(self, part: Part, said: str) -> None:
        self.problems.append(self.tree.problem(part.name_path, said))

    def _entry(self, part: Part) -> Entry | None:
        name, _, platform = part.name.partition("@")
        entry = SCENARIOS.get(name)
        if entry is not None and platform in ("", entry.platform):
            return entry
        if entry is not None:
            self._say(part, f"scenario {name} is of {entry.platform}, not of {platform}")
        elif name in foreign.SCENARIOS or name.partition(".")[0] in foreign.SCENARIO_GROUPS:
            there = words.meant("", _siblings(name), "scenarios")
            self._say(part, f"scenario {name} is Rally's, but Loadstone does not run it; {there}")
        else:
            meant = words.meant(name, SCENARIOS, "arguments")
            self._say(part, f'no scenario "{name}"; {meant}')
        return None

    def _scenario(self, entry: Entry, part: Part) -> Scenario | None:
        form = self._filled(f"scenario {entry.name}", form_of(entry), part)
        return None if form is None else Scenario(entry.name, form.model_dump())

    def _filled(self, subject: str, form: type[F], part: Part) -> F | None:
        """Fill the form; None: it was said what is wrong."""
        try:
            return form.model_validate(part.settings)
        except ValidationError as wrong:
            self.problems.extend(words.problems(wrong, self.tree, part.path, subject, form))
            return None

    def _known(self, what: str, forms: Mapping[str, type[F]], part: Part) -> F | None:
        """Fill the form of the plugin that the part names."""
        name, _, platform = part.name.partition("@")
        form = forms.get(name)
        if form is None or platform not in ("", "openstack", "default"):
            self._say(part, f'no {what} "{part.name}"; {words.meant(name, forms, what)}')
            return None
        return self._filled(f"{what} {name}", form, part)

    def _runner(self, part: Part | None) -> Runner | None:
        if part is None:
            return Serial()
        if part.name == "serial" and set(part.settings) - {"times"}:
            said = "serial takes only times; its other settings mean nothing, as in Rally"
            self.warnings.append(self.tree.problem(part.name_path, said))
        form = self._known("runner", RUNNERS, part)
        return None if form is None else form.made()

    def _contexts(self, parts: Iterable[Part], entry: Entry | None) -> tuple[Context, ...]:
        made: dict[str, Context] = {}
        for part in parts:
            name = part.name.partition("@")[0]
            if name in foreign.CONTEXTS:
                there = words.meant("", CONTEXTS, "contexts")
                said = f"context {name} is Rally's, but Loadstone does not make it; {there}"
                self._say(part, said)
                continue
            form = self._known("context", CONTEXTS, part)
            if form is not None:
                made[name] = form.made()
        if entry is not None:
            made = _implied(entry) | made
            for part in parts:
                if part.name.partition("@")[0] in NEED_USERS and "users" not in made:
                    self._say(part, f"context {part.name} needs the context users, too")
        return tuple(made[name] for name in CONTEXTS if name in made)

    def _sla(self, draft: WorkloadDraft) -> tuple[SlaRule, ...]:
        if draft.sla is None:
            return (FailureRate(max_percent=0.0),)
        if not any(part.name.partition("@")[0] == "failure_rate" for part in draft.sla):
            self.warnings.append(self.tree.problem((*draft.path, "sla"), TRAP))
        forms = (self._known("sla", SLAS, part) for part in draft.sla)
        return tuple(form.made() for form in forms if form is not None)

    def _hook(self, draft: HookDraft) -> Hook | None:
        name = draft.action.name.partition("@")[0]
        if name in foreign.HOOK_ACTIONS:
            there = words.meant("", ACTIONS, "actions")
            said = f"hook action {name} is Rally's, but Loadstone does not carry it out; {there}"
            self._say(draft.action, said)
            return None
        action = self._known("hook action", ACTIONS, draft.action)
        trigger = self._known("hook trigger", TRIGGERS, draft.trigger)
        if action is None or trigger is None:
            return None
        return Hook(action.made(), trigger.made(), draft.description)


def _siblings(name: str) -> Collection[str]:
    """Give what Loadstone runs of the same group, else all that it runs."""
    group = name.partition(".")[0]
    return [one for one in SCENARIOS if one.partition(".")[0] == group] or SCENARIOS


def _implied(entry: Entry) -> dict[str, Context]:
    """Give the contexts that Rally adds of its own."""
    implied: dict[str, Context] = {}
    if entry.makes_users:
        implied["users"] = Users(may_be_existing=True)
    if entry.cleanup is not None:
        implied[entry.cleanup] = Cleanup(entry.cleanup_of, entry.cleanup == "admin_cleanup")
    return implied
