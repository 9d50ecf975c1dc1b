"""A task's workload as its file has it."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

Settings = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class TaskWorkload:
    """A workload in the form of version 2 of Rally's task files, with secrets masked.

    Each part has the settings of plugins by their names: {"constant": {"times": 9}}.
    """

    scenario: Settings = field(default_factory=dict)
    runner: Settings = field(default_factory=dict)
    contexts: Settings = field(default_factory=dict)
    sla: Settings = field(default_factory=dict)
    hooks: tuple[Settings, ...] = ()  # each with "action" and "trigger"

    @property
    def runner_name(self) -> str:
        """Rally's name of the runner: "constant"."""
        return next(iter(self.runner), "serial")

    @property
    def runner_settings(self) -> Settings:
        """The runner's settings, such as its "times"."""
        return self.runner.get(self.runner_name) or {}

    def config_id(self, *, requests_as_rally: bool, paced_as_rally: bool) -> str:
        """Return the id of the load; workloads that differ only in their SLA have the same."""
        load: dict[str, Any] = {
            "scenario": self.scenario,
            "runner": self.runner,
            "contexts": self.contexts,
            "hooks": self.hooks or {},
        }
        if requests_as_rally:  # more requests under the same names
            load["requests"] = "Rally's"
        if paced_as_rally:
            load["pacing"] = "Rally's"
        text = json.dumps(load, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:12]

    def at(self, runner: Settings) -> "TaskWorkload":
        """Return the workload with another runner."""
        return replace(self, runner=runner)

    def as_data(self) -> dict[str, Any]:
        """Return it as a task file has it, as JSON values."""
        return {
            "scenario": self.scenario,
            "runner": self.runner,
            "contexts": self.contexts,
            "sla": self.sla,
            "hooks": list(self.hooks),
        }
