"""JSON Schema of task files, for editors: names, settings, limits and descriptions."""

from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from loadstone.plan.mix import MIX
from loadstone.rally.task import shape
from loadstone.rally.task.catalogue.argument_form import form_of
from loadstone.rally.task.catalogue.contexts import CONTEXTS
from loadstone.rally.task.catalogue.hooks import ACTIONS, TRIGGERS
from loadstone.rally.task.catalogue.own import OWN_NAMES, entry_of
from loadstone.rally.task.catalogue.runners import RUNNERS
from loadstone.rally.task.catalogue.scenarios import SCENARIOS
from loadstone.rally.task.catalogue.slas import SLAS

Schema = dict[str, Any]
Refs = Mapping[Any, Schema]  # by form
MIX_PATTERN = f"^{MIX}"
_NO_SETTINGS: Schema = {"type": "object", "maxProperties": 0}
SHAPES: tuple[type[BaseModel], ...] = (
    shape.TaskShape,
    shape.SubtaskShape,
    shape.SimpleSubtaskShape,
    shape.WorkloadShape,
    shape.HookShape,
    shape.OldWorkloadShape,
)


def schema() -> Schema:
    """Return one schema for both forms of task files."""
    scenarios = {name: form_of(entry) for name, entry in SCENARIOS.items()}
    plugins = (scenarios, RUNNERS, CONTEXTS, SLAS, ACTIONS, TRIGGERS)
    forms: list[type[BaseModel]] = [form for known in plugins for form in known.values()]
    ref_names, gathered = models_json_schema([(form, "validation") for form in (*forms, *SHAPES)])
    refs = {form: place for (form, _), place in ref_names.items()}
    definitions: Schema = gathered["$defs"]
    definitions |= {
        "scenario": _named(scenarios, refs, single=True),
        "runner": _named(RUNNERS, refs, single=True),
        "contexts": _named(CONTEXTS, refs, single=False),
        "sla": _named(SLAS, refs, single=False),
        "action": _named(ACTIONS, refs, single=True),
        "trigger": _named(TRIGGERS, refs, single=True),
    }
    own = {name: _of_own(name) for name in OWN_NAMES}
    definitions["scenario"]["properties"] |= own
    definitions["scenario"]["patternProperties"][MIX_PATTERN] = _NO_SETTINGS
    for name in ("WorkloadShape", "SimpleSubtaskShape"):
        _point(definitions[name], ("scenario", "runner", "contexts", "sla"))
    _point(definitions["HookShape"], ("action", "trigger"))
    definitions["SubtaskShape"]["properties"]["workloads"]["items"] = _ref("WorkloadShape")
    definitions["TaskShape"]["properties"]["subtasks"]["items"] = {
        "if": {"required": ["workloads"]},
        "then": _ref("SubtaskShape"),
        "else": _ref("SimpleSubtaskShape"),
    }
    definitions["TaskShape"]["properties"]["version"] = {"enum": [2, "2"]}
    definitions["OldTask"] = _old(definitions["OldWorkloadShape"], scenarios, refs)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Loadstone task",
        "description": "A task of Rally's for identity: version 2, or the old form.",
        "if": {"type": "object", "required": ["version"]},
        "then": _ref("TaskShape"),
        "else": _ref("OldTask"),
        "$defs": definitions,
    }


def _of_own(name: str) -> Schema:
    entry = entry_of(name)
    return {**_NO_SETTINGS, "description": "" if entry is None else entry.about}


def _ref(name: str) -> Schema:
    return {"$ref": f"#/$defs/{name}"}


def _named(forms: Mapping[str, type[BaseModel]], refs: Refs, *, single: bool) -> Schema:
    """Return an object schema whose keys are names of plugins; exactly one if `single`."""
    named: Schema = {
        "type": "object",
        "properties": {name: refs[form] for name, form in forms.items()},
        # Full names: Dummy.dummy@default, users@openstack.
        "patternProperties": {"@(openstack|default)$": True},
        "additionalProperties": False,
    }
    return {**named, "minProperties": 1, "maxProperties": 1} if single else named


def _point(definition: Schema, names: Iterable[str]) -> None:
    for name in names:
        definition["properties"][name] = _ref(name)


def _old(workload: Schema, forms: Mapping[str, type[BaseModel]], refs: Refs) -> Schema:
    properties = workload["properties"]
    properties |= {"context": _ref("contexts"), "sla": _ref("sla")}
    properties["runner"] = {
        "type": "object",
        "required": ["type"],
        "properties": {"type": {"enum": list(RUNNERS)}},
    }
    return {
        "type": "object",
        "properties": {
            name: {
                "type": "array",
                "items": {**workload, "properties": {**properties, "args": refs[form]}},
            }
            for name, form in forms.items()
        },
        "patternProperties": {
            pattern: {"type": "array", "items": _ref("OldWorkloadShape")}
            for pattern in ("@(openstack|default)$", MIX_PATTERN, f"^({'|'.join(OWN_NAMES)})$")
        },
        "additionalProperties": False,
    }
