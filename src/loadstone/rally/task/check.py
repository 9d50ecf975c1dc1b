"""Checks drafts against the catalogue: names, types and limits of all plugins and settings."""

import difflib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from loadstone.analysis.criteria import FailureRate, SlaRule
from loadstone.errors import InvalidInput
from loadstone.keystone.contexts.model import Cleanup, Context, Users
from loadstone.plan.hooks import Hook, Periodic
from loadstone.rally.task import messages
from loadstone.rally.task.catalogue import foreign
from loadstone.rally.task.catalogue.argument_form import form_of
from loadstone.rally.task.catalogue.contexts import CONTEXTS, NEED_USERS
from loadstone.rally.task.catalogue.hooks import ACTIONS, TRIGGERS
from loadstone.rally.task.catalogue.own import OIDC_PLATFORM, OWN_NAMES, entry_of
from loadstone.rally.task.catalogue.runners import RUNNERS
from loadstone.rally.task.catalogue.scenario import CatalogueEntry
from loadstone.rally.task.catalogue.scenarios import HTTP, SCENARIOS
from loadstone.rally.task.catalogue.slas import SLAS
from loadstone.rally.task.checked import Checked
from loadstone.rally.task.draft import HookDraft, NamedPlugin, Outline, SubtaskDraft, WorkloadDraft
from loadstone.rally.task.model import Runner, Serial, Subtask, Task, TaskScenario, Workload
from loadstone.rally.task.problem import Problem, TaskInvalid
from loadstone.rally.task.spec import secrets, spec
from loadstone.rally.task.tree import Tree

TRAP = (
    "this sla section has no failure_rate: as in Rally it can pass when every iteration fails; "
    "add failure_rate: {max: 0}"
)

NEVER_HOLDS = "this rule never holds: its min is above its max"
NEVER_RUNS = "this hook never runs: its end comes before its start"
REDIRECTS = "redirects are not followed; give the URL that the service redirects to"

F = TypeVar("F", bound=BaseModel)


def check(outline: Outline, tree: Tree) -> Checked:
    """Return the task, or raise with all problems."""
    checker = _Checker(tree, list(outline.problems), list(outline.warnings))
    subtasks = tuple(checker.subtask(draft) for draft in outline.subtasks)
    if checker.problems:
        raise TaskInvalid(checker.problems)
    task = Task(outline.title, subtasks)
    hidden = frozenset().union(
        tree.secrets, *(one.secrets for subtask in subtasks for one in subtask.workloads)
    )
    return Checked(task, tuple(dict.fromkeys(checker.warnings)), hidden)


@dataclass(frozen=True, slots=True)
class _Checker:
    tree: Tree
    problems: list[Problem]
    warnings: list[Problem]

    def subtask(self, draft: SubtaskDraft) -> Subtask:
        workloads = [self._workload(one) for one in draft.workloads]
        known = tuple(one for one in workloads if one is not None)
        return Subtask(draft.title, known, draft.description)

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
        return Workload(
            scenario,
            runner,
            contexts,
            sla,
            hooks,
            description=draft.description or entry.about,
            file=file,
            line=line,
            spec=spec(draft),
            secrets=secrets(draft),
            is_sla_implied=draft.sla is None,
        )

    def _say(self, part: NamedPlugin, message: str) -> None:
        self.problems.append(self.tree.problem(part.name_path, message))

    def _entry(self, part: NamedPlugin) -> CatalogueEntry | None:
        name, _, platform = part.name.partition("@")
        try:
            entry = entry_of(name)
        except InvalidInput as wrong:
            self._say(part, str(wrong))
            return None
        if entry is not None and platform in ("", entry.platform):
            return entry
        if entry is not None:
            self._say(part, f"scenario {name} is of {entry.platform}, not of {platform}")
        elif name in foreign.SCENARIOS or name.partition(".")[0] in foreign.SCENARIO_GROUPS:
            there = messages.suggestion("", _siblings(name), "scenarios")
            self._say(part, f"scenario {name} is Rally's, but Loadstone does not run it; {there}")
        else:
            near = difflib.get_close_matches(name, OWN_NAMES, n=1, cutoff=messages.NEAR)
            hint = messages.suggestion(name, (*SCENARIOS, *near), "arguments")
            self._say(part, f'no scenario "{name}"; {hint}')
        return None

    def _scenario(self, entry: CatalogueEntry, part: NamedPlugin) -> TaskScenario | None:
        form = self._filled(f"scenario {entry.name}", form_of(entry), part)
        if form is None:
            return None
        if entry in HTTP:
            self._warn_of_redirects(part)
        return TaskScenario(entry.name, form.model_dump(exclude_unset=True))

    def _warn_of_redirects(self, part: NamedPlugin) -> None:
        given = part.settings.get("requests")
        requests = enumerate(given if isinstance(given, list) else ())
        several = (((*part.path, "requests", number), one) for number, one in requests)
        for path, request in ((part.path, part.settings), *several):
            if isinstance(request, Mapping) and request.get("allow_redirects"):
                self.warnings.append(self.tree.problem((*path, "allow_redirects"), REDIRECTS))

    def _filled(self, subject: str, form: type[F], part: NamedPlugin) -> F | None:
        """Validate the settings; return None if problems were recorded."""
        try:
            return form.model_validate(part.settings)
        except ValidationError as wrong:
            self.problems.extend(messages.problems(wrong, self.tree, part.path, subject, form))
            return None

    def _known(self, what: str, forms: Mapping[str, type[F]], part: NamedPlugin) -> F | None:
        """Validate the settings of the plugin that the part names."""
        name, _, platform = part.name.partition("@")
        form = forms.get(name)
        if form is None or platform not in ("", "openstack", "default"):
            self._say(part, f'no {what} "{part.name}"; {messages.suggestion(name, forms, what)}')
            return None
        return self._filled(f"{what} {name}", form, part)

    def _runner(self, part: NamedPlugin | None) -> Runner | None:
        if part is None:
            return Serial()
        if part.name == "serial" and set(part.settings) - {"times"}:
            message = "serial takes only times; its other settings mean nothing, as in Rally"
            self.warnings.append(self.tree.problem(part.name_path, message))
        form = self._known("runner", RUNNERS, part)
        return None if form is None else form.to_model()

    def _contexts(
        self, parts: Iterable[NamedPlugin], entry: CatalogueEntry | None
    ) -> tuple[Context, ...]:
        contexts: dict[str, Context] = {}
        for part in parts:
            name = part.name.partition("@")[0]
            if name in foreign.CONTEXTS:
                there = messages.suggestion("", CONTEXTS, "contexts")
                message = f"context {name} is Rally's, but Loadstone does not make it; {there}"
                self._say(part, message)
                continue
            form = self._known("context", CONTEXTS, part)
            if form is not None:
                contexts[name] = form.to_model()
        if entry is not None:
            contexts = _implied(entry) | contexts
            for part in parts:
                if part.name.partition("@")[0] in NEED_USERS and "users" not in contexts:
                    self._say(part, f"context {part.name} needs the context users, too")
                if entry.platform == OIDC_PLATFORM:
                    message = f"scenario {entry.name} takes no context {part.name}"
                    self._say(part, f"{message}; --oidc-users gives a provider's users")
            users = contexts.get("users")
            if entry.needs_own_users and isinstance(users, Users):
                contexts["users"] = replace(users, may_be_existing=False)
        return tuple(contexts[name] for name in CONTEXTS if name in contexts)

    def _sla(self, draft: WorkloadDraft) -> tuple[SlaRule, ...]:
        if draft.sla is None:
            return (FailureRate(max_percent=0.0),)
        if not any(part.name.partition("@")[0] == "failure_rate" for part in draft.sla):
            self.warnings.append(self.tree.problem((*draft.path, "sla"), TRAP))
        return tuple(rule for part in draft.sla if (rule := self._rule(part)) is not None)

    def _rule(self, part: NamedPlugin) -> SlaRule | None:
        form = self._known("sla", SLAS, part)
        rule = None if form is None else form.to_model()
        if isinstance(rule, FailureRate) and rule.min_percent > rule.max_percent:
            self.warnings.append(self.tree.problem(part.name_path, NEVER_HOLDS))
        return rule

    def _hook(self, draft: HookDraft) -> Hook | None:
        action = self._known("hook action", ACTIONS, draft.action)
        trigger = self._known("hook trigger", TRIGGERS, draft.trigger)
        if action is None or trigger is None:
            return None
        hook = Hook(action.to_model(), trigger.to_model(), draft.description)
        if isinstance(hook.trigger, Periodic) and hook.trigger.never_fires:
            self.warnings.append(self.tree.problem(draft.trigger.name_path, NEVER_RUNS))
        return hook


def _siblings(name: str) -> Collection[str]:
    """Return the supported scenarios of the same group, else all supported ones."""
    group = name.partition(".")[0]
    return [one for one in SCENARIOS if one.partition(".")[0] == group] or SCENARIOS


def _implied(entry: CatalogueEntry) -> dict[str, Context]:
    """Return the contexts that Rally adds implicitly."""
    implied: dict[str, Context] = {}
    if entry.makes_users:
        implied["users"] = Users(may_be_existing=True)
    if entry.cleanup is not None:
        implied[entry.cleanup] = Cleanup()
    return implied
