"""Caps the size of a task (`--at-most`), to test whether a cloud can run it at all."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TypeVar

from loadstone.errors import InvalidInput
from loadstone.keystone.contexts.model import Context, Users
from loadstone.rally.task.model import Constant, Runner, Task, Workload
from loadstone.result.model import Reduction
from loadstone.result.task_workload import Settings

# Rally's names of the settings, and the fields that store them.
_RUNNER = {"times": "times", "duration": "duration_s", "concurrency": "concurrency"}
_USERS = {"tenants": "tenants", "users_per_tenant": "users_per_tenant"}
SETTINGS = (*_RUNNER, *_USERS)
_WORDS = re.compile(r"\s*(\w+)\s*=\s*(\d{1,9})\s*")

Caps = Mapping[str, int]
Part = TypeVar("Part", bound=Runner | Users)


def at_most(options: Iterable[str]) -> Caps:
    """Parse the value of the option, such as `times=2,tenants=1`."""
    caps: dict[str, int] = {}
    for part in (part for word in options for part in word.split(",")):
        match = _WORDS.fullmatch(part)
        if match is None or match[1] not in SETTINGS or int(match[2]) < 1:
            raise InvalidInput(
                f"--at-most {part}: write it like times=2,tenants=1, in whole numbers from 1; "
                f"choose from {', '.join(SETTINGS)}"
            )
        if match[1] in caps:
            raise InvalidInput(f"--at-most: {match[1]} is given twice")
        caps[match[1]] = int(match[2])
    return caps


def reduced(task: Task, caps: Caps) -> Task:
    """Return the task with no setting above its cap; each workload lists its reductions."""
    if not caps:
        return task
    subtasks = tuple(
        replace(sub, workloads=tuple(_reduced(one, caps) for one in sub.workloads))
        for sub in task.subtasks
    )
    return replace(task, subtasks=subtasks)


def _reduced(workload: Workload, caps: Caps) -> Workload:
    runner = _less_load(workload.runner, caps)
    contexts = tuple(_fewer_users(one, caps) for one in workload.contexts)
    reductions = _changes(workload.runner, runner, _RUNNER)
    for old, fewer in zip(workload.contexts, contexts, strict=True):
        reductions += _changes(old, fewer, _USERS)
    # Not in the scenario, whose arguments may have the same names.
    spec = replace(
        workload.spec,
        runner=_reduced_settings(workload.spec.runner, reductions),
        contexts=_reduced_settings(workload.spec.contexts, reductions),
    )
    return replace(workload, runner=runner, contexts=contexts, spec=spec, reduced=reductions)


def _less_load(runner: Runner, caps: Caps) -> Runner:
    smaller: Runner = _capped(runner, _RUNNER, caps)
    match smaller:
        case Constant(times=times, concurrency=concurrency) if concurrency > times:
            return replace(smaller, concurrency=times)
        case _:
            return smaller


def _fewer_users(context: Context, caps: Caps) -> Context:
    return _capped(context, _USERS, caps) if isinstance(context, Users) else context


def _capped(part: Part, fields: Mapping[str, str], caps: Caps) -> Part:
    values = {
        field: min(getattr(part, field), caps[setting])
        for setting, field in fields.items()
        if setting in caps and hasattr(part, field)
    }
    return replace(part, **values)


def _changes(
    old: Runner | Context, new: Runner | Context, fields: Mapping[str, str]
) -> tuple[Reduction, ...]:
    pairs = (
        (setting, getattr(old, field), getattr(new, field))
        for setting, field in fields.items()
        if hasattr(old, field)
    )
    return tuple(Reduction(name, old, new) for name, old, new in pairs if old != new)


def _reduced_settings(part: Settings, reductions: tuple[Reduction, ...]) -> Settings:
    """Return runner or contexts as in the file, with the reduced values."""
    values = {one.setting: one.made for one in reductions}
    return {
        name: {key: values.get(key, value) for key, value in settings.items()}
        if isinstance(settings, Mapping)
        else settings
        for name, settings in part.items()
    }
