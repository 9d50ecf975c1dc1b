"""Charts in Rally's format, which scenarios and hooks may return."""

import math
import sys
from typing import Any

Output = dict[str, list[Any]]  # Rally's charts, in "additive" and "complete"
# Rally's format of a chart (rally.task.processing.charts).
_NEEDED: dict[str, type | tuple[type, ...]] = {
    "title": str,
    "chart_plugin": str,
    "data": (list, dict),
}
_KNOWN = {**_NEEDED, "description": str, "label": str, "axis_label": str}
# Rally's own chart plugins. Results of Rally may name others, which its users wrote.
KINDS = ("Lines", "StackedArea", "StatsTable", "Pie", "Table", "TextArea")


def charts(output: object) -> Output | None:
    """Return the charts in a hook's output, or None if it is something else."""
    if not isinstance(output, dict):
        return None
    found = {kind: output.get(kind, []) for kind in ("additive", "complete")}
    are_good = all(
        isinstance(some, list) and all(_is_chart(one) for one in some) for some in found.values()
    )
    return found if are_good else None


def _is_chart(one: object) -> bool:
    return chart_problem(one) is None


def chart_problem(one: object) -> str | None:
    """Return why this is not a valid chart, or None if it is."""
    if not isinstance(one, dict):
        return f"must be a mapping, not {type(one).__name__}"
    if missing := _NEEDED.keys() - one.keys():
        return f"needs {', '.join(sorted(missing))}"
    if strange := one.keys() - _KNOWN.keys():
        return f"has no {', '.join(sorted(map(str, strange)))}; choose from {', '.join(_KNOWN)}"
    wrong = [key for key, value in one.items() if not isinstance(value, _KNOWN[key])]
    if wrong:
        return f"has a {wrong[0]} of type {type(one[wrong[0]]).__name__}"
    return None if _is_finite(one["data"]) else "has data that is infinite or not a number"


def _is_finite(data: object) -> bool:
    """Return whether all numbers in the data can be stored as JSON and drawn."""
    match data:
        case dict():
            return all(map(_is_finite, data.values()))
        case list() | tuple():
            return all(map(_is_finite, data))
        case float():
            return math.isfinite(data)
        case int():
            return abs(data) <= sys.float_info.max
        case _:
            return True
