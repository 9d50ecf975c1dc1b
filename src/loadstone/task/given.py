"""A workload as its file has it, in one form whatever the file's, without its passwords."""

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from loadstone.task.draft import Part, WorkloadDraft

SECRET = re.compile("password|secret|token|credential|passcode", re.IGNORECASE)
MASK = "***"


def given(draft: "WorkloadDraft") -> dict[str, Any]:
    """Give the workload in Rally's words of version 2."""
    runner = {"serial": {}} if draft.runner is None else _named([draft.runner])
    sla = {"failure_rate": {"max": 0}} if draft.sla is None else _named(draft.sla)
    hooks = [
        {
            "action": _named([hook.action]),
            "trigger": _named([hook.trigger]),
            "description": hook.description,
        }
        for hook in draft.hooks
    ]
    parts = {
        "scenario": _named([draft.scenario]),
        "runner": runner,
        "contexts": _named(draft.contexts),
        "sla": sla,
        "hooks": hooks,
    }
    return {name: masked(part) for name, part in parts.items()}


def masked(value: Any) -> Any:
    """Give the value with each text masked that stands under a name like "password"."""
    if isinstance(value, Mapping):
        return {
            key: MASK if isinstance(part, str) and SECRET.search(str(key)) else masked(part)
            for key, part in value.items()
        }
    return [masked(part) for part in value] if isinstance(value, list) else value


def config_id(workload: Mapping[str, Any]) -> str:
    """Name what is loaded and how: workloads that differ in their SLA alone have one history."""
    load = {key: workload.get(key) or {} for key in ("scenario", "runner", "contexts", "hooks")}
    text = json.dumps(load, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def _named(parts: "Iterable[Part]") -> dict[str, Any]:
    return {part.name.partition("@")[0]: part.settings for part in parts}
