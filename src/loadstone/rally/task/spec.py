"""The specification of a workload, in the form of version 2 and with secrets masked."""

import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from loadstone.result.task_workload import TaskWorkload
from loadstone.system.redaction import masked, secrets_in

if TYPE_CHECKING:
    from loadstone.rally.task.draft import NamedPlugin, WorkloadDraft


def spec(draft: "WorkloadDraft") -> TaskWorkload:
    """Return the workload as its file has it, with secrets masked."""
    runner = {"serial": {}} if draft.runner is None else _named([draft.runner])
    sla = {"failure_rate": {"max": 0}} if draft.sla is None else _named(draft.sla)
    hooks = (
        {
            "action": masked(_named([hook.action])),
            "trigger": _named([hook.trigger]),
            "description": masked(hook.description),
        }
        for hook in draft.hooks
    )
    return TaskWorkload(
        scenario=masked_settings(_named([draft.scenario])),
        runner=runner,
        contexts=masked_settings(_named(draft.contexts)),
        sla=sla,
        hooks=tuple(hooks),
    )


def secrets(draft: "WorkloadDraft") -> frozenset[str]:
    """Return the secrets of the workload, for redaction."""
    parts = [draft.scenario.settings, *(part.settings for part in draft.contexts)]
    hooks = [[_named([hook.action]), hook.description] for hook in draft.hooks]
    return secrets_in([*parts, *hooks])


def runner_text(workload: TaskWorkload) -> str:
    """Return the runner in few signs, such as `constant: {times: 10}`."""
    return json.dumps(workload.runner)[1:-1].replace('"', "")


def masked_settings(plugins: Mapping[str, Any]) -> dict[str, Any]:
    """Mask the settings of plugins. Names of plugins are kept, even if they contain "token"."""
    return {name: masked(settings) for name, settings in plugins.items()}


def masked_task(task: Mapping[str, Any]) -> dict[str, Any]:
    """Mask the secrets of a task file in either form."""
    if "subtasks" in task:
        return _masked_section(task)
    return {name: [_masked_section(one) for one in workloads] for name, workloads in task.items()}


def _masked_section(section: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _masked_part(name, part) for name, part in section.items()}


def _masked_part(name: str, part: Any) -> Any:
    match name:
        case "subtasks" | "workloads":
            return [_masked_section(one) for one in part]
        case "scenario" | "contexts" | "context":
            return masked_settings(part)
        case "hooks":
            return [_masked_hook(hook) for hook in part]
        case "args":
            return masked(part)
        case _:
            return part


def _masked_hook(hook: Mapping[str, Any]) -> dict[str, Any]:
    hidden: dict[str, Any] = masked(hook)
    if "name" in hook:  # the old form: {name: sys_call, args: ...}
        hidden["args"] = masked({hook["name"]: hook.get("args")})[hook["name"]]
    return hidden


def _named(parts: "Iterable[NamedPlugin]") -> dict[str, Any]:
    return {part.name.partition("@")[0]: part.settings for part in parts}
