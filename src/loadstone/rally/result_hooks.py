"""Hooks of Rally's results: how they were set, and what came of them."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from loadstone.engine.callables.charts import Output, charts
from loadstone.plan.hooks import HookRun


def configs(workload: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the hooks in the form of a task file."""
    return [
        {
            **hook["config"],
            "action": _named(hook["config"]["action"]),
            "trigger": _named(hook["config"]["trigger"]),
        }
        for hook in workload.get("hooks") or []
    ]


def _named(pair: Any) -> Any:
    """Return {name: settings}; Rally's exporters write that, or a list of the two."""
    return {pair[0]: pair[1]} if isinstance(pair, list) else pair


def runs(workload: Mapping[str, Any]) -> Iterator[HookRun]:
    """Return each time that a hook acted."""
    for number, hook in enumerate(workload.get("hooks") or []):
        for one in hook.get("results") or []:
            trigger = one["triggered_by"]
            yield HookRun(
                hook=number,
                unit=str(trigger["event_type"]),
                value=int(trigger["value"]),
                started_at_s=float(one["started_at"]),
                finished_at_s=float(one["finished_at"]),
                output=json.dumps(_output(one.get("output"))),
                error=_error(one),
            )


def _output(said: Any) -> Output:
    return charts(said) or {"additive": [], "complete": []}


def _error(one: Mapping[str, Any]) -> tuple[str, str] | None:
    error = one.get("error")
    if error:
        return str(error.get("msg", "")), str(error.get("details", ""))
    status = str(one["status"])
    return None if status == "success" else (status, "")
