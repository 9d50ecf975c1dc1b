"""What real Rally says; run by a Python that has it: JSON in, JSON out."""

import inspect
import json
import sys

from rally import api, exceptions
from rally.cli.commands.task import FailedToLoadTask, _load_and_validate_task
from rally.plugins import load
from rally.task import context, runner, scenario, sla, task_cfg


class Api:
    """As much of Rally's API as its reader needs; the whole needs a database."""

    task = api._Task(None)


def read(asked):
    try:
        given = _load_and_validate_task(
            Api(), asked["file"], asked.get("args_file"), asked.get("raw")
        )
    except FailedToLoadTask as refused:
        return {"refused": str(refused)}
    value = json.loads(json.dumps(given))
    try:
        config = task_cfg.TaskConfig(given)
    except exceptions.InvalidTaskException as refused:
        return {"value": value, "refused": str(refused)}
    workloads = [one for subtask in config.subtasks for one in subtask["workloads"]]
    return {
        "value": value,
        "title": config.title,
        "workloads": [[one["name"], one["runner_type"], sorted(one["sla"])] for one in workloads],
        "wrong": [words for one in workloads for words in wrong_with(one)],
    }


def wrong_with(workload):
    kinds = [(runner.ScenarioRunner, workload["runner_type"], workload["runner"])]
    kinds += [(sla.SLA, name, settings) for name, settings in workload["sla"].items()]
    return [
        words
        for kind, name, settings in kinds
        for words in kind.validate(name, None, None, settings, vtype="syntax")
    ]


def judge(asked):
    checker = sla.SLAChecker({"sla": asked["rules"]})
    first = None
    for row, iteration in enumerate(asked["iterations"]):
        if not checker.add_iteration(iteration) and first is None:
            first = row
    return {"results": checker.results(), "first": first}


def catalogue():
    scenarios = {}
    for plugin in scenario.Scenario.get_all():
        spec = inspect.signature(plugin.run).parameters.values()
        named = [one for one in spec if one.kind is one.POSITIONAL_OR_KEYWORD][1:]
        scenarios[plugin.get_name()] = {
            "platform": plugin.get_platform(),
            "arguments": [one.name for one in named],
            "required": [one.name for one in named if one.default is one.empty],
            "defaults": {one.name: one.default for one in named if one.default is not one.empty},
            "takes_any": any(one.kind is one.VAR_KEYWORD for one in spec),
            "contexts": sorted(plugin.get_default_context()),
        }
    contexts = [plugin.get_name() for plugin in context.Context.get_all(allow_hidden=True)]
    return {"scenarios": scenarios, "contexts": sorted(contexts)}


def main():
    load()
    asked = json.load(sys.stdin)
    answers, sys.stdout = sys.stdout, sys.stderr
    parts = {
        "tasks": [read(one) for one in asked.get("tasks", [])],
        "slas": [judge(one) for one in asked.get("slas", [])],
        "catalogue": catalogue(),
    }
    json.dump(parts, answers)


if __name__ == "__main__":
    main()
