"""Structure of a task file: the old form (scenario -> list) and version 2."""

from typing import Annotated, Any

from pydantic import ConfigDict, Field, RootModel

from loadstone.rally.task.catalogue.form import ROOT_RULES, RULES, Form

Named = Annotated[dict[str, dict[str, Any]], Field(min_length=1, max_length=1)]
Tags = Annotated[list[Annotated[str, Field(max_length=255)]], Field(description="Words.")]
Text = Annotated[str, Field(description="In words.")]


class OldTriggerShape(Form):
    """Trigger of a hook: name and settings."""

    name: str
    args: Any


class OldHookShape(Form):
    """A hook of the old form."""

    name: str
    args: Any
    trigger: OldTriggerShape
    description: Text = ""


class OldRunnerShape(Form):
    """A runner of the old form: its settings are next to its type."""

    model_config = ConfigDict({**RULES, "extra": "allow"})
    type: str


class OldWorkloadShape(Form):
    """A workload of the old form."""

    args: dict[str, Any] = Field(default_factory=dict)
    description: Text = ""
    runner: OldRunnerShape = OldRunnerShape(type="serial")
    context: dict[str, Any] = Field(default_factory=dict)
    sla: dict[str, Any] = Field(default_factory=dict)
    hooks: list[OldHookShape] = Field(default_factory=list)


class OldTaskShape(RootModel[dict[str, Annotated[list[Any], Field(min_length=1)]]]):
    """The old form: scenario name to workloads."""

    model_config = ROOT_RULES


class HookShape(Form):
    """An action during the load, and its trigger."""

    action: Annotated[dict[str, Any], Field(min_length=1, max_length=1)]
    trigger: Named
    description: Text = ""


class WorkloadShape(Form):
    """A workload of version 2."""

    scenario: Named
    description: Text = ""
    runner: Named = Field(default_factory=dict)
    contexts: dict[str, Any] = Field(default_factory=dict)
    sla: dict[str, Any] = Field(default_factory=dict)
    hooks: list[HookShape] = Field(default_factory=list)


class SubtaskShape(Form):
    """Workloads under one title."""

    title: str
    workloads: Annotated[list[Any], Field(min_length=1)]
    group: str = ""
    description: Text = ""
    tags: Tags = Field(default_factory=list)
    run_in_parallel: bool = False


class SimpleSubtaskShape(WorkloadShape):
    """A subtask that is one workload."""

    title: Annotated[str, Field(max_length=128)]
    group: str = ""
    tags: Tags = Field(default_factory=list)


class TaskShape(Form):
    """Version 2."""

    version: int | float | str
    title: Annotated[str, Field(max_length=255)]
    subtasks: Annotated[list[Any], Field(min_length=1)]
    description: Annotated[Any, Field(description="In words; not looked at.")] = ""
    tags: Tags = Field(default_factory=list)
