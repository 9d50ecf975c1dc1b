"""What came of a hook that a task's load triggered."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class HookRun:
    """One time that a hook acted; Rally's words."""

    hook: int  # of the workload, from 0
    unit: str  # "time" or "iteration"
    value: int  # second or iteration at which it was triggered
    started_at_s: float  # Unix time
    finished_at_s: float
    output: str  # JSON: {"additive": [...], "complete": [...]}, charts
    error: tuple[str, str] | None = None  # what was wrong, and its details

    @property
    def status(self) -> Literal["success", "failed"]:
        """Rally's word for how it ended."""
        return "failed" if self.error else "success"
