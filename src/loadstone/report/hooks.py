"""Results of hooks and outputs of iterations in Rally's format."""

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

from loadstone.engine.callables.model import IterationOutput
from loadstone.plan.hooks import HookRun
from loadstone.result.model import Measurement


def hooks(measurement: Measurement) -> Iterator[dict[str, Any]]:
    """Yield each hook of a workload with its results."""
    specs = measurement.workload.hooks if measurement.workload else ()
    for number, config in enumerate(specs):
        own = [run for run in measurement.hook_runs if run.hook == number]
        yield {
            "config": {
                **config,
                "action": pair(config["action"]),
                "trigger": pair(config["trigger"]),
            },
            "results": [result(run) for run in own],
            "summary": dict(Counter(run.status for run in own)),
        }


def pair(one: Any) -> Any:
    """Return a name and its settings as a list of two.

    Rally 5.1.1 writes a mapping, but its own `task report` and export cannot read that.
    """
    if not isinstance(one, dict):
        return one
    return next(([name, value] for name, value in one.items()), [])


def charts(output: IterationOutput) -> dict[str, list[Any]]:
    """Return the charts that an iteration produced."""
    return {
        "additive": [json.loads(chart) for chart in output.additive],
        "complete": [json.loads(chart) for chart in output.complete],
    }


def result(run: HookRun) -> dict[str, Any]:
    """Return the result of one hook run in Rally's format."""
    plain = {
        "status": run.status,
        "started_at": run.started_at_s,
        "finished_at": run.finished_at_s,
        "triggered_by": {"event_type": run.unit, "value": run.value},
        "output": json.loads(run.output),
    }
    if run.error is not None:
        message, details = run.error
        plain["error"] = {"etype": "n/a", "msg": message, "details": details}
    return plain
