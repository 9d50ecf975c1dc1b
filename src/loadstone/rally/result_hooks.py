"""Hooks in Rally's results: their settings and their runs."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from loadstone.engine.callables.charts import Output, charts
from loadstone.plan.hooks import HookRun
from loadstone.store.import_limits import moment_s


def configs(workload: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the hooks in the form of a task file."""
    return [_config(hook["config"]) for hook in workload.get("hooks") or []]


def _config(config: Mapping[str, Any]) -> dict[str, Any]:
    if "name" not in config:
        return {**config, "action": _named(config["action"]), "trigger": _named(config["trigger"])}
    trigger = config["trigger"]  # of `rally task results`: the old form of task files
    return {
        "action": {config["name"]: config["args"]},
        "trigger": {trigger["name"]: trigger["args"]},
        "description": config.get("description", ""),
    }


def _named(pair: Any) -> Any:
    """Return {name: settings}; Rally's exporters write that, or a list of the two."""
    return {pair[0]: pair[1]} if isinstance(pair, list) else pair


def runs(workload: Mapping[str, Any]) -> Iterator[HookRun]:
    """Yield the runs of each hook."""
    for number, hook in enumerate(workload.get("hooks") or []):
        for result in hook.get("results") or []:
            trigger = result["triggered_by"]
            yield HookRun(
                hook=number,
                unit=str(trigger["event_type"]),
                value=int(trigger["value"]),
                started_at_s=moment_s(result["started_at"], "started_at"),
                finished_at_s=moment_s(result["finished_at"], "finished_at"),
                output=json.dumps(_output(result.get("output"))),
                error=_error(result),
            )


def _output(output: Any) -> Output:
    return charts(output) or {"additive": [], "complete": []}


def _error(result: Mapping[str, Any]) -> tuple[str, str] | None:
    error = result.get("error")
    if error:
        return str(error.get("msg", "")), str(error.get("details", ""))
    status = str(result["status"])
    return None if status == "success" else (status, "")
