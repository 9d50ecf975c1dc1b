"""What came of a hook that a task's load triggered."""

from dataclasses import dataclass
from typing import Any, Literal

Output = dict[str, list[Any]]  # Rally's charts, under "additive" and "complete"
# Rally's form of a chart (rally.task.processing.charts).
_NEEDED: dict[str, type | tuple[type, ...]] = {
    "title": str,
    "chart_plugin": str,
    "data": (list, dict),
}
_KNOWN = {**_NEEDED, "description": str, "label": str, "axis_label": str}


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


def charts(said: object) -> Output | None:
    """Give the charts that a hook's output holds; None: it is something else."""
    if not isinstance(said, dict):
        return None
    found = {kind: said.get(kind, []) for kind in ("additive", "complete")}
    are_good = all(
        isinstance(some, list) and all(_is_chart(one) for one in some) for some in found.values()
    )
    return found if are_good else None


def _is_chart(one: object) -> bool:
    return chart_problem(one) is None


def chart_problem(one: object) -> str | None:
    """Say why this is no chart; None: it is one."""
    if not isinstance(one, dict):
        return f"must be a mapping, not {type(one).__name__}"
    if missing := _NEEDED.keys() - one.keys():
        return f"needs {', '.join(sorted(missing))}"
    if strange := one.keys() - _KNOWN.keys():
        return f"has no {', '.join(sorted(map(str, strange)))}; there are: {', '.join(_KNOWN)}"
    wrong = [key for key, value in one.items() if not isinstance(value, _KNOWN[key])]
    return f"has a {wrong[0]} of type {type(one[wrong[0]]).__name__}" if wrong else None
