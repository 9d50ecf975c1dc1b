"""Hooks: actions during a load, their triggers and their results."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class SysCall:
    """A program and its arguments, started without a shell."""

    command: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FaultInjection:
    """A fault of the service, as an os-faults command."""

    sentence: str


@dataclass(frozen=True, slots=True)
class Event:
    """At these seconds after the load's start, or at these iterations (from 1)."""

    unit: Literal["time", "iteration"]
    at: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Periodic:
    """From `start` to `end` (None: the end of the load), every `step`."""

    unit: Literal["time", "iteration"]
    step: int
    start: int
    end: int | None = None

    @property
    def never_fires(self) -> bool:
        """Whether it ends before it starts."""
        return self.end is not None and self.end < self.start


@dataclass(frozen=True, slots=True)
class Hook:
    """An action during the load, and its trigger."""

    action: SysCall | FaultInjection
    trigger: Event | Periodic
    description: str = ""


def has_faults(hooks: Iterable[Hook]) -> bool:
    """Return whether a hook injects a fault."""
    return any(isinstance(hook.action, FaultInjection) for hook in hooks)


@dataclass(frozen=True, slots=True)
class HookRun:
    """One execution of a hook, in Rally's terms."""

    hook: int  # of the workload, from 0
    unit: str  # "time" or "iteration"
    value: int  # second or iteration at which it was triggered
    started_at_s: float  # Unix time
    finished_at_s: float
    output: str  # JSON: {"additive": [...], "complete": [...]}, charts
    error: tuple[str, str] | None = None  # error message and its details

    @property
    def status(self) -> Literal["success", "failed"]:
        """Rally's word for the outcome."""
        return "failed" if self.error else "success"
